//! What a thread of the VM does now: whether it runs native code, from which it may call the VM.
//!
//! HotSpot describes the place of a thread's state for debuggers, as `thread_allocation` explains.
#![allow(unsafe_code, reason = "reads the VM's own memory")]

use std::ptr;

use jvmti_bindings::sys::jni::JNIEnv;

use crate::thread_allocation::{VmThread, field_offset};

/// `_thread_in_native`
const IN_NATIVE: u32 = 4;

/// Reads the state of the current thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadStateReader {
    /// Offsets in a `JavaThread`.
    env: usize,
    state: usize,
}

impl ThreadStateReader {
    /// `None`: this VM does not describe its threads, or describes them wrongly.
    ///
    /// # Safety
    /// `env` and `current` belong to the current thread, which runs native code.
    pub unsafe fn new(env: *mut JNIEnv, current: VmThread) -> Option<ThreadStateReader> {
        let reader = ThreadStateReader {
            env: (env as usize).checked_sub(current.address())?,
            state: field_offset(c"JavaThread", c"_thread_state")?,
        };
        // SAFETY: the caller passes the current thread's environment.
        unsafe { reader.is_in_native(env) }.then_some(reader)
    }

    /// Whether the thread runs native code, outside of the VM.
    ///
    /// # Safety
    /// `env` is the current thread's environment.
    pub unsafe fn is_in_native(self, env: *mut JNIEnv) -> bool {
        let thread = (env as usize).wrapping_sub(self.env);
        let state = ptr::with_exposed_provenance::<u32>(thread.wrapping_add(self.state));
        // SAFETY: the caller passes an environment, which is a part of its `JavaThread`. The VM says where the thread's state
        // is, and only the thread itself changes it now.
        unsafe { state.read_volatile() == IN_NATIVE }
    }
}
