//! Kinds of events: allocations, locks, exceptions, and whatever a program counts by itself.

use std::collections::BTreeMap;

use lucce_callgraph::SiteId;
use lucce_tracelog::{EventType, EventTypeId, ThreadId};

use crate::code::type_name;
use crate::contexts::{Context, Contexts};
use crate::events::Events;
use crate::profile::Profile;

/// Allocations: those by bytecode have no type of their own, [`ALLOCATION`].
pub const ALLOC: &str = "alloc";
/// What was read and written: values are bytes; and the same operations, where values are their time.
pub const IO: &str = "io";
pub const IO_TIME: &str = "io-time";
/// What is allocated is known of the site.
pub const ALLOCATION: EventTypeId = EventTypeId(0);

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
pub struct Kind {
    pub name: String,
    pub unit: String,
    pub count: u64,
}

impl Default for Types {
    fn default() -> Self {
        let allocation = TypeInfo {
            kind: ALLOC.into(),
            unit: "bytes".into(),
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

    fn is(&self, event: EventTypeId, kind: &str) -> bool {
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

impl Profile {
    /// What one event adds to the value that was counted: of an allocation by bytecode, the object's size, which the
    /// log says of its site. 0: events carry their values themselves, or the size is not always the same.
    pub(crate) fn each(&self, event: EventTypeId, site: SiteId) -> u64 {
        match event {
            ALLOCATION => self.code.size(site).unwrap_or(0),
            _ => 0,
        }
    }

    /// Its name; of a thread without one, its number.
    pub(crate) fn thread_name(&self, thread: ThreadId) -> String {
        let name = self.threads.get(&thread).map(|thread| thread.name.clone());
        let name = name.filter(|name| !name.is_empty());
        name.unwrap_or_else(|| format!("thread {}", thread.0))
    }

    /// Kinds that were counted, the most frequent first.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        let mut kinds: BTreeMap<&str, Kind> = BTreeMap::new();
        for share in self.events.all() {
            let Some(info) = self.types.get(share.event) else {
                continue;
            };
            let kind = kinds.entry(&info.kind).or_insert_with(|| Kind {
                name: info.kind.clone(),
                unit: info.unit.clone(),
                count: 0,
            });
            kind.count = kind.count.saturating_add(share.count);
        }
        let mut kinds: Vec<_> = kinds.into_values().filter(|kind| kind.count > 0).collect();
        kinds.sort_by(|a, b| (b.count, &a.name).cmp(&(a.count, &b.name)));
        kinds
    }

    /// The kind that is shown if none is asked for: allocations if there are any, else the most
    /// frequent one.
    #[must_use]
    pub fn main_kind(&self) -> Kind {
        let mut kinds = self.kinds();
        let at = kinds.iter().position(|kind| kind.name == ALLOC);
        match (at, kinds.is_empty()) {
            (Some(at), _) => kinds.swap_remove(at),
            (None, false) => kinds.swap_remove(0),
            (None, true) => Kind {
                name: ALLOC.into(),
                unit: "bytes".into(),
                count: 0,
            },
        }
    }

    pub(crate) fn is_of(&self, event: EventTypeId, kind: &str) -> bool {
        self.types.is(event, kind)
    }

    /// The events of one kind.
    #[must_use]
    pub fn events_of(&self, kind: &str) -> Events {
        self.events
            .filtered(|share| self.types.is(share.event, kind))
    }

    /// What the events of a context happened to: the type that was allocated, locked, thrown, …
    #[must_use]
    pub fn detail(&self, context: &Context) -> Option<&str> {
        self.detail_at(context.event, context.site)
    }

    /// The same of events of a type at a site.
    pub(crate) fn detail_at(&self, event: EventTypeId, site: SiteId) -> Option<&str> {
        match event {
            ALLOCATION => self.code.allocated(site),
            event => self.types.get(event)?.detail.as_deref(),
        }
    }

    /// The sum of values, by kind.
    #[must_use]
    pub fn values(&self, contexts: &Contexts) -> BTreeMap<String, u64> {
        self.sums(contexts, |context| context.value)
    }

    /// How many events, by kind.
    #[must_use]
    pub fn counts(&self, contexts: &Contexts) -> BTreeMap<String, u64> {
        self.sums(contexts, |context| context.count)
    }

    fn sums(&self, contexts: &Contexts, of: fn(&Context) -> u64) -> BTreeMap<String, u64> {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for context in &contexts.list {
            if let Some(info) = self.types.get(context.event) {
                let sum = sums.entry(info.kind.clone()).or_default();
                *sum = sum.saturating_add(of(context));
            }
        }
        sums
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
