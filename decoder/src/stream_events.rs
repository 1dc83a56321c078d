//! Explains single events of a stream by the log beside it.

use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};
use std::ops::Range;

use lucce_callgraph::{ContextId, MethodId, SiteId};
use lucce_stream::{EventStream, StreamEvent};
use lucce_tracelog::{EventTypeId, LogDamage, OpenError};

use crate::events::{ContextCounter, ContextCounters};
use crate::kinds::{ALLOCATION, TypeInfo};
use crate::profile::Profile;
use crate::traces::{TraceId, TraceTree};

/// The meaning of events of one type in one context.
#[derive(Clone, Debug)]
pub struct EventExplanation {
    pub info: TypeInfo,
    /// The allocated, locked or thrown type, or other detail.
    pub detail: Option<String>,
    /// The frames in scope.
    pub trace: TraceId,
    /// A constant that is added to each event's value, such as the size of an object.
    added_value: i64,
}

impl EventExplanation {
    /// The value of such an event, in the type's unit.
    #[must_use]
    pub fn event_value(&self, event: &StreamEvent) -> i64 {
        event.value.saturating_add(self.added_value)
    }

    /// The duration of the event in nanoseconds; the event ended at its time.
    #[must_use]
    pub fn event_duration(&self, event: &StreamEvent) -> Option<u64> {
        let is_time = self.info.is_time();
        is_time.then(|| u64::try_from(event.value).unwrap_or(0))
    }
}

/// A selection of events.
pub struct EventWindow<'w> {
    /// Nanoseconds since the start.
    pub times: Range<u64>,
    /// Selects threads by name.
    pub is_thread: &'w dyn Fn(&str) -> bool,
}

impl EventWindow<'_> {
    #[must_use]
    pub fn contains_event(&self, stream: &EventStream, event: &StreamEvent) -> bool {
        let thread = stream.thread_info(event.thread);
        self.times.contains(&stream.since_start(event.clock))
            && thread.is_some_and(|thread| (self.is_thread)(&thread.name))
    }
}

/// Checks that a stream belongs to this profile's run.
///
/// # Errors
/// The stream is of another run.
pub fn check_same_run(profile: &Profile, stream: &EventStream) -> Result<(), OpenError> {
    let (log, events) = (&profile.header, stream.header());
    match (log.pid, log.start) == (events.pid, events.start) {
        true => Ok(()),
        false => Err(OpenError::Damaged(LogDamage::at_offset(
            16,
            "events of another run than the log's",
        ))),
    }
}

/// Explains an event.
///
/// # Errors
/// The damage at the event's place in the stream, if the log does not explain the event.
pub fn explain_event(
    profile: &Profile,
    traces: &mut TraceTree<'_>,
    event: &StreamEvent,
) -> Result<EventExplanation, LogDamage> {
    let failed = |reason: String| LogDamage::at_offset(event.offset, reason);
    let info = profile.types.get(event.event);
    let info = info.ok_or_else(|| {
        let id = event.event.0;
        failed(format!(
            "an event of type {id}, which the log does not explain"
        ))
    })?;
    let explained = traces.insert_trace(event.id).and_then(|trace| {
        let leaf = profile.graph.find_caller(event.id, MethodId::EVENT)?;
        Ok((trace, leaf.map_or(SiteId::NONE, |(_, leaf)| leaf.site)))
    });
    let (trace, site) = explained.map_err(|e| {
        failed(format!(
            "an event of {}, which the log does not explain ({e})",
            profile.context_number(event.id)
        ))
    })?;
    let each = match event.event {
        ALLOCATION => profile.code.object_size(site).unwrap_or(0),
        _ => 0,
    };
    Ok(EventExplanation {
        info: info.clone(),
        detail: profile.event_detail(event.event, site).map(str::to_owned),
        trace,
        added_value: i64::try_from(each).unwrap_or(i64::MAX),
    })
}

/// Sums the stream's events to counters. Also returns the first damage: an event that the log does not explain.
#[must_use]
pub fn count_streamed_events(
    profile: &Profile,
    stream: &EventStream,
    window: &EventWindow<'_>,
) -> (ContextCounters, Option<LogDamage>) {
    let mut shares: HashMap<_, ContextCounter> = HashMap::new();
    let mut cache = BTreeMap::new();
    let mut traces = TraceTree::new(profile);
    let mut damage = None;
    let wanted = stream
        .iter_events()
        .filter(|event| window.contains_event(stream, event));
    for event in wanted {
        if let Err(found) = check_explained(profile, &mut traces, &mut cache, &event) {
            damage.get_or_insert(found);
            continue;
        }
        let value = u64::try_from(event.value).unwrap_or(0);
        let share = shares.entry((event.id, event.event, event.log_thread));
        let share = share.or_insert(ContextCounter {
            id: event.id,
            thread: event.log_thread,
            event: event.event,
            offset: event.offset,
            count: 0,
            value: 0,
        });
        share.count += 1;
        share.value = share.value.saturating_add(value);
    }
    (ContextCounters::new(shares.into_values().collect()), damage)
}

/// Checks that the log explains an event. Only the first check of an id returns the reason.
fn check_explained(
    profile: &Profile,
    traces: &mut TraceTree<'_>,
    cache: &mut BTreeMap<(ContextId, EventTypeId), bool>,
    event: &StreamEvent,
) -> Result<(), LogDamage> {
    match cache.entry((event.id, event.event)) {
        Entry::Occupied(cache) if *cache.get() => Ok(()),
        Entry::Occupied(_) => Err(LogDamage::at_offset(
            event.offset,
            "an event of an unknown context",
        )),
        Entry::Vacant(free) => {
            let is_known =
                profile.types.get(event.event).is_some() && traces.insert_trace(event.id).is_ok();
            match *free.insert(is_known) {
                true => Ok(()),
                // For the reason.
                false => explain_event(profile, traces, event).map(|_| ()),
            }
        }
    }
}

/// Counted events that the stream does not have, by kind. Unless the stream is full, these are only events of this
/// moment.
#[must_use]
pub fn count_unstreamed_events(profile: &Profile, stream: &EventStream) -> BTreeMap<String, u64> {
    let mut left: BTreeMap<String, u64> = BTreeMap::new();
    for share in profile.events.as_slice() {
        if let Some(info) = profile.types.get(share.event) {
            let left = left.entry(info.kind.clone()).or_default();
            *left = left.saturating_add(share.count);
        }
    }
    for event in stream.iter_events() {
        let kind = profile.types.get(event.event).map(|info| &info.kind);
        if let Some(left) = kind.and_then(|kind| left.get_mut(kind)) {
            *left = left.saturating_sub(1);
        }
    }
    left.retain(|_, left| *left > 0);
    left
}
