//! Sums a profile's events by kind and by what they happened to.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lucce_callgraph::SiteId;
use lucce_tracelog::{EventTypeId, ThreadId};

use crate::contexts::EventContext;
use crate::events::ContextCounters;
use crate::kinds::{ALLOC, ALLOCATION, KindTotal};
use crate::profile::Profile;

impl Profile {
    /// What one event adds to the counted value. For an allocation by bytecode it is the object's size, which the log has
    /// with the site. 0: values are in the counters, or sizes vary.
    #[must_use]
    pub fn value_per_event(&self, event: EventTypeId, site: SiteId) -> u64 {
        match event {
            ALLOCATION => self.code.object_size(site).unwrap_or(0),
            _ => 0,
        }
    }

    /// A thread's name, or its number if it has none.
    #[must_use]
    pub fn thread_name(&self, thread: ThreadId) -> String {
        let name = self.threads.get(&thread).map(|thread| thread.name.clone());
        let name = name.filter(|name| !name.is_empty());
        name.unwrap_or_else(|| format!("thread {}", thread.0))
    }

    /// The name of a thread of the run's stream; without one, its name in the log.
    #[must_use]
    pub fn stream_thread_name<'t>(
        &self,
        thread: &'t lucce_stream::StreamThreadInfo,
    ) -> Cow<'t, str> {
        match thread.name.is_empty() {
            true => self.thread_name(thread.log_thread).into(),
            false => (&*thread.name).into(),
        }
    }

    /// Kinds with events, the most frequent first.
    #[must_use]
    pub fn counted_kinds(&self) -> Vec<KindTotal> {
        let mut kinds: BTreeMap<&str, KindTotal> = BTreeMap::new();
        for share in self.events.as_slice() {
            let Some(info) = self.types.get(share.event) else {
                continue;
            };
            let kind = kinds.entry(&info.kind).or_insert_with(|| KindTotal {
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

    /// The kind that is shown by default: allocations if there are any, else the most frequent kind.
    #[must_use]
    pub fn main_kind(&self) -> KindTotal {
        let mut kinds = self.counted_kinds();
        let at = kinds.iter().position(|kind| ALLOC.is_kind(&kind.name));
        match (at, kinds.is_empty()) {
            (Some(at), _) => kinds.swap_remove(at),
            (None, false) => kinds.swap_remove(0),
            (None, true) => KindTotal::from_descriptor(ALLOC, 0),
        }
    }

    #[must_use]
    pub fn is_event_of_kind(&self, event: EventTypeId, kind: &str) -> bool {
        self.types.is_of_kind(event, kind)
    }

    /// The events of one kind.
    #[must_use]
    pub fn events_of_kind(&self, kind: &str) -> ContextCounters {
        self.events
            .filter_counters(|share| self.types.is_of_kind(share.event, kind))
    }

    /// What the events of a context happened to: the type that was allocated, locked, thrown, …
    #[must_use]
    pub fn context_detail(&self, context: &EventContext) -> Option<&str> {
        self.event_detail(context.event, context.site)
    }

    /// What events of a type at a site happened to.
    #[must_use]
    pub fn event_detail(&self, event: EventTypeId, site: SiteId) -> Option<&str> {
        match event {
            ALLOCATION => self.code.allocated_type(site),
            event => self.types.get(event)?.detail.as_deref(),
        }
    }
}
