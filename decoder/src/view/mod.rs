//! One page for a browser that shows a run, or how two runs differ: all data in one file, nothing loaded.
//!
//! ```text
//! Profile ─► Tree of all runs ─► the heaviest nodes, and sums of the rest ─► columns ─► page
//! ```
//! Reading order: `names` (texts, methods and frames, each once), `heavy` (which nodes the page has),
//! `columns` (the data as the page reads them), `gather` (sums by context), `line` (events over time),
//! `html` (the file).

mod columns;
mod gather;
mod heavy;
mod html;
mod line;
mod names;

use std::collections::HashMap;

use lucce_callgraph::{ContextId, SiteId};
use lucce_stream::Stream;
use lucce_tracelog::EventTypeId;

pub use columns::{LeakText, LeaksText, RunText};

use crate::events::Share;
use crate::kinds::{ALLOC, ALLOCATION};
use crate::profile::{Profile, Tick};
use crate::tree::{NodeId, Tree};
use columns::{Data, KindSums, Methods};
use gather::Gathered;
use heavy::Heavy;
use names::{KindName, Names};

/// So many nodes of the tree are in a page, the heaviest of all; those below them are summed up.
const NODES: usize = 60_000;

/// A page in the making.
#[derive(Default)]
pub struct Page {
    tree: Tree,
    names: Names,
    runs: Vec<Run>,
    leaks: Option<LeaksText>,
}

/// What one run counted.
struct Run {
    text: RunText,
    id: Option<crate::RunId>,
    counted: Vec<Counted>,
    steps: Option<line::Steps>,
}

/// Events of one context, type and thread, by the names of the page.
#[derive(Clone, Copy)]
struct Counted {
    node: NodeId,
    kind: u32,
    /// The type that was allocated, locked, …
    what: Option<u32>,
    thread: u32,
    id: ContextId,
    count: u64,
    value: u64,
}

/// What a context's number and the type of its events are in the page: node, kind and what.
type Meaning = (NodeId, u32, Option<u32>);

impl Page {
    /// Adds a run; of two, the older one first. `tick` is told how many contexts were decoded.
    pub fn add(
        &mut self,
        mut text: RunText,
        profile: &Profile,
        stream: Option<&Stream>,
        tick: Tick<'_>,
    ) {
        let (places, unknown) = self.places(profile, tick);
        if unknown > 0 {
            let note = format!("{unknown} numbers that the log does not explain are left out");
            text.notes.push(note);
        }
        let mut labels = Labels::new(&mut self.names, profile);
        let mut counted = Vec::with_capacity(profile.events.all().len());
        for (shares, place) in profile.events.by_context().zip(&places) {
            if let Some(place) = place {
                let shares = shares.iter().filter(|share| share.count > 0);
                counted.extend(shares.map(|share| labels.counted(share, *place)));
            }
        }
        let steps = stream.map(|stream| {
            let ids = profile.events.ids();
            let place = |id| *places.get(ids.binary_search(&id).ok()?)?;
            line::Steps::new(stream, |event| labels.meaning_of(place(event.id)?, event))
        });
        self.runs.push(Run {
            text,
            id: profile.header.run,
            counted,
            steps,
        });
    }

