//! Merges several runs into one profile: contexts, types, threads and kinds are equal by their names.
//!
//! ```text
//! Profile ─┬─► MergedNames: each text, method and frame once
//! Profile ─┤
//!          └─► CallTree: each path of frames once ─► MergedRun: each run's counters, by node
//! ```
//! Paths with equal content ids are one context, represented by the first: copies of a class by several loaders, and
//! hidden classes whose names differ from run to run.
//!
//! Reading order: `names`, `parallel_walk` (inserts contexts into the tree), this file, `group_sums` (amounts by context,
//! method, class, …), `branches` (call tree), `path_sums` (sums from other sources), `without_lines` (paths that differ
//! only in lines).

mod branches;
mod group_sums;
mod names;
mod parallel_walk;
mod path_sums;
mod without_lines;

use std::collections::HashMap;

use lucce_callgraph::{ContextId, DecodeError, SiteId};
use lucce_contentid::StackId;
use lucce_stream::StreamEvent;
use lucce_tracelog::{EventTypeId, RunId, ThreadId};

pub use branches::{CallTreeBranch, CallTreeOptions};
pub use group_sums::GroupKey;
pub use names::ValueInterner;
pub use names::{FrameIdentity, FrameName, KindName, MergedNames, TaggedThread};
pub use path_sums::PathSum;

use crate::call_tree::{CallTree, EqualStacks, NodeId};
use crate::contexts::ContextList;
use crate::events::{ContextCounter, ContextCounters};
use crate::frame::StackFrame;
use crate::idle::IdleContexts;
use crate::idle::find_idle_contexts;
use crate::kinds::{ALLOC, ALLOCATION};
use crate::measure::Measure;
use crate::profile::{Profile, ProgressTick};
use crate::tags::{format_thread_tags, request_of_tags};

/// The events of several runs.
#[derive(Default)]
pub struct MergedProfile {
    pub tree: CallTree,
    pub names: MergedNames,
    pub runs: Vec<MergedRun>,
}

/// The events of one run.
pub struct MergedRun {
    pub id: Option<RunId>,
    /// Counters in the order of their context ids.
    pub counters: Vec<MergedCounter>,
    /// Number of context ids that the log does not explain.
    pub unknown: u64,
    /// Number of events without any frame in scope, which are not counted.
    pub outside: u64,
    /// Whether its context ids can be decoded.
    pub has_numbers: bool,
}

/// Events of one context, type and thread.
#[derive(Clone, Copy, Debug)]
pub struct MergedCounter {
    pub node: NodeId,
    pub kind: u32,
    /// The allocated or locked type, or other detail.
    pub what: Option<u32>,
    /// Number of its thread and tags in [`MergedNames`].
    pub tagged_thread: u32,
    /// Whether the thread waits for work and the kind counts time.
    pub is_idle: bool,
    pub id: ContextId,
    pub count: u64,
    /// In the kind's unit.
    pub value: u64,
}

/// The meaning of a context's events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EventMeaning {
    pub node: NodeId,
    pub kind: u32,
    /// What they happened to: a type or other detail.
    pub what: Option<u32>,
    /// See [`MergedCounter::is_idle`].
    pub is_idle: bool,
}

impl MergedCounter {
    #[must_use]
    pub fn amount(&self, measure: Measure) -> u64 {
        measure.select_amount(self.value, self.count)
    }

    #[must_use]
    pub fn event_meaning(&self) -> EventMeaning {
        EventMeaning {
            node: self.node,
            kind: self.kind,
            what: self.what,
            is_idle: self.is_idle,
        }
    }
}

/// The positions of a run's contexts in the tree.
struct ContextPositions<'p> {
    profile: &'p Profile,
    /// Positions in the order of context ids; `None`: the context is left out.
    by_context: Vec<Option<ContextPosition>>,
    unknown: Vec<(ContextId, DecodeError)>,
    idle: IdleContexts,
}

/// The position of a context.
#[derive(Clone, Copy)]
struct ContextPosition {
    node: NodeId,
    /// The site of its events.
    site: SiteId,
}

impl MergedProfile {
    /// Adds a run. Calls `tick` with the number of decoded contexts.
    pub fn add_profile(&mut self, profile: &Profile, tick: ProgressTick<'_>) {
        self.add_profile_with(profile, tick, |_| ());
    }

    /// Adds a run without lines: traces that differ only in lines are one. All runs must be added this way.
    pub fn add_profile_without_lines(&mut self, profile: &Profile, tick: ProgressTick<'_>) {
        self.add_profile_by(profile, FrameIdentity::WithoutLines, tick, |_| ());
    }

