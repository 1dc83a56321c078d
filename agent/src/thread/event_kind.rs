//! Events that the VM tells of: their kinds, the cells that they are counted in, and what a thread waits for.

use std::cell::Cell;

use lucce_tracelog::EventCounter;

/// A kind of event, and how it came about: a word behind the class's name.
#[derive(PartialEq, Eq, Debug)]
pub struct EventKind {
    pub name: &'static str,
    pub unit: &'static str,
    pub how: &'static str,
}

impl EventKind {
    pub const fn new(name: &'static str, unit: &'static str, how: &'static str) -> EventKind {
        EventKind { name, unit, how }
    }
}

/// A cell.
#[derive(Clone, Copy, Debug)]
pub struct EventCounterRef(pub &'static EventCounter);

/// What a thread waits for.
#[derive(Clone, Copy, Debug)]
pub struct MonitorWait {
    pub counter: EventCounterRef,
    pub since: u64,
}

/// Monitors that a thread waits for: to enter one, or to be notified. The second may end in the first.
#[derive(Default, Debug)]
pub struct MonitorWaits {
    pub enter: Cell<Option<MonitorWait>>,
    pub wait: Cell<Option<MonitorWait>>,
}
