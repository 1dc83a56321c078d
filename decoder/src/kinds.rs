//! Kinds of events: allocations, locks, exceptions, and kinds that a program counts by itself.
//!
//! The log has each kind's name and unit, so unknown kinds are shown as well. [`KIND_DESCRIPTORS`] has everything that is
//! special to a kind; a new kind with special words is one entry there.

use std::collections::BTreeMap;

use lucce_export::ToolNames;
use lucce_tracelog::{EventType, EventTypeId};

use crate::code::type_name;

/// The type of allocations by bytecode: their site has the allocated type.
pub const ALLOCATION: EventTypeId = EventTypeId(0);

/// Units of values: bytes and nanoseconds. Programs choose other units.
const BYTES: &str = "bytes";
const NANOS: &str = "ns";

/// Properties of a kind that the log does not record.
pub struct KindDescriptor {
    pub name: &'static str,
    /// Unit of its values; empty: events have no values.
    pub unit: &'static str,
    /// The kind that has the durations of the same events, shown as one more column.
    pub times: Option<&'static str>,
    /// Whether its events start threads or submit tasks: traces continue there.
    pub starts: bool,
    /// Its names in other tools.
    pub words: ToolNames,
}

const PLAIN: KindDescriptor = KindDescriptor {
    name: "",
    unit: "",
    times: None,
    starts: false,
    words: ToolNames::NONE,
};

/// Allocations, the kind that is shown first. Allocations by bytecode have the predefined type [`ALLOCATION`].
pub const ALLOC: &KindDescriptor = &KindDescriptor {
    name: "alloc",
    unit: BYTES,
    words: ToolNames {
        pprof: Some(["alloc_objects", "alloc_space"]),
        jfr: |_| Some("jdk.ObjectAllocationSample"),
    },
    ..PLAIN
};

/// Sampled objects that were alive when the log last recorded them. They have records of their own, not counters.
pub const INUSE: &KindDescriptor = &KindDescriptor {
    name: "inuse",
    unit: BYTES,
    words: ToolNames {
        pprof: Some(["inuse_objects", "inuse_space"]),
        ..ToolNames::NONE
    },
    ..PLAIN
};

/// Objects sampled for the search of leaks.
pub const LEAK: &KindDescriptor = &KindDescriptor {
    name: "leak",
    unit: BYTES,
    ..PLAIN
};

/// All kinds with special properties.
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
    /// The descriptor of a kind; unknown kinds have a plain one.
    #[must_use]
    pub fn for_kind(kind: &str) -> &'static KindDescriptor {
        let descriptor = KIND_DESCRIPTORS
            .iter()
            .find(|descriptor| descriptor.name == kind);
        descriptor.copied().unwrap_or(&PLAIN)
    }

    /// Whether `kind` names this kind.
    #[must_use]
    pub fn is_kind(&self, kind: &str) -> bool {
        self.name == kind
    }

    /// A total with this kind's name and unit.
    #[must_use]
    pub fn to_total(&self, count: u64) -> KindTotal {
        KindTotal {
            name: self.name.to_owned(),
            unit: self.unit.to_owned(),
            count,
        }
    }
}

/// An event type: kind, unit, and what the event happened to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeInfo {
    pub kind: String,
    /// Unit of its values: `bytes`, `ns`, a unit of the program, or nothing.
    pub unit: String,
    /// A Java type name, or other text.
    pub detail: Option<String>,
}

/// All types by id, with [`ALLOCATION`].
#[derive(Debug)]
pub struct EventTypeTable(BTreeMap<EventTypeId, TypeInfo>);

/// The number of events of a kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KindTotal {
    pub name: String,
    pub unit: String,
    pub count: u64,
}

impl TypeInfo {
    /// Whether values are durations.
    #[must_use]
    pub fn is_time(&self) -> bool {
        self.unit == NANOS
    }
}

impl KindTotal {
    /// Whether values are durations.
    #[must_use]
    pub fn is_time(&self) -> bool {
        self.unit == NANOS
    }

    #[must_use]
    pub fn is_bytes(&self) -> bool {
        self.unit == BYTES
    }

    /// The kind's special properties.
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
    /// Adds a type. `false`: the id already has another meaning.
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

/// Converts a descriptor to a Java type name; keeps the text after a space.
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
mod kinds_tests {
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
    fn each_kind_is_listed_once() {
        let names: std::collections::HashSet<_> =
            KIND_DESCRIPTORS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KIND_DESCRIPTORS.len());
        for descriptor in KIND_DESCRIPTORS {
            assert_eq!(
                KindDescriptor::for_kind(descriptor.name).name,
                descriptor.name
            );
            let times = descriptor
                .times
                .map(|times| KindDescriptor::for_kind(times).to_total(1));
            assert!(
                times.is_none_or(|times| times.is_time()),
                "{}",
                descriptor.name
            );
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
