//! Makes hooks live before a Java agent that precedes this agent on the command line.
//!
//! Such a Java agent runs before the VM reports to this agent that it is initialised. The method that runs Java
//! agents calls this function from its thread's first frame. So the hooks are live before any code of the Java agent
//! runs.
#![allow(unsafe_code, reason = "an entry point of the helper class")]

use jvmti_bindings::sys::jni::{JNIEnv, jboolean, jclass};

use crate::entry::callbacks;
use crate::session::guard::guard_callback;

/// The VM is initialised, but may not have reported it to the agent yet. With `really` 0, the call only binds the native method.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_onVmInitialized(
    env: *mut JNIEnv,
    _: jclass,
    really: jboolean,
) {
    if really != 0 {
        guard_callback((), |agent| {
            callbacks::handle_vm_init(agent, agent.core.jni_env(env))
        });
    }
}
