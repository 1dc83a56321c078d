//! Several runs in one: contexts, types, threads and kinds are equal by their names.
//!
//! ```text
//! Profile ─┬─► Names: each text, method and frame once
//! Profile ─┤
//!          └─► Tree: each path of frames once ─► Counted: what each run counted, by node
//! ```
//! Reading order: `names`, this file, `sums` (amounts by context, method, class, …).

mod branches;
mod names;
mod sums;

use std::collections::HashMap;

use lucce_callgraph::{ContextId, SiteId};
use lucce_contentid::StackId;
use lucce_stream::Event;
use lucce_tracelog::{EventTypeId, RunId, ThreadId};

pub use branches::{Branch, Drawing};
pub(crate) use names::Numbered;
pub use names::{KindName, Names};
pub use sums::{By, Key, Measure};

use crate::events::Share;
use crate::frame::StackFrame;
use crate::kinds::{ALLOC, ALLOCATION};
use crate::profile::{Profile, Tick};
use crate::tree::{NodeId, Tree};

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
}

/// Events of one context, type and thread.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    pub node: NodeId,
    pub kind: u32,
    /// The type that was allocated, locked, …
    pub what: Option<u32>,
    pub thread: u32,
    pub id: ContextId,
    pub count: u64,
    /// In the kind's unit.
    pub value: u64,
}

/// What the events of a context are: node, kind and what they happened to.
pub type Meaning = (NodeId, u32, Option<u32>);

/// The nodes of a run's contexts and the sites of their events, in the order of their numbers; none: the log
/// does not explain the number.
type Places = Vec<Option<(NodeId, SiteId)>>;

impl Joined {
    /// Adds a run. `tick` is told how many contexts were decoded.
    pub fn add(&mut self, profile: &Profile, tick: Tick<'_>) {
        self.add_with(profile, tick, |_| ());
    }

    /// Adds a run; `then` may ask what single events of it are.
    pub fn add_with<T>(
        &mut self,
        profile: &Profile,
        tick: Tick<'_>,
        then: impl FnOnce(&mut dyn FnMut(&Event) -> Option<(Meaning, i64)>) -> T,
    ) -> T {
        let (places, unknown) = self.places(profile, tick);
        let mut labels = Labels::new(&mut self.names, profile);
        let mut counted = Vec::with_capacity(profile.events.all().len());
        for (shares, place) in profile.events.by_context().zip(&places) {
            if let Some(place) = place {
                let shares = shares.iter().filter(|share| share.count > 0);
                counted.extend(shares.map(|share| labels.counted(share, *place)));
            }
        }
        let ids = profile.events.ids();
        let place = |id| *places.get(ids.binary_search(&id).ok()?)?;
        let done = then(&mut |event| labels.meaning_of(place(event.id)?, event));
        self.runs.push(Run {
            id: profile.header.run,
            counted,
            unknown,
        });
        done
    }

    fn places(&mut self, profile: &Profile, tick: Tick<'_>) -> (Places, u64) {
        let (tree, mut unknown) = (&mut self.tree, 0);
        let mut grower = profile.grower(self.names.frames(profile));
        let places = profile.events.by_context().map(|shares| {
            tick(1);
            let (node, leaf) = grower
                .node(tree, shares.first()?.id)
                .inspect_err(|_| unknown += 1)
                .ok()?;
            Some((node, leaf.map_or(SiteId::NONE, |leaf| leaf.site)))
        });
        let places = places.collect();
        drop(grower);
        (places, unknown)
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

/// Names of one run's kinds, types and threads.
struct Labels<'p> {
    names: &'p mut Names,
    profile: &'p Profile,
    meanings: HashMap<(EventTypeId, SiteId), (u32, Option<u32>)>,
    threads: HashMap<ThreadId, u32>,
}

impl<'p> Labels<'p> {
    fn new(names: &'p mut Names, profile: &'p Profile) -> Self {
        // The kind that is in every log, so that a log without any event has one.
        let (name, unit) = (ALLOC.to_owned(), "bytes".to_owned());
        names.kinds.number(KindName { name, unit });
        Labels {
            names,
            profile,
            meanings: HashMap::new(),
            threads: HashMap::new(),
        }
    }

    fn counted(&mut self, share: &Share, (node, site): (NodeId, SiteId)) -> Counted {
        let (kind, what) = self.meaning(share.event, site);
        let each = self.profile.each(share.event, site);
        Counted {
            node,
            kind,
            what,
            thread: self.thread(share.thread),
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

    fn thread(&mut self, thread: ThreadId) -> u32 {
        let (names, profile) = (&mut self.names.threads, self.profile);
        *self
            .threads
            .entry(thread)
            .or_insert_with(|| names.number(profile.thread_name(thread)))
    }

    /// What a single event of the stream is, and its value.
    fn meaning_of(
        &mut self,
        (node, site): (NodeId, SiteId),
        event: &Event,
    ) -> Option<(Meaning, i64)> {
        let (kind, what) = self.meaning(event.event, site);
        let each = self.profile.each(event.event, site);
        let value = event.value.saturating_add_unsigned(each);
        Some(((node, kind, what), value))
    }
}
