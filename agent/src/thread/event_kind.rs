//! Events that the VM or hooks report: their kinds and counters.

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
