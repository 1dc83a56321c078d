//! The end of the VM, for which the agent's own threads wait.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// Whether the VM has ended. Setting it wakes the waiting threads.
#[derive(Default)]
pub struct VmEndSignal {
    flag: Mutex<bool>,
    changed: Condvar,
}

impl VmEndSignal {
    /// Sets the end of the VM.
    pub fn signal_end(&self) {
        *self.flag.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Whether the VM has ended.
    pub fn has_ended(&self) -> bool {
        *self.flag.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until this time, or until the VM has ended. Returns whether it has ended.
    pub fn wait_until(&self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let flag = self.flag.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(flag, left, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod vm_end_tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn whoever_waits_hears_of_the_end() {
        let ended = VmEndSignal::default();
        assert!(!ended.wait_until(Instant::now()));
        std::thread::scope(|scope| {
            scope.spawn(|| ended.signal_end());
            assert!(ended.wait_until(Instant::now() + Duration::from_secs(3600)));
        });
    }
}
