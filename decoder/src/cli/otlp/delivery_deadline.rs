//! When to end: once the JVM has ended, or somebody asks for it; and how long the last delivery may take then.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use lucce_control::stop_signal;

use super::super::process;

/// From one look at the process to the next.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub struct DeliveryDeadline {
    log: PathBuf,
    /// The JVM, once the log has told it. `None`: it has not.
    pid: Option<u32>,
    /// For the last delivery.
    allowed: Duration,
    /// Since when the end is known.
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

    /// There is one look, this one.
    pub fn end_now(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    pub fn set_pid(&mut self, pid: u32) {
        self.pid = Some(pid);
    }

    /// Nothing is counted any more, or nothing more is wanted.
    pub fn is_over(&mut self) -> bool {
        let is_gone = |pid| process::is_gone(pid, &self.log);
        if self.since.is_none()
            && (stop_signal::is_stop_requested() || self.pid.is_some_and(is_gone))
        {
            self.end_now();
        }
        self.since.is_some()
    }

    /// Waits so long before a request is made again. `false`: it is not worth it any more.
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

    /// Waits for the next look, or for the end.
    pub fn wait_for_next(&mut self, interval: Duration) {
        let until = Instant::now() + interval;
        while Instant::now() < until && !self.is_over() {
            thread::sleep(POLL_INTERVAL.min(until.saturating_duration_since(Instant::now())));
        }
    }
}
