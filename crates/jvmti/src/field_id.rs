//! Fields of Java classes.

use jvmti_bindings::sys::jni::jfieldID;

/// A field id: valid in every thread while its class is loaded.
#[derive(Clone, Copy, Debug)]
pub struct FieldId(usize);

impl FieldId {
    pub fn new(id: jfieldID) -> FieldId {
        FieldId(id as usize)
    }

    pub fn as_raw(self) -> jfieldID {
        self.0 as jfieldID
    }
}
