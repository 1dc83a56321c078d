//! The fields that `java.lang.Thread` was given.

use std::ffi::CStr;

use jvmti_bindings::sys::jni::jobject;
use lucce_vm::{Env, Field};

use crate::core::Core;

#[derive(Clone, Copy)]
pub struct ThreadFields {
    pub pointer: Field,
    pub events: Field,
    pub state: Field,
    /// For the recording of calls.
    pub ticket: Field,
    /// Of a thread that has not begun: the number of the context that started it.
    pub origin: Field,
    /// Its own field, a string.
    pub name: Field,
}

/// `None`: the class has no such fields yet.
pub fn of(core: &Core, env: Env, thread: jobject) -> Option<ThreadFields> {
    if let Some(known) = core.fields.get() {
        return Some(*known);
    }
    let class = env.class_of(thread);
    let field = |name: &CStr| env.field(class, name, c"J").map(Field::new);
    let found = ThreadFields {
        pointer: field(c"$fp")?,
        events: field(c"$ev")?,
        state: field(c"$ts")?,
        ticket: field(c"$rc")?,
        origin: field(c"$cx")?,
        // A class of the program's may have a field of this name, too.
        name: {
            let thread = env.find_class(c"java/lang/Thread")?;
            let name = env.field(thread, c"name", c"Ljava/lang/String;");
            env.forget(thread);
            name.map(Field::new)?
        },
    };
    env.forget(class);
    Some(*core.fields.get_or_init(|| found))
}