    /// Adds a run; `then` can look up the meaning of single events.
    pub fn add_profile_with<T>(
        &mut self,
        profile: &Profile,
        tick: ProgressTick<'_>,
        then: impl FnOnce(&mut dyn FnMut(&StreamEvent) -> Option<(EventMeaning, i64)>) -> T,
    ) -> T {
        self.add_profile_by(profile, FrameIdentity::ByName, tick, then)
    }

    fn add_profile_by<T>(
        &mut self,
        profile: &Profile,
        apart: FrameIdentity,
        tick: ProgressTick<'_>,
        then: impl FnOnce(&mut dyn FnMut(&StreamEvent) -> Option<(EventMeaning, i64)>) -> T,
    ) -> T {
        let events = &profile.events;
        let (places, left_out) = self.insert_contexts(profile, events, apart, tick);
        let mut labels = RunNames::new(&mut self.names, profile);
        let counted = places.collect_counters(events, &mut labels);
        let ids = events.context_ids();
        let place = |id| *places.by_context.get(ids.binary_search(&id).ok()?)?;
        let done = then(&mut |event| {
            let place = place(event.id)?;
            let is_idle = places.idle.is_idle(event.id, event.event);
            labels.streamed_event_meaning(place, is_idle, event)
        });
        self.add_run(profile, counted, &left_out);
        done
    }

    /// Merges some events of one run; it has as many traces as [`Profile::list_contexts_of`] has contexts. Also returns
    /// what is left out, and why. Calls `tick` with the number of decoded contexts.
    #[must_use]
    pub fn from_events(
        profile: &Profile,
        events: &ContextCounters,
        tick: ProgressTick<'_>,
    ) -> (MergedProfile, ContextList) {
        let mut joined = MergedProfile::default();
        let left_out = joined.add_events(profile, events, tick);
        (joined, left_out)
    }

    /// Adds some events of a run as a run of their own. Returns what is left out, and why. Calls `tick` with the number
    /// of decoded contexts.
    pub fn add_events(
        &mut self,
        profile: &Profile,
        events: &ContextCounters,
        tick: ProgressTick<'_>,
    ) -> ContextList {
        let (places, left_out) = self.insert_contexts(profile, events, FrameIdentity::ByName, tick);
        let mut labels = RunNames::new(&mut self.names, profile);
        let counted = places.collect_counters(events, &mut labels);
        self.add_run(profile, counted, &left_out);
        left_out
    }

    fn add_run(&mut self, profile: &Profile, counted: Vec<MergedCounter>, left_out: &ContextList) {
        self.runs.push(MergedRun {
            id: profile.header.run,
            counters: counted,
            unknown: left_out.unknown.len() as u64,
            outside: left_out.outside,
            has_numbers: true,
        });
    }

    /// Inserts the contexts of events into the tree. Returns their positions, and what a report of all contexts leaves
    /// out.
    fn insert_contexts<'p>(
        &mut self,
        profile: &'p Profile,
        events: &ContextCounters,
        apart: FrameIdentity,
        tick: ProgressTick<'_>,
    ) -> (ContextPositions<'p>, ContextList) {
        let walked =
            parallel_walk::walk_contexts(self, profile, apart, &events.context_ids(), tick);
        let mut places = ContextPositions {
            profile,
            by_context: walked.positions,
            unknown: walked.unknown,
            idle: find_idle_contexts(profile, events),
        };
        let left_out = places.take_left_out(events);
        let mut equal = self.equal_stacks();
        for place in places.by_context.iter_mut().flatten() {
            place.node = equal.first_node(place.node);
        }
        (places, left_out)
    }

    /// The representatives of nodes with equal content ids, among the nodes with events.
    fn equal_stacks(&self) -> EqualStacks {
        let frames = self.names.frames.as_slice().iter();
        let frames: Vec<_> = frames.map(|frame| Some(frame.id)).collect();
        let mut equal = EqualStacks::new(&self.tree, &frames);
        for row in self.runs.iter().flat_map(|run| &run.counters) {
            equal.first_node(row.node);
        }
        equal
    }

    /// The content id of a path.
    #[must_use]
    pub fn stack_id(&self, node: NodeId) -> StackId {
        let mut frames = Vec::new();
        let mut at = node;
        while let Some((caller, key)) = self.tree.caller_and_frame(at) {
            frames.extend(self.names.frames.get(key.0).map(|frame| frame.id));
            at = caller;
        }
        let frames = frames.into_iter().rev();
        frames.fold(StackId::EMPTY, StackId::with_callee)
    }

    /// The resolved frames of a path, innermost first.
    #[must_use]
    pub fn path_frames(&self, node: NodeId) -> Vec<StackFrame> {
        let mut frames = Vec::new();
        let mut at = node;
        while let Some((caller, key)) = self.tree.caller_and_frame(at) {
            frames.extend(self.names.resolve_frame(key));
            at = caller;
        }
        frames
    }
}

