//! Groups all events by stack trace.
//!
//! A trace may have several context ids: the encoder may forget an anchor and number it again, a line may have two call
//! sites, two loaders may load one class. Ids whose traces have one content id are one context here.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use lucce_callgraph::{ContextId, DecodeError, MethodId, SiteId};
use lucce_contentid::StackId;
use lucce_options::KindDescriptor;
use lucce_tracelog::{EventTypeId, LogDamage};

use crate::context_focus::{self, ContextFocus};
use crate::events::{ContextCounter, ContextCounters};
use crate::fingerprint::fold_stacks;
use crate::fingerprint::{TraceFingerprint, join_halves, split_halves};
use crate::kinds::ALLOCATION;
use crate::measure::Measure;
use crate::profile::{Profile, ProgressTick};

/// The events of one stack trace, kind and type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventContext {
    /// The smallest context id of this trace.
    pub id: ContextId,
    /// Its other context ids.
    pub aliases: Vec<ContextId>,
    /// The trace's content id. If submitters are distinguished, it includes the submitter's frames.
    pub stack: StackId,
    /// The site of the events of the smallest context id.
    pub site: SiteId,
    /// The type of the events.
    pub event: EventTypeId,
    pub count: u64,
    /// In the type's unit.
    pub value: u64,
    /// The longest value of the trace's events of this kind; 0: the kind has none.
    pub longest: u64,
}

/// The result of [`Profile::list_contexts`].
#[derive(Default, Debug)]
pub struct ContextList {
    pub list: Vec<EventContext>,
    /// Events without any frame in scope.
    pub outside: u64,
    /// Context ids with events that the log does not explain.
    pub unknown: Vec<(ContextId, DecodeError)>,
    /// The log's damage, or the first counter whose context id the log does not explain: a sound log explains an id before
    /// it counts events under it.
    pub damage: Option<LogDamage>,
}

/// The sums of [`Profile::list_contexts`], without the list.
#[derive(Default, Debug)]
pub struct ContextSummary {
    /// Traces with events.
    pub traces: u64,
    /// Number of events and sum of their values, by type.
    by_type: BTreeMap<EventTypeId, (u64, u64)>,
    /// This field and the next two: see [`ContextList`].
    pub outside: u64,
    pub unknown: Vec<(ContextId, DecodeError)>,
    pub damage: Option<LogDamage>,
}

impl EventContext {
    #[must_use]
    pub fn amount(&self, measure: Measure) -> u64 {
        measure.select_amount(self.value, self.count)
    }
}

impl ContextSummary {
    /// Number of events of the admitted types.
    #[must_use]
    pub fn event_count(&self, admits: impl Fn(EventTypeId) -> bool) -> u64 {
        let admitted = self.by_type.iter().filter(|(event, _)| admits(**event));
        admitted.fold(0, |sum: u64, (_, (count, _))| sum.saturating_add(*count))
    }

    /// Number of events and sum of their values, by kind.
    #[must_use]
    pub fn by_kind(&self, profile: &Profile) -> BTreeMap<String, (u64, u64)> {
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (event, sum) in &self.by_type {
            if let Some(info) = profile.types.get(*event) {
                add_sum(sums.entry(info.kind.clone()).or_default(), *sum);
            }
        }
        sums
    }
}

fn add_sum(sum: &mut (u64, u64), (count, value): (u64, u64)) {
    *sum = (sum.0.saturating_add(count), sum.1.saturating_add(value));
}

impl ContextList {
    /// Adds what `others` leave out of their list, and removes it there.
    pub fn add_left_out(&mut self, others: &mut ContextList) {
        self.outside = self.outside.saturating_add(others.outside);
        self.unknown.append(&mut others.unknown);
        self.unknown.sort_unstable_by_key(|(id, _)| *id);
        let damages = [self.damage.take(), others.damage.take()];
        let damages = damages.into_iter().flatten();
        self.damage = damages.min_by_key(|damage| damage.offset);
    }

    #[must_use]
    pub fn event_count(&self) -> u64 {
        self.list
            .iter()
            .fold(0, |sum, context| sum.saturating_add(context.count))
    }

