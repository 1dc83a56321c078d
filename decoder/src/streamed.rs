//! Single events: what a log says of those in the stream beside it.

use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};
use std::ops::Range;

use lucce_callgraph::{ContextId, MethodId, SiteId};
use lucce_stream::{Event, Stream};
use lucce_tracelog::{Damage, EventTypeId, OpenError};

use crate::events::{Events, Share};
use crate::kinds::{ALLOCATION, TypeInfo};
use crate::profile::Profile;
use crate::traces::{Trace, Traces};

/// What the log says of events of one type in one context.
#[derive(Clone, Debug)]
pub struct Told {
    pub info: TypeInfo,
    /// The type that was allocated, locked, thrown, …
    pub detail: Option<String>,
    /// As far as the frames are in scope.
    pub trace: Trace,
    /// What each event has beside its value.
    each: i64,
}

impl Told {
    /// Of an event that is one of these, in the unit.
    #[must_use]
    pub fn value(&self, event: &Event) -> i64 {
        event.value.saturating_add(self.each)
    }

    /// How long the event lasted, in nanoseconds; it is over at its time.
    #[must_use]
    pub fn lasted(&self, event: &Event) -> Option<u64> {
        let is_time = self.info.is_time();
        is_time.then(|| u64::try_from(event.value).unwrap_or(0))
    }
}

/// Which events are meant.
pub struct Window<'w> {
    /// Nanoseconds since the start.
    pub times: Range<u64>,
    /// By the thread's name.
    pub is_thread: &'w dyn Fn(&str) -> bool,
}

impl Window<'_> {
    #[must_use]
    pub fn holds(&self, stream: &Stream, event: &Event) -> bool {
        let thread = stream.thread(event.thread);
        self.times.contains(&stream.since_start(event.clock))
            && thread.is_some_and(|thread| (self.is_thread)(&thread.name))
    }
}

impl Profile {
    /// The stream beside this profile's log.
    ///
    /// # Errors
    /// It is another run's.
    pub fn explains(&self, stream: &Stream) -> Result<(), OpenError> {
        let (log, events) = (&self.header, stream.header());
        match (log.pid, log.start) == (events.pid, events.start) {
            true => Ok(()),
            false => Err(OpenError::Damaged(Damage::at(
                16,
                "events of another run than the log's",
            ))),
        }
    }

    /// # Errors
    /// Why the log cannot say it, for the event at this place in the stream.
    pub fn tell(&self, traces: &mut Traces<'_>, event: &Event) -> Result<Told, Damage> {
        let failed = |reason: String| Damage::at(event.offset, reason);
        let info = self.types.get(event.event);
        let info = info.ok_or_else(|| {
            let id = event.event.0;
            failed(format!(
                "an event of type {id}, which the log does not explain"
            ))
        })?;
        let explained = traces.of(event.id).and_then(|trace| {
            let leaf = self.graph.caller(event.id, MethodId::EVENT)?;
            Ok((trace, leaf.map_or(SiteId::NONE, |(_, leaf)| leaf.site)))
        });
        let (trace, site) = explained.map_err(|e| {
            failed(format!(
                "an event of {}, which the log does not explain ({e})",
                self.number(event.id)
            ))
        })?;
        let each = match event.event {
            ALLOCATION => self.code.size(site).unwrap_or(0),
            _ => 0,
        };
        Ok(Told {
            info: info.clone(),
            detail: self.detail_at(event.event, site).map(str::to_owned),
            trace,
            each: i64::try_from(each).unwrap_or(i64::MAX),
        })
    }

    /// The stream's events as the log's counters count them, and the first that the log does not explain.
    #[must_use]
    pub fn streamed(&self, stream: &Stream, window: &Window<'_>) -> (Events, Option<Damage>) {
        let mut shares: HashMap<_, Share> = HashMap::new();
        let mut known = BTreeMap::new();
        let mut traces = Traces::new(self);
        let mut damage = None;
        let wanted = stream.events().filter(|event| window.holds(stream, event));
        for event in wanted {
            if let Err(found) = self.is_known(&mut traces, &mut known, &event) {
                damage.get_or_insert(found);
                continue;
            }
            let value = u64::try_from(event.value).unwrap_or(0);
            let share = shares.entry((event.id, event.event, event.lane));
            let share = share.or_insert(Share {
                id: event.id,
                thread: event.lane,
                event: event.event,
                offset: event.offset,
                count: 0,
                value: 0,
            });
            share.count += 1;
            share.value = share.value.saturating_add(value);
        }
        (Events::new(shares.into_values().collect()), damage)
    }

    /// Whether the log explains the event; the first time it is asked, why not.
    fn is_known(
        &self,
        traces: &mut Traces<'_>,
        known: &mut BTreeMap<(ContextId, EventTypeId), bool>,
        event: &Event,
    ) -> Result<(), Damage> {
        match known.entry((event.id, event.event)) {
            Entry::Occupied(known) if *known.get() => Ok(()),
            Entry::Occupied(_) => Err(Damage::at(event.offset, "an event of an unknown context")),
            Entry::Vacant(free) => {
                let is_known = self.types.get(event.event).is_some() && traces.of(event.id).is_ok();
                match *free.insert(is_known) {
                    true => Ok(()),
                    // Says why.
                    false => self.tell(traces, event).map(|_| ()),
                }
            }
        }
    }

    /// Events by kind that are counted, but for which the stream had no room. Only of streams that are full
    /// is this more than what happens just now.
    #[must_use]
    pub fn unstreamed(&self, stream: &Stream) -> BTreeMap<String, u64> {
        let mut left: BTreeMap<String, u64> = BTreeMap::new();
        for share in self.events.all() {
            if let Some(info) = self.types.get(share.event) {
                let left = left.entry(info.kind.clone()).or_default();
                *left = left.saturating_add(share.count);
            }
        }
        for event in stream.events() {
            let kind = self.types.get(event.event).map(|info| &info.kind);
            if let Some(left) = kind.and_then(|kind| left.get_mut(kind)) {
                *left = left.saturating_sub(1);
            }
        }
        left.retain(|_, left| *left > 0);
        left
    }
}
