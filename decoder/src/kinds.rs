//! Kinds of events: allocations, locks, exceptions, and kinds that a program counts by itself.
//!
//! A kind's name and unit stand in the log, so a kind that is not known here is shown as any other is. What is shown of a
//! kind besides is said in [`KNOWN`], and nowhere else: a new kind with words of its own is one entry there.

use std::collections::BTreeMap;

use lucce_formats::Words;
use lucce_tracelog::{EventType, EventTypeId};

use crate::code::type_name;

/// What is allocated is known of the site.
pub const ALLOCATION: EventTypeId = EventTypeId(0);

/// What values are in: bytes, or nanoseconds. Other units are words that a program has chosen.
const BYTES: &str = "bytes";
const NANOS: &str = "ns";

/// What is known of a kind besides what the log says.
pub struct Known {
    pub name: &'static str,
    /// Of its values; empty: events have none.
    pub unit: &'static str,
    /// The kind with the same contexts whose values are how long these events took: one more column.
    pub times: Option<&'static str>,
    /// Its events are where threads are started or tasks are submitted: traces go on there.
    pub starts: bool,
    /// What other tools call it.
    pub words: Words,
}

const PLAIN: Known = Known {
    name: "",
    unit: "",
    times: None,
    starts: false,
    words: Words::NONE,
};

/// Allocations: those by bytecode have no type of their own, [`ALLOCATION`]. The kind that is shown first.
pub const ALLOC: &Known = &Known {
    name: "alloc",
    unit: BYTES,
    words: Words {
        pprof: Some(["alloc_objects", "alloc_space"]),
        jfr: |_| Some("jdk.ObjectAllocationSample"),
    },
    ..PLAIN
};

/// Followed objects that were alive when the log was last told of them; the log has them elsewhere than other events.
pub const INUSE: &Known = &Known {
    name: "inuse",
    unit: BYTES,
    words: Words {
        pprof: Some(["inuse_objects", "inuse_space"]),
        ..Words::NONE
    },
    ..PLAIN
};

/// The objects that were sampled to be followed.
pub const LEAK: &Known = &Known {
    name: "leak",
    unit: BYTES,
    ..PLAIN
};

/// All kinds of which more is known than the log says.
pub static KNOWN: &[&Known] = &[
    ALLOC,
    INUSE,
    LEAK,
    &Known {
        name: "lock",
        unit: NANOS,
        words: Words {
            pprof: Some(["contentions", "delay"]),
            jfr: |what| {
                Some(match what {
                    _ if what.ends_with("(park)") => "jdk.ThreadPark",
                    _ if what.ends_with("(wait)") => "jdk.JavaMonitorWait",
                    _ => "jdk.JavaMonitorEnter",
                })
            },
        },
        ..PLAIN
    },
    &Known {
        name: "exception",
        words: Words {
            jfr: |_| Some("jdk.JavaExceptionThrow"),
            ..Words::NONE
        },
        ..PLAIN
    },
    &Known {
        name: "io",
        unit: BYTES,
        times: Some(IO_TIME),
        ..PLAIN
    },
    &Known {
        name: IO_TIME,
        unit: NANOS,
        words: Words {
            jfr: |what| match (what.contains("socket"), what) {
                (true, _) if what.contains("write") => Some("jdk.SocketWrite"),
                (true, _) => Some("jdk.SocketRead"),
                (false, _) if what.contains("write") => Some("jdk.FileWrite"),
                (false, _) if what.contains("read") => Some("jdk.FileRead"),
                (false, _) => None,
            },
            ..Words::NONE
        },
        ..PLAIN
    },
    &Known {
        name: "thread",
        starts: true,
        ..PLAIN
    },
    &Known {
        name: "task",
        starts: true,
        ..PLAIN
    },
];

const IO_TIME: &str = "io-time";

impl Known {
    /// What is known of a kind; of others nothing.
    #[must_use]
    pub fn of(kind: &str) -> &'static Known {
        let known = KNOWN.iter().find(|known| known.name == kind);
        known.copied().unwrap_or(&PLAIN)
    }

    /// Whether it is this kind.
    #[must_use]
    pub fn is(&self, kind: &str) -> bool {
        self.name == kind
    }

    /// So many events of it were counted.
    #[must_use]
    pub fn counted(&self, count: u64) -> KindTotal {
        KindTotal {
            name: self.name.to_owned(),
            unit: self.unit.to_owned(),
            count,
        }
    }
}

