//! The monitors that a thread waits for, kept from the begin of each wait to its end.
//!
//! With hooks, the thread's state has them, with the counter of each wait. Without hooks, a virtual thread may continue on another
//! native thread. So the waits are kept with the virtual thread, and the counter is looked up at the end.

use std::cell::Cell;

/// Why a thread waits for a monitor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitKind {
    /// To enter it.
    Enter,
    /// To be notified.
    Notify,
}

/// The index of a wait in the table of waits whose holders are to be found: see `events::lock_holders`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockSlot(pub usize);

/// A wait that has begun. `C`: what counts it.
#[derive(Clone, Copy, Debug)]
struct MonitorWait<C> {
    counter: C,
    /// Nanoseconds of the clock of events.
    since: u64,
}

/// The waits of one thread. A wait for a notification may end while the thread enters the monitor again.
#[derive(Debug)]
pub struct MonitorWaits<C: Copy> {
    enter: Cell<Option<MonitorWait<C>>>,
    notify: Cell<Option<MonitorWait<C>>>,
}

impl<C: Copy> Default for MonitorWaits<C> {
    fn default() -> Self {
        MonitorWaits {
            enter: Cell::new(None),
            notify: Cell::new(None),
        }
    }
}

impl<C: Copy> MonitorWaits<C> {
    /// The thread begins to wait at time `since`. `None`: the wait is not counted.
    pub fn begin_wait(&self, kind: WaitKind, counter: Option<C>, since: u64) {
        let wait = counter.map(|counter| MonitorWait { counter, since });
        self.wait_of_kind(kind).set(wait);
    }

    /// Ends the wait and forgets it. Returns what counts it, and its duration in nanoseconds.
    pub fn end_wait(&self, kind: WaitKind, now: u64) -> Option<(C, u64)> {
        let wait = self.wait_of_kind(kind).take()?;
        Some((wait.counter, now.saturating_sub(wait.since)))
    }

    pub fn is_empty(&self) -> bool {
        self.enter.get().is_none() && self.notify.get().is_none()
    }

    fn wait_of_kind(&self, kind: WaitKind) -> &Cell<Option<MonitorWait<C>>> {
        match kind {
            WaitKind::Enter => &self.enter,
            WaitKind::Notify => &self.notify,
        }
    }
}

#[cfg(test)]
mod monitor_waits_tests {
    use super::*;

    #[test]
    fn a_wait_for_a_notification_goes_on_while_the_monitor_is_entered() {
        let waits = MonitorWaits::default();
        assert!(waits.is_empty());
        waits.begin_wait(WaitKind::Notify, Some("wait"), 100);
        waits.begin_wait(WaitKind::Enter, Some("enter"), 130);
        assert_eq!(waits.end_wait(WaitKind::Enter, 150), Some(("enter", 20)));
        assert!(!waits.is_empty());
        assert_eq!(waits.end_wait(WaitKind::Notify, 160), Some(("wait", 60)));
        assert_eq!(waits.end_wait(WaitKind::Notify, 170), None);
        assert!(waits.is_empty());
    }

    #[test]
    fn an_uncounted_wait_replaces_an_older_one() {
        let waits = MonitorWaits::default();
        waits.begin_wait(WaitKind::Enter, Some(1), 5);
        waits.begin_wait(WaitKind::Enter, None, 6);
        assert_eq!(waits.end_wait(WaitKind::Enter, 9), None);
        // The clock of another processor may be behind.
        waits.begin_wait(WaitKind::Enter, Some(2), 9);
        assert_eq!(waits.end_wait(WaitKind::Enter, 8), Some((2, 0)));
    }
}
