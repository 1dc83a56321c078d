//! Several runs in one: contexts, types, threads and kinds are equal by their names.
//!
//! ```text
//! Profile ─┬─► Names: each text, method and frame once
//! Profile ─┤
//!          └─► Tree: each path of frames once ─► Counted: what each run counted, by node
//! ```
//! Paths whose content ids are equal are one context, whichever of them comes first: class loaders' copies of a class, hidden
//! classes whose names differ from run to run.
//!
//! Reading order: `names`, `walked` (contexts into the tree), this file, `sums` (amounts by context, method, class, …), `given` (sums that
//! come from elsewhere), `moved` (paths that differ in lines alone).

mod branches;
mod given;
mod moved;
mod names;
mod sums;
mod walked;

use std::collections::HashMap;

use lucce_callgraph::{ContextId, DecodeError, SiteId};
use lucce_contentid::StackId;
use lucce_stream::Event;
use lucce_tracelog::{EventTypeId, RunId, ThreadId};

pub use branches::{Branch, Drawing};
pub use given::PathSum;
pub(crate) use names::Numbered;
pub use names::{Apart, KindName, LaneName, Names};
pub use sums::{By, Key, Measure};

use crate::contexts::Contexts;
use crate::events::{Events, Share};
use crate::frame::StackFrame;
use crate::idle::IdleContexts;
use crate::kinds::{ALLOC, ALLOCATION};
use crate::profile::{Profile, Tick};
use crate::tree::{EqualStacks, NodeId, Tree};

/// What several runs counted.
#[derive(Default)]
pub struct Joined {
    pub tree: Tree,
    pub names: Names,
    pub runs: Vec<Run>,
}

/// What one run counted.
pub struct Run {
    pub id: Option<RunId>,
    /// In the order of the contexts' numbers.
    pub counted: Vec<Counted>,
    /// Numbers that the log does not explain.
    pub unknown: u64,
    /// Events without any frame in scope, which are not counted.
    pub outside: u64,
    /// Its contexts' numbers can be decoded.
    pub has_numbers: bool,
}

/// Events of one context, type and thread.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    pub node: NodeId,
    pub kind: u32,
    /// The type that was allocated, locked, …
    pub what: Option<u32>,
    /// Its thread and tags: see [`Names`].
    pub lane: u32,
    /// The thread waits for work, and the kind counts time.
    pub is_idle: bool,
    pub id: ContextId,
    pub count: u64,
    /// In the kind's unit.
    pub value: u64,
}

/// What the events of a context are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EventMeaning {
    pub node: NodeId,
    pub kind: u32,
    /// What they happened to.
    pub what: Option<u32>,
    /// As [`Counted::is_idle`].
    pub is_idle: bool,
}

impl Counted {
    #[must_use]
    pub fn meaning(&self) -> EventMeaning {
        EventMeaning {
            node: self.node,
            kind: self.kind,
            what: self.what,
            is_idle: self.is_idle,
        }
    }
}

/// Where the contexts of a run's events are in the tree.
struct Places<'p> {
    profile: &'p Profile,
    /// In the order of the contexts' numbers; none: it is left out.
    by_context: Vec<Option<JoinedPlace>>,
    unknown: Vec<(ContextId, DecodeError)>,
    idle: IdleContexts,
}

/// Where a context is.
#[derive(Clone, Copy)]
struct JoinedPlace {
    node: NodeId,
    /// That of its events.
    site: SiteId,
}

impl Joined {
    /// Adds a run. `tick` is told how many contexts were decoded.
    pub fn add(&mut self, profile: &Profile, tick: Tick<'_>) {
        self.add_with(profile, tick, |_| ());
    }

    /// Adds a run, whose traces have no lines: those that differ in them alone are one. Then all runs are added so.
    pub fn add_without_lines(&mut self, profile: &Profile, tick: Tick<'_>) {
        self.add_apart(profile, Apart::WithoutLines, tick, |_| ());
    }