/// A kind of event, and what it happened to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeInfo {
    pub kind: String,
    /// What values are in: `bytes`, `ns` or nothing.
    pub unit: String,
    /// As Java writes a type, or other text.
    pub detail: Option<String>,
}

/// All types, by id; [`ALLOCATION`] is among them.
#[derive(Debug)]
pub struct Types(BTreeMap<EventTypeId, TypeInfo>);

/// What was counted of a kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KindTotal {
    pub name: String,
    pub unit: String,
    pub count: u64,
}

impl TypeInfo {
    /// Values are how long events took.
    #[must_use]
    pub fn is_time(&self) -> bool {
        self.unit == NANOS
    }
}

impl KindTotal {
    /// Values are how long events took.
    #[must_use]
    pub fn is_time(&self) -> bool {
        self.unit == NANOS
    }

    #[must_use]
    pub fn is_bytes(&self) -> bool {
        self.unit == BYTES
    }

    /// What is known of it besides.
    #[must_use]
    pub fn known(&self) -> &'static Known {
        Known::of(&self.name)
    }
}

impl Default for Types {
    fn default() -> Self {
        let allocation = TypeInfo {
            kind: ALLOC.name.into(),
            unit: ALLOC.unit.into(),
            detail: None,
        };
        Types(BTreeMap::from([(ALLOCATION, allocation)]))
    }
}

impl Types {
    /// `false`: the id is taken by something else.
    pub(crate) fn add(&mut self, event: EventType<'_>) -> bool {
        let info = TypeInfo {
            kind: event.kind.into(),
            unit: event.unit.into(),
            detail: (!event.detail.is_empty()).then(|| shown(&event.detail)),
        };
        *self.0.entry(event.id).or_insert(info.clone()) == info
    }

    #[must_use]
    pub fn get(&self, event: EventTypeId) -> Option<&TypeInfo> {
        self.0.get(&event)
    }

    pub(crate) fn is(&self, event: EventTypeId, kind: &str) -> bool {
        self.get(event).is_some_and(|info| info.kind == kind)
    }
}

/// Descriptors as Java writes the type; what follows behind a space stays.
fn shown(detail: &str) -> String {
    let (first, rest) = match detail.split_once(' ') {
        Some((first, rest)) => (first, Some(rest)),
        None => (detail, None),
    };
    let is_descriptor = first.starts_with('[') || first.starts_with('L') && first.ends_with(';');
    match (is_descriptor, rest) {
        (false, _) => detail.to_owned(),
        (true, None) => type_name(first),
        (true, Some(rest)) => format!("{} {rest}", type_name(first)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(id: u32, detail: &'static str) -> EventType<'static> {
        EventType {
            id: EventTypeId(id),
            kind: "lock".into(),
            unit: "ns".into(),
            detail: detail.into(),
        }
    }

    #[test]
    fn each_kind_is_said_once() {
        let names: std::collections::HashSet<_> = KNOWN.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KNOWN.len());
        for known in KNOWN {
            assert_eq!(Known::of(known.name).name, known.name);
            let times = known.times.map(|times| Known::of(times).counted(1));
            assert!(times.is_none_or(|times| times.is_time()), "{}", known.name);
        }
        let other = Known::of("requests");
        assert!((other.name, other.unit, other.times) == ("", "", None));
    }

    #[test]
    fn an_id_has_one_meaning() {
        let mut types = Types::default();
        assert!(types.add(lock(1, "La/B;")));
        assert!(types.add(lock(1, "La/B;")));
        assert!(!types.add(lock(1, "La/C;")));
        assert!(!types.add(lock(0, "")), "0 is allocations by bytecode");
        assert_eq!(types.get(EventTypeId(2)), None);
    }

    #[test]
    fn details_are_types_or_text() {
        assert_eq!(shown("La/B$C;"), "a.B$C");
        assert_eq!(shown("[[I"), "int[][]");
        assert_eq!(shown("[La/B; (clone)"), "a.B[] (clone)");
        assert_eq!(shown("Lock of a; thing"), "Lock of a; thing");
        assert_eq!(shown("read"), "read");
    }
}
