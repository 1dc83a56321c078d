//! Keeps signals to the process away from the agent's threads: the VM handles them.
//!
//! Signals raised by a thread's own instructions stay unblocked, for the VM's crash report.
#![allow(unsafe_code, reason = "the calling thread's signal mask")]

use std::mem::MaybeUninit;

const OWN: [libc::c_int; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
];

/// Runs `body` with all other signals blocked; threads that it starts inherit the mask.
pub fn with_signals_blocked<T>(body: impl FnOnce() -> T) -> T {
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the sets are filled in before they are read; the mask concerns this thread alone.
    let changed = unsafe {
        let mut all = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        for signal in OWN {
            libc::sigdelset(all.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0
    };
    let result = body();
    if changed {
        // SAFETY: the call above has filled it in.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    }
    result
}
