//! The agent's entry points: `Agent_OnLoad` at the start of the JVM, `Agent_OnAttach` on request of `lucce attach`.
#![allow(unsafe_code, reason = "entry points of the JVM")]

use std::ffi::{c_char, c_void};
use std::panic::{self, UnwindSafe};

use jvmti_bindings::sys::jni::{JNI_ERR, JNI_OK, JavaVM, jint};

use crate::entry::c_api;
use crate::entry::callbacks::{callback_table, string_from_c};
use crate::session::guard::install_panic_hook;
use crate::session::{attach, control, start};

/// Loaded by the VM before any Java code runs.
///
/// # Safety
/// Called by the VM with its own pointers.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnLoad(
    vm: *mut JavaVM,
    options: *const c_char,
    _: *mut c_void,
) -> jint {
    // SAFETY: the VM passes a terminated string or null.
    let text = unsafe { string_from_c(options) };
    let started = start_guarded(|| {
        c_api::set_vm(vm);
        start::start_agent(vm, &text, &callback_table())
    });
    match started {
        Ok(()) => JNI_OK,
        Err(message) => {
            eprintln!("lucce: {message}");
            JNI_ERR
        }
    }
}

/// Loaded by the VM on request of `lucce attach`.
///
/// # Safety
/// Called by the VM with its own pointers.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnAttach(
    vm: *mut JavaVM,
    options: *const c_char,
    _: *mut c_void,
) -> jint {
    // SAFETY: the VM passes a terminated string or null.
    let text = unsafe { string_from_c(options) };
    let started = start_guarded(|| {
        attach::attach_agent(vm, &text, &callback_table()).map(control::start_listener)
    });
    match started {
        Ok(()) => JNI_OK,
        Err(message) => {
            attach::write_refusal(&text, &message);
            JNI_ERR
        }
    }
}

/// Starts the agent; a panic is an error.
fn start_guarded(start: impl FnOnce() -> Result<(), String> + UnwindSafe) -> Result<(), String> {
    let started = panic::catch_unwind(|| {
        install_panic_hook();
        start()
    });
    started.unwrap_or_else(|_| Err("the agent failed to start".into()))
}
