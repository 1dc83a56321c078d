//! All events by stack trace.
//!
//! A trace may have several numbers: the encoder may forget an anchor and number it again, a line may have two call
//! sites, a class may be there twice by two loaders. Numbers whose traces have one content id are one context here.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use lucce_callgraph::{ContextId, DecodeError, MethodId, SiteId};
use lucce_contentid::StackId;
use lucce_tracelog::{EventTypeId, LogDamage};

use crate::events::{ContextCounter, ContextCounters};
use crate::fingerprint::{TraceFingerprint, join_halves, split_halves};
use crate::kinds::ALLOCATION;
use crate::profile::{Profile, ProgressTick};

/// The events of one stack trace, kind and type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventContext {
    /// The smallest number of this trace.
    pub id: ContextId,
    /// Its other numbers.
    pub aliases: Vec<ContextId>,
    /// The trace's content id; across threads that of the submitter's frames, too.
    pub stack: StackId,
    /// Where the events of the smallest number happened.
    pub site: SiteId,
    /// What these were.
    pub event: EventTypeId,
    pub count: u64,
    /// In the type's unit.
    pub value: u64,
}

/// See [`Profile::list_contexts`].
#[derive(Default, Debug)]
pub struct ContextList {
    pub list: Vec<EventContext>,
    /// Events without any frame in scope.
    pub outside: u64,
    /// Numbers with events that the log does not explain.
    pub unknown: Vec<(ContextId, DecodeError)>,
    /// The log's, or the first counter that it does not explain: what a number means is in the log
    /// before anything is counted under it.
    pub damage: Option<LogDamage>,
}

/// What [`Profile::list_contexts`] adds up to, without the list.
#[derive(Default, Debug)]
pub struct ContextSummary {
    /// Traces with events.
    pub traces: u64,
    /// Events, and the sum of their values, by type.
    by_type: BTreeMap<EventTypeId, (u64, u64)>,
    /// As of [`ContextList`].
    pub outside: u64,
    pub unknown: Vec<(ContextId, DecodeError)>,
    pub damage: Option<LogDamage>,
}

impl ContextSummary {
    #[must_use]
    pub fn event_count(&self) -> u64 {
        let counts = self.by_type.values().map(|(count, _)| *count);
        counts.fold(0, u64::saturating_add)
    }

    /// Events, and the sum of their values, by kind.
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
    /// Adds what others leave out of their list, and takes it from them.
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

/// What is kept of a trace. Halves of the content id, since a number of 128 bits is aligned to as many: an option, and a key
/// beside another word, would take half as much again.
struct TraceLeaf {
    stack: [u64; 2],
    /// Where the event happened.
    site: SiteId,
}

/// What of the events is in no list: see [`ContextList`].
#[derive(Default)]
struct UnlistedEvents {
    outside: u64,
    unknown: Vec<(ContextId, DecodeError)>,
    damage: Option<LogDamage>,
}

impl Profile {
    /// All contexts with events, in the order of their numbers. `tick` is told how many were
    /// decoded.
    #[must_use]
    pub fn list_contexts(&self, tick: ProgressTick<'_>) -> ContextList {
        self.list_contexts_of(&self.events, tick)
    }

    /// The contexts of some of the events.
    #[must_use]
    pub fn list_contexts_of(
        &self,
        events: &ContextCounters,
        tick: ProgressTick<'_>,
    ) -> ContextList {
        let mut contexts = ContextList::default();
        let mut known = HashMap::new();
        let mut names = EventNames::new(self);
        let aside = self.for_each_trace(events, tick, |stack, site, shares| {
            for shares in shares.chunk_by(|a, b| a.event == b.event) {
                let context = self.sum_counters(shares, site, stack);
                let at = known.entry((stack, names.number_event(context.event, site)));
                contexts.add_context(context, at);
            }
        });
        (contexts.outside, contexts.unknown) = (aside.outside, aside.unknown);
        contexts.damage = aside.damage;
        contexts
    }

    /// What all contexts add up to: of each no more is kept than its trace's content id.
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

    /// Hands over the events of each number, with its trace and where they happened; what is in no list.
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

    /// By number; none: it does not decode.
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
        self.fold_stacks(ids, tick, take)
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

    /// `shares`: of one context and type.
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
                    // One number may have events of two ids of one type, which then come one after the other.
                    if known.id != context.id && known.aliases.last() != Some(&context.id) {
                        known.aliases.push(context.id);
                    }
                    known.count = known.count.saturating_add(context.count);
                    known.value = known.value.saturating_add(context.value);
                }
            }
        }
    }
}

/// Numbers for what people call events: two are equal if the kinds are, and what the events happened to.
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
