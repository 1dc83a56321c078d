//! Lets a command run until Ctrl-C or SIGTERM.
#![allow(unsafe_code, reason = "a signal handler")]

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP_REQUESTED: AtomicBool = AtomicBool::new(false);

/// Makes SIGINT and SIGTERM request a stop, so that work can be finished; see [`is_stop_requested`].
///
/// The second signal ends the process at once.
///
/// # Errors
/// The system's error.
pub fn handle_stop_signals() -> io::Result<()> {
    let handler: extern "C" fn(libc::c_int) = ask;
    // SAFETY: a plain C structure of which zeros are a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler does what one may do, and lives as long as the process.
        if unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Whether a stop was requested.
#[must_use]
pub fn is_stop_requested() -> bool {
    // Relaxed: no other data depends on it.
    STOP_REQUESTED.load(Ordering::Relaxed)
}

extern "C" fn ask(_: libc::c_int) {
    // Relaxed: as above. A store is all that a handler does.
    STOP_REQUESTED.store(true, Ordering::Relaxed);
}

#[cfg(test)]
mod stop_signal_tests {
    use super::*;

    #[test]
    fn a_signal_asks_for_an_end() {
        handle_stop_signals().unwrap();
        assert!(!is_stop_requested());
        // SAFETY: the handler is there, and touches nothing else.
        assert_eq!(unsafe { libc::raise(libc::SIGTERM) }, 0);
        assert!(is_stop_requested());
    }
}
