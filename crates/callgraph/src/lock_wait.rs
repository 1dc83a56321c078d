//! Measures how long threads wait for a lock that another thread holds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The waits for one lock, or for all locks of one kind.
#[derive(Debug, Default)]
pub struct LockWait {
    waits: AtomicU64,
    longest_ns: AtomicU64,
}

impl LockWait {
    pub const fn new() -> LockWait {
        LockWait {
            waits: AtomicU64::new(0),
            longest_ns: AtomicU64::new(0),
        }
    }

    /// Acquires a lock: by `attempt` if it is free, else by `block`, whose time is measured.
    ///
    /// A free lock costs only `attempt`: the clock is read only if a thread waits.
    pub fn acquire_lock<G>(
        &self,
        attempt: impl FnOnce() -> Option<G>,
        block: impl FnOnce() -> G,
    ) -> G {
        match attempt() {
            Some(guard) => guard,
            None => self.measure_wait(block),
        }
    }

    #[cold]
    fn measure_wait<G>(&self, block: impl FnOnce() -> G) -> G {
        let began = Instant::now();
        let guard = block();
        let wait_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: counts on which no other data depends.
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.longest_ns.fetch_max(wait_ns, Ordering::Relaxed);
        guard
    }

    /// Returns how often a thread had to wait.
    pub fn wait_count(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    /// Returns the longest wait in nanoseconds.
    pub fn longest_ns(&self) -> u64 {
        self.longest_ns.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod lock_wait_tests {
    use super::*;

    #[test]
    fn only_a_wait_is_measured() {
        let wait = LockWait::new();
        assert_eq!(wait.acquire_lock(|| Some(1), || 2), 1);
        assert_eq!((wait.wait_count(), wait.longest_ns()), (0, 0));
        let pause = std::time::Duration::from_millis(2);
        let block = || {
            std::thread::sleep(pause);
            2
        };
        assert_eq!(wait.acquire_lock(|| None, block), 2);
        assert_eq!(wait.acquire_lock(|| None, || 3), 3);
        assert_eq!(wait.wait_count(), 2);
        assert!(u128::from(wait.longest_ns()) >= pause.as_nanos());
    }
}