    /// Nodes of all contexts, in the order of the events, and how many the log does not explain.
    fn places(
        &mut self,
        profile: &Profile,
        tick: Tick<'_>,
    ) -> (Vec<Option<(NodeId, SiteId)>>, u64) {
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

    /// What was found to leak in the newest run.
    pub fn leaks(&mut self, leaks: LeaksText) {
        self.leaks = Some(leaks);
    }

    /// The file.
    #[must_use]
    pub fn html(&self) -> String {
        let files: Vec<_> = self.runs.iter().map(|run| run.text.file.as_str()).collect();
        html::page(&format!("lucce: {}", files.join(" and ")), &self.data())
    }

    fn data(&self) -> Data {
        let kinds = self.kinds();
        let heavy = self.heavy(&kinds);
        let mut gathered = Gathered::new(&self.tree, &heavy, &self.names);
        for (run, of) in self.runs.iter().enumerate() {
            gathered.add(run as u32, of.id, &of.counted);
        }
        let stream = self.runs.last().and_then(|run| {
            let steps = run.steps.as_ref()?;
            Some(steps.columns(self.runs.len() - 1, kinds.len(), &mut gathered))
        });
        let main_kind = kinds
            .iter()
            .position(|kind| kind.name == ALLOC && !kind.is_empty());
        let (nodes, contexts, shares, rest) = gathered.columns();
        Data {
            schema: "lucce-page",
            version: 1,
            runs: self.runs.iter().map(|run| run.text.clone()).collect(),
            main_kind: main_kind.unwrap_or_else(|| most_frequent(&kinds)),
            kinds,
            classes: self.names.classes.all().to_vec(),
            methods: Methods::new(&self.names),
            types: self.names.types.all().to_vec(),
            threads: self.names.threads.all().to_vec(),
            nodes,
            contexts,
            shares,
            rest,
            leaks: self.leaks.clone(),
            stream,
        }
    }

    fn kinds(&self) -> Vec<KindSums> {
        let runs = self.runs.len();
        let named = self.names.kinds.all().iter();
        let mut kinds: Vec<_> = named.map(|kind| KindSums::new(kind, runs)).collect();
        for (run, of) in self.runs.iter().enumerate() {
            for row in &of.counted {
                if let Some(kind) = kinds.get_mut(row.kind as usize) {
                    kind.add(run, row.count, row.value);
                }
            }
        }
        kinds
    }

    fn heavy(&self, kinds: &[KindSums]) -> Heavy {
        let totals: Vec<_> = kinds.iter().map(KindSums::totals).collect();
        let counted = self.runs.iter().flat_map(|run| &run.counted);
        Heavy::new(
            &self.tree,
            heavy::weights(&self.tree, counted, &totals),
            NODES,
        )
    }
}

fn most_frequent(kinds: &[KindSums]) -> usize {
    let counts = kinds.iter().map(|kind| kind.totals().0);
    let most = counts
        .enumerate()
        .max_by_key(|(at, count)| (*count, usize::MAX - at));
    most.map_or(0, |(at, _)| at)
}

/// Names of one run's kinds, types and threads.
struct Labels<'p> {
    names: &'p mut Names,
    profile: &'p Profile,
    meanings: HashMap<(EventTypeId, SiteId), (u32, Option<u32>)>,
    threads: HashMap<lucce_tracelog::ThreadId, u32>,
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
        let each = match share.event {
            ALLOCATION => self.profile.code.size(site).unwrap_or(0),
            _ => 0,
        };
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
            name: names::plain(name),
            unit: names::plain(unit),
        };
        let what = self.profile.detail_at(event, site);
        let meaning = (
            self.names.kinds.number(kind),
            what.map(|what| self.names.types.number(names::plain(what))),
        );
        self.meanings.insert((event, at), meaning);
        meaning
    }

    fn thread(&mut self, thread: lucce_tracelog::ThreadId) -> u32 {
        let (names, threads) = (&mut self.names.threads, &self.profile.threads);
        *self.threads.entry(thread).or_insert_with(|| {
            let name = threads
                .get(&thread)
                .map(|thread| names::plain(&thread.name));
            names.number(name.unwrap_or_else(|| format!("thread {}", thread.0)))
        })
    }

    /// What a single event of the stream is, and its value.
    fn meaning_of(
        &mut self,
        (node, site): (NodeId, SiteId),
        event: &lucce_stream::Event,
    ) -> Option<(Meaning, i64)> {
        let (kind, what) = self.meaning(event.event, site);
        let each = match event.event {
            ALLOCATION => self.profile.code.size(site).unwrap_or(0),
            _ => 0,
        };
        let value = event.value.saturating_add_unsigned(each);
        Some(((node, kind, what), value))
    }
}