    #[must_use]
    pub fn total_value(&self) -> u64 {
        self.list
            .iter()
            .fold(0, |sum, context| sum.saturating_add(context.value))
    }
}

/// A trace's content id and site. The id is split in halves: a 128-bit number is aligned to 16 bytes, so an `Option` or a
/// key with another word would take half as much memory again.
struct TraceLeaf {
    stack: [u64; 2],
    /// The site of the event.
    site: SiteId,
}

/// Events that are in no list; see [`ContextList`].
#[derive(Default)]
struct UnlistedEvents {
    outside: u64,
    unknown: Vec<(ContextId, DecodeError)>,
    damage: Option<LogDamage>,
}

impl Profile {
    /// Lists all contexts with events, in the order of their ids. Calls `tick` with the number of decoded ids.
    #[must_use]
    pub fn list_contexts(&self, tick: ProgressTick<'_>) -> ContextList {
        self.list_contexts_of(&self.events, tick)
    }

    /// Lists the contexts of some events.
    #[must_use]
    pub fn list_contexts_of(
        &self,
        events: &ContextCounters,
        tick: ProgressTick<'_>,
    ) -> ContextList {
        let mut contexts = ContextList::default();
        let mut cache = HashMap::new();
        let mut names = EventNames::new(self);
        let aside = self.for_each_trace(events, tick, |stack, site, shares| {
            for shares in shares.chunk_by(|a, b| a.event == b.event) {
                let context = self.sum_counters(shares, site, stack);
                let at = cache.entry((stack, names.number_event(context.event, site)));
                contexts.add_context(context, at);
            }
        });
        (contexts.outside, contexts.unknown) = (aside.outside, aside.unknown);
        contexts.damage = aside.damage;
        contexts
    }

    /// Finds the focus of each context, in the order of `ids`, on all processors. Without frames, it is empty.
    #[must_use]
    pub fn find_focus(&self, ids: &[ContextId]) -> Vec<ContextFocus> {
        context_focus::find_focus(self, ids)
    }

    /// Sums all contexts. Keeps only the content id of each trace in memory.
    #[must_use]
    pub fn summarize_contexts(&self, tick: ProgressTick<'_>) -> ContextSummary {
        let mut summary = ContextSummary::default();
        let mut traces = Vec::new();
        let aside = self.for_each_trace(&self.events, tick, |stack, site, shares| {
            traces.push(stack);
            for shares in shares.chunk_by(|a, b| a.event == b.event) {
                let context = self.sum_counters(shares, site, stack);
                let sum = summary.by_type.entry(context.event).or_default();
                add_sum(sum, (context.count, context.value));
            }
        });
        traces.sort_unstable();
        traces.dedup();
        summary.traces = traces.len() as u64;
        (summary.outside, summary.unknown) = (aside.outside, aside.unknown);
        summary.damage = aside.damage;
        summary
    }

    /// Calls `take` with the content id, site and counters of each context id. Returns the events that are in no list.
    fn for_each_trace(
        &self,
        events: &ContextCounters,
        tick: ProgressTick<'_>,
        mut take: impl FnMut([u64; 2], SiteId, &[ContextCounter]),
    ) -> UnlistedEvents {
        let ids = events.context_ids();
        let leaves = self.find_trace_leaves(&ids, tick);
        let mut aside = UnlistedEvents::default();
        for (id, leaf) in ids.into_iter().zip(leaves) {
            let shares = events.counters_of_context(id);
            match leaf {
                Some(TraceLeaf { stack, .. }) if self.is_outside(stack) => {
                    let counts = shares.iter().map(|share| share.count);
                    aside.outside = counts.fold(aside.outside, u64::saturating_add);
                }
                Some(TraceLeaf { stack, site }) => take(stack, site, shares),
                None => {
                    let error = self.graph.decode_context(id, MethodId::EVENT).err();
                    aside.unknown.extend(error.map(|error| (id, error)));
                }
            }
        }
        let damage = self.damage.clone();
        aside.damage = damage.or_else(|| self.find_unexplained_damage(&aside.unknown));
        aside
    }