impl ContextPositions<'_> {
    /// Returns what a report of all contexts leaves out, and removes the positions of events without any frame in scope.
    fn take_left_out(&mut self, events: &ContextCounters) -> ContextList {
        let mut left_out = ContextList::default();
        if self.profile.is_restricted() {
            for (shares, place) in events.by_context().zip(&mut self.by_context) {
                if place.is_some_and(|place| place.node == CallTree::ROOT) {
                    let counts = shares.iter().map(|share| share.count);
                    left_out.outside = counts.fold(left_out.outside, u64::saturating_add);
                    *place = None;
                }
            }
        }
        left_out.unknown = std::mem::take(&mut self.unknown);
        let damage = self.profile.damage.clone();
        left_out.damage =
            damage.or_else(|| self.profile.find_unexplained_damage(&left_out.unknown));
        left_out
    }

    fn collect_counters(
        &self,
        events: &ContextCounters,
        labels: &mut RunNames<'_>,
    ) -> Vec<MergedCounter> {
        let mut counted = Vec::with_capacity(events.as_slice().len());
        for (number, shares) in events.by_context().enumerate() {
            let Some(place) = self.by_context.get(number).copied().flatten() else {
                continue;
            };
            let shares = shares.iter().filter(|share| share.count > 0);
            counted.extend(shares.map(|share| {
                let is_idle = self.idle.is_idle(share.id, share.event);
                labels.merge_counter(share, place, is_idle)
            }));
        }
        counted
    }
}

/// Names of one run's kinds, types and threads.
struct RunNames<'p> {
    names: &'p mut MergedNames,
    profile: &'p Profile,
    meanings: HashMap<(EventTypeId, SiteId), (u32, Option<u32>)>,
    tagged_threads: HashMap<ThreadId, u32>,
}

impl<'p> RunNames<'p> {
    fn new(names: &'p mut MergedNames, profile: &'p Profile) -> Self {
        // Every log has this kind, so that a log without events has one.
        let (name, unit) = (ALLOC.name.to_owned(), ALLOC.unit.to_owned());
        names.kinds.intern_value(KindName { name, unit });
        RunNames {
            names,
            profile,
            meanings: HashMap::new(),
            tagged_threads: HashMap::new(),
        }
    }

    fn merge_counter(
        &mut self,
        share: &ContextCounter,
        place: ContextPosition,
        is_idle: bool,
    ) -> MergedCounter {
        let ContextPosition { node, site } = place;
        let (kind, what) = self.number_kind_and_type(share.event, site);
        let each = self.profile.value_per_event(share.event, site);
        MergedCounter {
            node,
            kind,
            what,
            tagged_thread: self.number_tagged_thread(share.thread),
            is_idle,
            id: share.id,
            count: share.count,
            value: share.value.saturating_add(share.count.saturating_mul(each)),
        }
    }

    /// The numbers of an event's kind and detail.
    fn number_kind_and_type(&mut self, event: EventTypeId, site: SiteId) -> (u32, Option<u32>) {
        let at = match event {
            ALLOCATION => site,
            _ => SiteId::NONE,
        };
        if let Some(known) = self.meanings.get(&(event, at)) {
            return *known;
        }
        let info = self.profile.types.get(event);
        let (name, unit) = info.map_or(("?", ""), |info| (&*info.kind, &*info.unit));
        let kind = KindName {
            name: name.to_owned(),
            unit: unit.to_owned(),
        };
        let what = self.profile.event_detail(event, site);
        let meaning = (
            self.names.kinds.intern_value(kind),
            what.map(|what| self.names.types.intern_value(what.to_owned())),
        );
        self.meanings.insert((event, at), meaning);
        meaning
    }

    fn number_tagged_thread(&mut self, thread: ThreadId) -> u32 {
        let (names, profile) = (&mut *self.names, self.profile);
        *self.tagged_threads.entry(thread).or_insert_with(|| {
            let tags = format_thread_tags(profile, thread);
            let tagged_thread = TaggedThread {
                thread: names.threads.intern_value(profile.thread_name(thread)),
                request: names.requests.intern_value(request_of_tags(&tags)),
                tags: names.tags.intern_value(tags),
            };
            names.tagged_threads.intern_value(tagged_thread)
        })
    }

    /// The meaning and value of a single event of the stream.
    fn streamed_event_meaning(
        &mut self,
        ContextPosition { node, site }: ContextPosition,
        is_idle: bool,
        event: &StreamEvent,
    ) -> Option<(EventMeaning, i64)> {
        let (kind, what) = self.number_kind_and_type(event.event, site);
        let each = self.profile.value_per_event(event.event, site);
        let value = event.value.saturating_add_unsigned(each);
        let meaning = EventMeaning {
            node,
            kind,
            what,
            is_idle,
        };
        Some((meaning, value))
    }
}
