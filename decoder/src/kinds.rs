//! Kinds of events: allocations, locks, exceptions, and kinds that a program counts by itself.
//!
//! A kind's name and unit stand in the log, so a kind that is not known here is shown as any other is. What is shown of a
//! kind besides is said in [`KIND_DESCRIPTORS`], and nowhere else: a new kind with words of its own is one entry there.

use std::collections::BTreeMap;

use lucce_export::ToolNames;
use lucce_tracelog::{EventType, EventTypeId};

use crate::code::type_name;

/// What is allocated is known of the site.
pub const ALLOCATION: EventTypeId = EventTypeId(0);

/// What values are in: bytes, or nanoseconds. Other units are words that a program has chosen.
const BYTES: &str = "bytes";
const NANOS: &str = "ns";

/// What is known of a kind besides what the log says.
pub struct KindDescriptor {
    pub name: &'static str,
    /// Of its values; empty: events have none.
    pub unit: &'static str,
    /// The kind with the same contexts whose values are how long these events took: one more column.
    pub times: Option<&'static str>,
    /// Its events are where threads are started or tasks are submitted: traces go on there.
    pub starts: bool,
    /// What other tools call it.
    pub words: ToolNames,
}

const PLAIN: KindDescriptor = KindDescriptor {
    name: "",
    unit: "",
    times: None,
    starts: false,
    words: ToolNames::NONE,
};

/// Allocations: those by bytecode have no type of their own, [`ALLOCATION`]. The kind that is shown first.
pub const ALLOC: &KindDescriptor = &KindDescriptor {
    name: "alloc",
    unit: BYTES,
    words: ToolNames {
        pprof: Some(["alloc_objects", "alloc_space"]),
        jfr: |_| Some("jdk.ObjectAllocationSample"),
    },
    ..PLAIN
};

/// Followed objects that were alive when the log was last told of them; the log has them elsewhere than other events.
pub const INUSE: &KindDescriptor = &KindDescriptor {
    name: "inuse",
    unit: BYTES,
    words: ToolNames {
        pprof: Some(["inuse_objects", "inuse_space"]),
        ..ToolNames::NONE
    },
    ..PLAIN
};

/// The objects that were sampled to be followed.
pub const LEAK: &KindDescriptor = &KindDescriptor {
    name: "leak",
    unit: BYTES,
    ..PLAIN
};

/// All kinds of which more is known than the log says.
pub static KIND_DESCRIPTORS: &[&KindDescriptor] = &[
    ALLOC,
    INUSE,
    LEAK,
    &KindDescriptor {
        name: "lock",
        unit: NANOS,
        words: ToolNames {
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
    &KindDescriptor {
        name: "exception",
        words: ToolNames {
            jfr: |_| Some("jdk.JavaExceptionThrow"),
            ..ToolNames::NONE
        },
        ..PLAIN
    },
    &KindDescriptor {
        name: "io",
        unit: BYTES,
        times: Some(IO_TIME),
        ..PLAIN
    },
    &KindDescriptor {
        name: IO_TIME,
        unit: NANOS,
        words: ToolNames {
            jfr: |what| match (what.contains("socket"), what) {
                (true, _) if what.contains("write") => Some("jdk.SocketWrite"),
                (true, _) => Some("jdk.SocketRead"),
                (false, _) if what.contains("write") => Some("jdk.FileWrite"),
                (false, _) if what.contains("read") => Some("jdk.FileRead"),
                (false, _) => None,
            },
            ..ToolNames::NONE
        },
        ..PLAIN
    },
    &KindDescriptor {
        name: "thread",
        starts: true,
        ..PLAIN
    },
    &KindDescriptor {
        name: "task",
        starts: true,
        ..PLAIN
    },
];

const IO_TIME: &str = "io-time";

impl KindDescriptor {
    /// What is known of a kind; of others nothing.
    #[must_use]
    pub fn for_kind(kind: &str) -> &'static KindDescriptor {
        let known = KIND_DESCRIPTORS.iter().find(|known| known.name == kind);
        known.copied().unwrap_or(&PLAIN)
    }

    /// Whether it is this kind.
    #[must_use]
    pub fn is_kind(&self, kind: &str) -> bool {
        self.name == kind
    }

    /// So many events of it were counted.
    #[must_use]
    pub fn to_total(&self, count: u64) -> KindTotal {
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
pub struct EventTypeTable(BTreeMap<EventTypeId, TypeInfo>);

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
    pub fn kind_descriptor(&self) -> &'static KindDescriptor {
        KindDescriptor::for_kind(&self.name)
    }
}

impl Default for EventTypeTable {
    fn default() -> Self {
        let allocation = TypeInfo {
            kind: ALLOC.name.into(),
            unit: ALLOC.unit.into(),
            detail: None,
        };
        EventTypeTable(BTreeMap::from([(ALLOCATION, allocation)]))
    }
}

impl EventTypeTable {
    /// `false`: the id is taken by something else.
    pub(crate) fn add_type(&mut self, event: EventType<'_>) -> bool {
        let info = TypeInfo {
            kind: event.kind.into(),
            unit: event.unit.into(),
            detail: (!event.detail.is_empty()).then(|| readable_detail(&event.detail)),
        };
        *self.0.entry(event.id).or_insert(info.clone()) == info
    }

    #[must_use]
    pub fn get(&self, event: EventTypeId) -> Option<&TypeInfo> {
        self.0.get(&event)
    }

    pub(crate) fn is_of_kind(&self, event: EventTypeId, kind: &str) -> bool {
        self.get(event).is_some_and(|info| info.kind == kind)
    }
}

/// Descriptors as Java writes the type; what follows behind a space stays.
fn readable_detail(detail: &str) -> String {
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
        let names: std::collections::HashSet<_> =
            KIND_DESCRIPTORS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KIND_DESCRIPTORS.len());
        for known in KIND_DESCRIPTORS {
            assert_eq!(KindDescriptor::for_kind(known.name).name, known.name);
            let times = known
                .times
                .map(|times| KindDescriptor::for_kind(times).to_total(1));
            assert!(times.is_none_or(|times| times.is_time()), "{}", known.name);
        }
        let other = KindDescriptor::for_kind("requests");
        assert!((other.name, other.unit, other.times) == ("", "", None));
    }

    #[test]
    fn an_id_has_one_meaning() {
        let mut types = EventTypeTable::default();
        assert!(types.add_type(lock(1, "La/B;")));
        assert!(types.add_type(lock(1, "La/B;")));
        assert!(!types.add_type(lock(1, "La/C;")));
        assert!(!types.add_type(lock(0, "")), "0 is allocations by bytecode");
        assert_eq!(types.get(EventTypeId(2)), None);
    }

    #[test]
    fn details_are_types_or_text() {
        assert_eq!(readable_detail("La/B$C;"), "a.B$C");
        assert_eq!(readable_detail("[[I"), "int[][]");
        assert_eq!(readable_detail("[La/B; (clone)"), "a.B[] (clone)");
        assert_eq!(readable_detail("Lock of a; thing"), "Lock of a; thing");
        assert_eq!(readable_detail("read"), "read");
    }
}
