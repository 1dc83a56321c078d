//! The locks that a thread acquired last after it had waited for them.
//!
//! A thread that acquired a lock after another thread began to wait for it did not hold the lock when that wait began. Locks
//! are known by the type of their wait, that is by their class, so two locks of one class count as one.

use std::cell::Cell;

use lucce_tracelog::EventTypeId;

/// The index of a wait in the table of waits whose holders are to be found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockSlot(pub usize);

/// An acquired lock.
#[derive(Clone, Copy, Debug)]
struct AcquiredLock {
    /// `None`: of any class.
    wait_type: Option<EventTypeId>,
    /// Nanoseconds of the clock of events; 0: no lock.
    at: u64,
}

const LOCKS: usize = 4;

/// The last acquired locks of one thread, a ring.
#[derive(Debug)]
pub struct RecentLocks {
    locks: [Cell<AcquiredLock>; LOCKS],
    next: Cell<usize>,
}

impl Default for RecentLocks {
    fn default() -> Self {
        const NONE: AcquiredLock = AcquiredLock {
            wait_type: None,
            at: 0,
        };
        RecentLocks {
            locks: [const { Cell::new(NONE) }; LOCKS],
            next: Cell::new(0),
        }
    }
}

impl RecentLocks {
    /// The thread has acquired a lock at time `now`.
    pub fn add_lock(&self, wait_type: Option<EventTypeId>, now: u64) {
        let next = self.next.get();
        if let Some(lock) = self.locks.get(next) {
            lock.set(AcquiredLock { wait_type, at: now });
        }
        self.next.set((next + 1) % LOCKS);
    }

    /// Whether the thread may have waited for a lock of this type and acquired it at time `since` or later.
    pub fn may_have_acquired(&self, wait_type: EventTypeId, since: u64) -> bool {
        let later = self.locks.iter().map(Cell::get);
        let later = later.filter(|lock| lock.at >= since && lock.at > 0);
        // A full ring may have lost a lock.
        later.clone().count() == LOCKS
            || later
                .into_iter()
                .any(|lock| lock.wait_type.is_none_or(|of| of == wait_type))
    }
}

#[cfg(test)]
mod recent_locks_tests {
    use super::*;

    const MAP: EventTypeId = EventTypeId(1);
    const LIST: EventTypeId = EventTypeId(2);

    #[test]
    fn only_locks_of_the_class_that_were_acquired_later_count() {
        let locks = RecentLocks::default();
        assert!(!locks.may_have_acquired(MAP, 0));
        locks.add_lock(Some(MAP), 100);
        assert!(locks.may_have_acquired(MAP, 100));
        assert!(!locks.may_have_acquired(MAP, 101));
        assert!(!locks.may_have_acquired(LIST, 50));
        locks.add_lock(None, 200);
        assert!(locks.may_have_acquired(LIST, 150));
    }

    #[test]
    fn a_lost_lock_may_have_been_any() {
        let locks = RecentLocks::default();
        for at in 1..=5 {
            locks.add_lock(Some(LIST), 100 * at);
        }
        assert!(locks.may_have_acquired(MAP, 150));
        // Four are known to be later than this; the oldest one kept is not.
        assert!(!locks.may_have_acquired(MAP, 250));
    }
}
