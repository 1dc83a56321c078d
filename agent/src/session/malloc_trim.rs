//! Returns unused memory of `malloc` to the system.
//!
//! The VM's compilers need more memory for methods with hooks while they compile one, and so does rewriting a class. The C
//! library keeps most of it for the thread that used it. A program loads and compiles most of its code at the start, so trimming
//! becomes less and less frequent.
#![allow(unsafe_code, reason = "asks the C library")]

use std::time::{Duration, Instant};

use crate::options::LogLevel;
use crate::session::Agent;
use lucce_jvmti::signals;

/// Delay of the first trim.
const FIRST: Duration = Duration::from_secs(4);
/// Maximum pause between two trims.
const LONGEST: Duration = Duration::from_secs(600);
/// Trimming takes at most this fraction of the time, because allocating threads wait meanwhile.
const PART: u32 = 1000;

/// Starts trimming once the VM is initialized. Without the thread, no memory is returned.
pub fn start_trimming(agent: &'static Agent) {
    let thread = std::thread::Builder::new().name("lucce-trim".into());
    let _ = signals::with_signals_blocked(|| thread.spawn(move || trim_repeatedly(agent)));
}

fn trim_repeatedly(agent: &Agent) {
    let begin = Instant::now();
    let mut pause = FIRST;
    while !agent.core.vm_end.wait_until(Instant::now() + pause) {
        let before = Instant::now();
        agent.classes.cache.write_if_settled(agent.class_parts());
        agent.stack.archive.drop_archive();
        trim_heap();
        let took = before.elapsed();
        agent
            .core
            .report_message(LogLevel::Debug, &format!("malloc_trim took {took:?}"));
        pause = next_pause(begin.elapsed(), took);
    }
}

/// The pause after a trim, by the time since the start and by its duration.
fn next_pause(since: Duration, took: Duration) -> Duration {
    (since / 2)
        .clamp(FIRST / 2, LONGEST)
        .max(took.saturating_mul(PART))
}

#[cfg(target_env = "gnu")]
fn trim_heap() {
    // SAFETY: any thread may call it at any time.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn trim_heap() {}

#[cfg(test)]
mod malloc_trim_tests {
    use super::*;

    #[test]
    fn it_is_done_less_and_less_often_and_never_takes_much() {
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        assert_eq!(next_pause(s(4), ms(1)), s(2));
        assert_eq!(next_pause(s(60), ms(1)), s(30));
        assert_eq!(next_pause(s(86_400), ms(1)), LONGEST);
        assert_eq!(next_pause(s(4), ms(100)), s(100));
        assert_eq!(next_pause(s(86_400), s(1)), s(1000));
    }
}
