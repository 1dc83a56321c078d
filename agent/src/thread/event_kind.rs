//! Events that the VM reports: their kinds, their counters, and the monitors that a thread waits for.

use std::cell::Cell;

use lucce_options::KindDescriptor;
use lucce_tracelog::EventCounter;

/// A kind of event and its circumstance, which is a word after the class's name.
#[derive(PartialEq, Eq, Debug)]
pub struct EventKind {
    pub name: &'static str,
    pub unit: &'static str,
    pub how: &'static str,
}

impl EventKind {
    /// A kind of the log; `how` is not empty.
    pub const fn new(kind: &KindDescriptor, how: &'static str) -> EventKind {
        EventKind {
            name: kind.name,
            unit: kind.unit,
            how,
        }
    }
}

/// A reference to a counter in the log.
#[derive(Clone, Copy, Debug)]
pub struct EventCounterRef(pub &'static EventCounter);

/// A wait that has begun: its counter and its start time.
#[derive(Clone, Copy, Debug)]
pub struct MonitorWait {
    pub counter: EventCounterRef,
    pub since: u64,
}

/// The monitors that a thread waits for: to enter one, and to be notified. The second wait may end in the first.
#[derive(Default, Debug)]
pub struct MonitorWaits {
    pub enter: Cell<Option<MonitorWait>>,
    pub wait: Cell<Option<MonitorWait>>,
}
