//! The fields that the agent adds to `java.lang.Thread`.

use std::ffi::CStr;

use jvmti_bindings::sys::jni::jobject;
use lucce_jvmti::{FieldId, JniEnvironment};

use crate::core::AgentCore;

/// Ids of the fields.
#[derive(Clone, Copy)]
pub struct ThreadFields {
    pub pointer: FieldId,
    pub events: FieldId,
    pub state: FieldId,
    /// With `calls=on` of the lab's agent.
    pub ticket: Option<FieldId>,
    /// In a thread that has not begun: the number of the context that started it.
    pub origin: FieldId,
    /// In a thread that has not begun: the number of the tags of the code that started it.
    pub tags: FieldId,
    /// The JDK's own field, a string.
    pub name: FieldId,
}

/// The fields of `Thread`. `None`: the class does not have them yet.
pub fn thread_fields(
    core: &AgentCore,
    env: JniEnvironment,
    thread: jobject,
) -> Option<ThreadFields> {
    if let Some(known) = core.fields.get() {
        return Some(*known);
    }
    let class = env.class_of(thread);
    let field = |name: &CStr| env.field_id(class, name, c"J").map(FieldId::new);
    let fields = ThreadFields {
        pointer: field(c"$lucceStack")?,
        events: field(c"$lucceCounters")?,
        state: field(c"$lucceState")?,
        ticket: match core.options.calls {
            true => Some(field(c"$lucceRecording")?),
            false => None,
        },
        origin: field(c"$lucceOrigin")?,
        tags: field(c"$lucceTags")?,
        // A class of the program may have a field of this name as well.
        name: {
            let thread = env.find_class(c"java/lang/Thread")?;
            let name = env.field_id(thread, c"name", c"Ljava/lang/String;");
            env.delete_local(thread);
            name.map(FieldId::new)?
        },
    };
    env.delete_local(class);
    Some(*core.fields.get_or_init(|| fields))
}
