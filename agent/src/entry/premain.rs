//! A Java agent that comes before this one on the command line runs before the VM says to this one that it is initialised.
//! The method by which it runs tells, in its thread's first frame, and the hooks become live before any of its code runs.
#![allow(unsafe_code, reason = "an entry point of the helper class")]

use jvmti_bindings::sys::jni::{JNIEnv, jboolean, jclass};

use crate::entry::callbacks;
use crate::session::guard::guard_callback;

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_initialized(
    env: *mut JNIEnv,
    _: jclass,
    really: jboolean,
) {
    if really != 0 {
        guard_callback((), |agent| {
            callbacks::handle_vm_init(agent, agent.jni_env(env))
        });
    }
}