    /// The leaf of each id's trace; `None`: the id does not decode.
    fn find_trace_leaves(
        &self,
        ids: &[ContextId],
        tick: ProgressTick<'_>,
    ) -> Vec<Option<TraceLeaf>> {
        let take = |printed: Result<TraceFingerprint, DecodeError>| {
            let printed = printed.ok()?;
            let site = printed.leaf.map_or(SiteId::NONE, |leaf| leaf.site);
            let stack = split_halves(printed.fingerprint);
            Some(TraceLeaf { stack, site })
        };
        fold_stacks(self, ids, tick, take)
    }

    /// Whether no frame of a trace is in scope.
    fn is_outside(&self, stack: [u64; 2]) -> bool {
        self.scope.is_partial() && join_halves(stack) == StackId::EMPTY
    }

    pub(crate) fn find_unexplained_damage(
        &self,
        unknown: &[(ContextId, DecodeError)],
    ) -> Option<LogDamage> {
        let places = unknown.iter().flat_map(|(id, error)| {
            let shares = self.events.counters_of_context(*id).iter();
            shares.map(move |share| (share.offset, id, error))
        });
        let (offset, id, error) = places.min_by_key(|(offset, ..)| *offset)?;
        let id = self.context_number(*id);
        let reason = format!("a counter of {id}, which the log does not explain ({error})");
        Some(LogDamage::at_offset(offset, reason))
    }

    /// Sums counters of one context and type.
    fn sum_counters(
        &self,
        shares: &[ContextCounter],
        site: SiteId,
        stack: [u64; 2],
    ) -> EventContext {
        let (id, event) = shares
            .first()
            .map_or_else(Default::default, |share| (share.id, share.event));
        let sum =
            |of: fn(&ContextCounter) -> u64| shares.iter().map(of).fold(0, u64::saturating_add);
        let count = sum(|share| share.count);
        let each = match event {
            ALLOCATION => self.code.object_size(site).unwrap_or(0),
            _ => 0,
        };
        let value = sum(|share| share.value).saturating_add(count.saturating_mul(each));
        EventContext {
            id,
            aliases: Vec::new(),
            stack: join_halves(stack),
            site,
            event,
            count,
            value,
            longest: self.longest_value(id, event),
        }
    }

    fn longest_value(&self, id: ContextId, event: EventTypeId) -> u64 {
        let Some(longest) = self.longest_values.get(&id) else {
            return 0;
        };
        let kind = self.types.get(event).map_or("", |info| &*info.kind);
        match KindDescriptor::for_kind(kind).longest {
            Some(_) => *longest,
            None => 0,
        }
    }
}

impl ContextList {
    fn add_context(&mut self, context: EventContext, at: Entry<'_, ([u64; 2], u32), usize>) {
        match at {
            Entry::Vacant(free) => {
                free.insert(self.list.len());
                self.list.push(context);
            }
            Entry::Occupied(index) => {
                if let Some(known) = self.list.get_mut(*index.get()) {
                    // One context id may have events of two type ids with one name; these come one after the other.
                    if known.id != context.id && known.aliases.last() != Some(&context.id) {
                        known.aliases.push(context.id);
                    }
                    known.count = known.count.saturating_add(context.count);
                    known.value = known.value.saturating_add(context.value);
                    known.longest = known.longest.max(context.longest);
                }
            }
        }
    }
}

/// Numbers for the names of events: two events have one number if kind and detail are equal.
struct EventNames<'p> {
    profile: &'p Profile,
    by_name: HashMap<(&'p str, Option<&'p str>), u32>,
    by_type: HashMap<(EventTypeId, SiteId), u32>,
}

impl<'p> EventNames<'p> {
    fn new(profile: &'p Profile) -> Self {
        EventNames {
            profile,
            by_name: HashMap::new(),
            by_type: HashMap::new(),
        }
    }

    fn number_event(&mut self, event: EventTypeId, site: SiteId) -> u32 {
        let EventNames {
            profile,
            by_name,
            by_type,
        } = self;
        let at = match event {
            ALLOCATION => site,
            _ => SiteId::NONE,
        };
        *by_type.entry((event, at)).or_insert_with(|| {
            let kind = profile.types.get(event).map_or("?", |info| &*info.kind);
            let next = by_name.len() as u32;
            let name = (kind, profile.event_detail(event, site));
            *by_name.entry(name).or_insert(next)
        })
    }
}
