//! Kinds of events: allocations, locks, exceptions, and kinds that a program counts by itself.
//!
//! The log has each kind's name and unit, so unknown kinds are shown as well. `lucce_options::kinds` describes the known
//! kinds.

use std::collections::BTreeMap;

use lucce_callgraph::ContextId;
use lucce_options::KindDescriptor;
use lucce_options::kinds::{
    ALLOCATIONS, BYTES, CLASS_UNLOADS, CLASSES, FOLLOWED_OBJECTS, HEAP_SAMPLES, LIVE_OBJECTS,
    LOCK_HOLDERS, NANOS, is_supplement_kind,
};
use lucce_tracelog::{EventType, EventTypeId, split_lock_holder_detail};

use crate::code::type_name;

/// The type of allocations by bytecode: their site has the allocated type.
pub const ALLOCATION: EventTypeId = EventTypeId(0);

/// Allocations, the kind that is shown first. Allocations by bytecode have the predefined type [`ALLOCATION`].
pub const ALLOC: &KindDescriptor = &ALLOCATIONS;
/// Sampled objects that were alive when the log last recorded them. They have records of their own, not counters.
pub const INUSE: &KindDescriptor = &LIVE_OBJECTS;
/// Allocations that reached the heap, estimated from samples.
pub const HEAP: &KindDescriptor = &HEAP_SAMPLES;
/// Objects sampled for the search of leaks.
pub const LEAK: &KindDescriptor = &FOLLOWED_OBJECTS;

/// The loader of classes that have none.
const BOOT_LOADER: &str = "boot loader";

/// An event type: kind, unit, and what the event happened to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeInfo {
    pub kind: String,
    /// Unit of its values: `bytes`, `ns`, a unit of the program, or nothing.
    pub unit: String,
    /// A Java type name, or other text.
    pub detail: Option<String>,
    /// For holders of locks: the context that waits.
    pub waiting: Option<ContextId>,
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

/// The kinds whose events are listed by themselves. Durations of events whose bytes are listed are no kind of their own.
#[must_use]
pub fn select_own_kinds(kinds: &[KindTotal]) -> Vec<&KindTotal> {
    let times = kinds.iter().filter_map(|of| of.kind_descriptor().times);
    let times: Vec<_> = times.collect();
    let own = kinds.iter().filter(|kind| {
        let name = kind.name.as_str();
        !times.contains(&name) && !is_supplement_kind(name)
    });
    own.collect()
}

impl KindTotal {
    /// A total with a kind's name and unit.
    #[must_use]
    pub fn from_descriptor(kind: &KindDescriptor, count: u64) -> KindTotal {
        KindTotal {
            name: kind.name.to_owned(),
            unit: kind.unit.to_owned(),
            count,
        }
    }

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
            waiting: None,
        };
        EventTypeTable(BTreeMap::from([(ALLOCATION, allocation)]))
    }
}

impl EventTypeTable {
    /// Adds a type. `false`: the id already has another meaning.
    pub(crate) fn add_type(&mut self, event: EventType<'_>) -> bool {
        let holder =
            split_lock_holder_detail(&event.detail).filter(|_| LOCK_HOLDERS.is_kind(&event.kind));
        let (detail, waiting) = match holder {
            Some((wait, context)) => (wait, Some(context)),
            None => (&*event.detail, None),
        };
        let is_class = CLASSES.is_kind(&event.kind) || CLASS_UNLOADS.is_kind(&event.kind);
        let readable = match is_class && detail.starts_with('(') {
            true => format!("{BOOT_LOADER} {detail}"),
            false => readable_detail(detail),
        };
        let info = TypeInfo {
            detail: (!detail.is_empty()).then_some(readable),
            waiting,
            kind: event.kind.into(),
            unit: event.unit.into(),
        };
        *self.0.entry(event.id).or_insert(info.clone()) == info
    }

    #[must_use]
    pub fn get(&self, event: EventTypeId) -> Option<&TypeInfo> {
        self.0.get(&event)
    }

    pub(crate) fn has_kind(&self, kind: &str) -> bool {
        self.0.values().any(|info| info.kind == kind)
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

    #[test]
    fn kinds_that_say_more_about_others_are_not_listed() {
        let kind = |name: &str| KindTotal {
            name: name.into(),
            unit: String::new(),
            count: 1,
        };
        let kinds = [
            "alloc",
            "heap",
            "exception",
            "exception-catch",
            "io",
            "io-time",
            "job",
        ];
        let kinds = kinds.map(kind);
        let own = select_own_kinds(&kinds).into_iter();
        let own: Vec<_> = own.map(|kind| kind.name.as_str()).collect();
        assert_eq!(own, ["alloc", "exception", "io", "job"]);
    }
}
