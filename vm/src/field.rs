//! Fields of Java classes.

use jvmti_bindings::sys::jni::jfieldID;

/// A field id: valid in every thread as long as its class.
#[derive(Clone, Copy, Debug)]
pub struct Field(usize);

impl Field {
    pub fn new(id: jfieldID) -> Field {
        Field(id as usize)
    }

    pub fn id(self) -> jfieldID {
        self.0 as jfieldID
    }
}
