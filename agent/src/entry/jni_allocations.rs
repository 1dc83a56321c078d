//! JNI functions that make objects for native code report them (`c/allocate.c`), with `events=alloc=all`.
#![allow(
    unsafe_code,
    reason = "C functions in the JNI table, and what they call"
)]

use std::ffi::c_void;

use jvmti_bindings::sys::jni::{JNIEnv, jobject};
use lucce_instrument::kinds::OBJECTS;

use crate::events::objects;
use crate::session::Agent;
use crate::session::guard::guard_event;

/// A JNI function has made an object for native code.
#[unsafe(no_mangle)]
pub extern "C" fn lucce_allocated(env: *mut JNIEnv, object: jobject) {
    guard_event(OBJECTS.mask_bit, |agent| {
        objects::count_jni_object(agent.counting_parts(), agent.core.jni_env(env), object);
    });
}

/// A JNI function has made a string and the array that holds its text.
#[unsafe(no_mangle)]
pub extern "C" fn lucce_allocated_text(env: *mut JNIEnv, text: jobject) {
    guard_event(OBJECTS.mask_bit, |agent| {
        objects::count_jni_string(agent.counting_parts(), agent.core.jni_env(env), text);
    });
}

unsafe extern "C" {
    fn lucce_allocate_install(table: *mut c_void, before: *mut c_void);
}

/// Replaces the JNI functions, for good: objects that native code makes are counted from now on.
pub fn install_allocation_functions(agent: &Agent) -> Option<()> {
    let before = agent.core.jvmti.jni_table()?;
    let table = agent.core.jvmti.jni_table()?;
    // SAFETY: two copies of the VM's table, which are never freed.
    unsafe { lucce_allocate_install(table.cast(), before.cast()) };
    agent.core.jvmti.set_jni_table(table).ok()
}