    /// Adds a run; `then` may ask what single events of it are.
    pub fn add_with<T>(
        &mut self,
        profile: &Profile,
        tick: Tick<'_>,
        then: impl FnOnce(&mut dyn FnMut(&Event) -> Option<(EventMeaning, i64)>) -> T,
    ) -> T {
        self.add_apart(profile, Apart::ByName, tick, then)
    }

    fn add_apart<T>(
        &mut self,
        profile: &Profile,
        apart: Apart,
        tick: Tick<'_>,
        then: impl FnOnce(&mut dyn FnMut(&Event) -> Option<(EventMeaning, i64)>) -> T,
    ) -> T {
        let events = &profile.events;
        let (places, left_out) = self.place_contexts(profile, events, apart, tick);
        let mut labels = Labels::new(&mut self.names, profile);
        let counted = places.counted(events, &mut labels);
        let ids = events.ids();
        let place = |id| *places.by_context.get(ids.binary_search(&id).ok()?)?;
        let done = then(&mut |event| {
            let place = place(event.id)?;
            let is_idle = places.idle.holds(event.id, event.event);
            labels.meaning_of(place, is_idle, event)
        });
        self.add_run(profile, counted, &left_out);
        done
    }

    /// Some events of one run, with as many traces as [`Profile::contexts_of`] has contexts of them; and what else that says:
    /// what is left out and why. `tick` is told how many contexts were decoded.
    #[must_use]
    pub fn of_events(profile: &Profile, events: &Events, tick: Tick<'_>) -> (Joined, Contexts) {
        let mut joined = Joined::default();
        let (places, left_out) = joined.place_contexts(profile, events, Apart::ByName, tick);
        let mut labels = Labels::new(&mut joined.names, profile);
        let counted = places.counted(events, &mut labels);
        joined.add_run(profile, counted, &left_out);
        (joined, left_out)
    }

    fn add_run(&mut self, profile: &Profile, counted: Vec<Counted>, left_out: &Contexts) {
        self.runs.push(Run {
            id: profile.header.run,
            counted,
            unknown: left_out.unknown.len() as u64,
            outside: left_out.outside,
            has_numbers: true,
        });
    }

    /// Puts the contexts of events into the tree. Returns where they are, and what a report of all contexts leaves out.
    fn place_contexts<'p>(
        &mut self,
        profile: &'p Profile,
        events: &Events,
        apart: Apart,
        tick: Tick<'_>,
    ) -> (Places<'p>, Contexts) {
        let walked = walked::walk(self, profile, apart, &events.ids(), tick);
        let mut places = Places {
            profile,
            by_context: walked.places,
            unknown: walked.unknown,
            idle: profile.idle_contexts(events),
        };
        let left_out = places.leave_out(events);
        let mut equal = self.equal_stacks();
        for place in places.by_context.iter_mut().flatten() {
            place.node = equal.first_node(place.node);
        }
        (places, left_out)
    }

    /// The nodes that stand for all with an equal content id: those with events so far.
    fn equal_stacks(&self) -> EqualStacks {
        let frames = self.names.frames.all().iter();
        let frames: Vec<_> = frames.map(|frame| Some(frame.id)).collect();
        let mut equal = EqualStacks::new(&self.tree, &frames);
        for row in self.runs.iter().flat_map(|run| &run.counted) {
            equal.first_node(row.node);
        }
        equal
    }

    /// The content id of a path.
    #[must_use]
    pub fn stack(&self, node: NodeId) -> StackId {
        let mut frames = Vec::new();
        let mut at = node;
        while let Some((caller, key)) = self.tree.step(at) {
            frames.extend(self.names.frames.get(key.0).map(|frame| frame.id));
            at = caller;
        }
        let frames = frames.into_iter().rev();
        frames.fold(StackId::EMPTY, StackId::then)
    }

    /// The frames of a path as a person reads them, innermost first.
    #[must_use]
    pub fn trace(&self, node: NodeId) -> Vec<StackFrame> {
        let mut frames = Vec::new();
        let mut at = node;
        while let Some((caller, key)) = self.tree.step(at) {
            frames.extend(self.names.shown(key));
            at = caller;
        }
        frames
    }
}

