//! Decides when to end: after the JVM's end, or on request; limits the time of the last delivery.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use lucce_control::stop_signal;

use super::super::process;

/// Time between two checks of the process.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub struct DeliveryDeadline {
    log: PathBuf,
    /// The process id from the log. `None`: the log does not have it yet.
    pid: Option<u32>,
    /// Time limit of the last delivery.
    allowed: Duration,
    /// When the end was noticed.
    since: Option<Instant>,
}

impl DeliveryDeadline {
    pub fn new(log: PathBuf, allowed: Duration) -> Self {
        DeliveryDeadline {
            log,
            pid: None,
            allowed,
            since: None,
        }
    }

    /// Makes this delivery the last one.
    pub fn end_now(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    pub fn set_pid(&mut self, pid: u32) {
        self.pid = Some(pid);
    }

    /// Whether the JVM has ended, or the user ended the command.
    pub fn is_over(&mut self) -> bool {
        let is_gone = |pid| process::is_gone(pid, &self.log);
        if self.since.is_none()
            && (stop_signal::is_stop_requested() || self.pid.is_some_and(is_gone))
        {
            self.end_now();
        }
        self.since.is_some()
    }

    /// Waits before a retry. `false`: the deadline does not allow it.
    pub fn wait_for_retry(&mut self, delay: Duration) -> bool {
        let until = Instant::now() + delay;
        while Instant::now() < until {
            self.is_over();
            if self
                .since
                .is_some_and(|since| since.elapsed() >= self.allowed)
            {
                return false;
            }
            thread::sleep(POLL_INTERVAL.min(until.saturating_duration_since(Instant::now())));
        }
        true
    }

    /// Waits for the next reading, or for the end.
    pub fn wait_for_next(&mut self, interval: Duration) {
        let until = Instant::now() + interval;
        while Instant::now() < until && !self.is_over() {
            thread::sleep(POLL_INTERVAL.min(until.saturating_duration_since(Instant::now())));
        }
    }
}
