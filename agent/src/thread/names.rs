//! Names of Java threads.

use jvmti_bindings::sys::jni::{jint, jobject};
use lucce_jvmti::JniEnvironment;

use crate::core::ThreadFields;
use crate::thread::ThreadParts;

/// The current thread's name; empty until its constructor has set it.
///
/// Not read by JVMTI: in JDK 21 that call waits until no virtual thread is being mounted or unmounted. If this thread
/// is doing that, the call would wait for ever.
pub fn thread_name(agent: ThreadParts<'_>, env: JniEnvironment) -> String {
    let (Some(fields), Some(thread)) = (agent.core.fields.get(), agent.core.jvmti.current_thread())
    else {
        return String::new();
    };
    let name = read_name(env, thread, *fields);
    env.delete_local(thread);
    name
}

/// The name of `thread` from its field; empty if it has none yet.
pub fn read_name(env: JniEnvironment, thread: jobject, fields: ThreadFields) -> String {
    let name = env.get_object(thread, fields.name.as_raw());
    if name.is_null() {
        return String::new();
    }
    let text = env.read_string(name, jint::MAX as usize);
    env.delete_local(name);
    text
}