impl Places<'_> {
    /// What a report of all contexts leaves out; events without any frame in scope are left out from now on.
    fn leave_out(&mut self, events: &Events) -> Contexts {
        let mut left_out = Contexts::default();
        if self.profile.is_restricted() {
            for (shares, place) in events.by_context().zip(&mut self.by_context) {
                if place.is_some_and(|place| place.node == Tree::ROOT) {
                    let counts = shares.iter().map(|share| share.count);
                    left_out.outside = counts.fold(left_out.outside, u64::saturating_add);
                    *place = None;
                }
            }
        }
        left_out.unknown = std::mem::take(&mut self.unknown);
        let damage = self.profile.damage.clone();
        left_out.damage = damage.or_else(|| self.profile.unexplained(&left_out.unknown));
        left_out
    }

    fn counted(&self, events: &Events, labels: &mut Labels<'_>) -> Vec<Counted> {
        let mut counted = Vec::with_capacity(events.all().len());
        for (number, shares) in events.by_context().enumerate() {
            let Some(place) = self.by_context.get(number).copied().flatten() else {
                continue;
            };
            let shares = shares.iter().filter(|share| share.count > 0);
            counted.extend(shares.map(|share| {
                let is_idle = self.idle.holds(share.id, share.event);
                labels.counted(share, place, is_idle)
            }));
        }
        counted
    }
}

/// Names of one run's kinds, types and threads.
struct Labels<'p> {
    names: &'p mut Names,
    profile: &'p Profile,
    meanings: HashMap<(EventTypeId, SiteId), (u32, Option<u32>)>,
    lanes: HashMap<ThreadId, u32>,
}

impl<'p> Labels<'p> {
    fn new(names: &'p mut Names, profile: &'p Profile) -> Self {
        // The kind that is in every log, so that a log without any event has one.
        let (name, unit) = (ALLOC.name.to_owned(), ALLOC.unit.to_owned());
        names.kinds.number(KindName { name, unit });
        Labels {
            names,
            profile,
            meanings: HashMap::new(),
            lanes: HashMap::new(),
        }
    }

    fn counted(&mut self, share: &Share, place: JoinedPlace, is_idle: bool) -> Counted {
        let JoinedPlace { node, site } = place;
        let (kind, what) = self.meaning(share.event, site);
        let each = self.profile.each(share.event, site);
        Counted {
            node,
            kind,
            what,
            lane: self.lane(share.thread),
            is_idle,
            id: share.id,
            count: share.count,
            value: share.value.saturating_add(share.count.saturating_mul(each)),
        }
    }

    /// Its kind, and what it happened to.
    fn meaning(&mut self, event: EventTypeId, site: SiteId) -> (u32, Option<u32>) {
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
        let what = self.profile.detail_at(event, site);
        let meaning = (
            self.names.kinds.number(kind),
            what.map(|what| self.names.types.number(what.to_owned())),
        );
        self.meanings.insert((event, at), meaning);
        meaning
    }

    fn lane(&mut self, thread: ThreadId) -> u32 {
        let (names, profile) = (&mut *self.names, self.profile);
        *self.lanes.entry(thread).or_insert_with(|| {
            let lane = LaneName {
                thread: names.threads.number(profile.thread_name(thread)),
                tags: names.tags.number(profile.tags_of(thread)),
            };
            names.lanes.number(lane)
        })
    }

    /// What a single event of the stream is, and its value.
    fn meaning_of(
        &mut self,
        JoinedPlace { node, site }: JoinedPlace,
        is_idle: bool,
        event: &Event,
    ) -> Option<(EventMeaning, i64)> {
        let (kind, what) = self.meaning(event.event, site);
        let each = self.profile.each(event.event, site);
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
