//! One page for a browser that shows a run, or how two runs differ: all data in one file, nothing loaded.
//!
//! ```text
//! Profile ─► Joined: all runs ─► the heaviest nodes, and sums of the rest ─► columns ─► page
//! ```
//! Reading order: `heavy` (which nodes the page has), `columns` (the data as the page reads them), `gather` (sums by context), `line` (events over time),
//! `html` (the file).

mod columns;
mod gather;
mod heavy;
mod html;
mod line;

use lucce_stream::Stream;

pub use columns::{
    AliveTable, AliveText, LeakText, LeaksText, Opening, Refresh, RunText, SuspectText,
};

use crate::escape::Text;
use crate::joined::{Joined, PathSum};
use crate::kinds::ALLOC;
use crate::profile::{Profile, Tick};
use columns::{Data, KindSums, Methods};
use gather::Gathered;
use heavy::Heavy;

/// So many nodes of the tree are in a page, the heaviest of all; those below them are summed up.
const NODES: usize = 60_000;

/// A page in the making.
#[derive(Default)]
pub struct Page {
    joined: Joined,
    texts: Vec<RunText>,
    /// Of the newest run.
    steps: Option<line::Steps>,
    leaks: Option<LeaksText>,
    live: Option<Refresh>,
    opening: Option<Opening>,
}

impl Page {
    /// Adds a run; of two, the older one first. `tick` is told how many contexts were decoded.
    pub fn add(
        &mut self,
        mut text: RunText,
        profile: &Profile,
        stream: Option<&Stream>,
        tick: Tick<'_>,
    ) {
        self.steps = self.joined.add_with(profile, tick, |meaning| {
            stream.map(|stream| line::Steps::new(stream, meaning))
        });
        let run = self.joined.runs.last();
        let (unknown, outside) = run.map_or((0, 0), |run| (run.unknown, run.outside));
        if unknown > 0 {
            let note = format!("{unknown} numbers that the log does not explain are left out");
            text.notes.push(note);
        }
        if outside > 0 {
            let note =
                format!("Events without any frame of these classes are left out: {outside}.");
            text.notes.push(note);
        }
        self.texts.push(text);
    }

    /// Adds sums by path as those of a run.
    pub fn add_paths(&mut self, text: RunText, sums: &[PathSum]) {
        self.joined.add_paths(sums);
        self.steps = None;
        self.texts.push(text);
    }

    /// What was found to leak in the newest run.
    pub fn leaks(&mut self, leaks: LeaksText) {
        self.leaks = Some(leaks);
    }

    /// From now on it is the page of a JVM that runs, and asks for newer data where it came from. Of its two runs the first is
    /// what was counted lately, the second what was counted since the start.
    pub fn live(&mut self, live: Refresh) {
        self.live = Some(live);
    }

    /// What the page shows when it is opened.
    pub fn opens(&mut self, opening: Opening) {
        self.opening = Some(opening);
    }

    /// The file.
    #[must_use]
    pub fn html(&self) -> String {
        let mut files: Vec<_> = self.texts.iter().map(|text| text.file.as_str()).collect();
        files.dedup();
        let title = format!("lucce: {}", files.join(" and "));
        html::page(&title, &Page::policy(self.live.is_some()), &self.data())
    }

    /// The data of a page, alone.
    #[must_use]
    pub fn json(&self) -> String {
        // The data have no value that JSON cannot say.
        serde_json::to_string(&self.data()).unwrap_or_default()
    }

    /// What a page may run and load (its content security policy): its own script and style, and nothing. `is_live`: newer data from
    /// where the page came from.
    #[must_use]
    pub fn policy(is_live: bool) -> String {
        html::policy(is_live)
    }

    fn data(&self) -> Data {
        let kinds = self.kinds();
        let heavy = self.heavy(&kinds);
        let mut gathered = Gathered::new(&self.joined, &heavy);
        for (run, of) in self.joined.runs.iter().enumerate() {
            gathered.add(run as u32, of);
        }
        let newest = self.texts.len().saturating_sub(1);
        let steps = self.steps.as_ref();
        let stream = steps.map(|steps| steps.columns(newest, kinds.len(), &mut gathered));
        let main_kind = kinds
            .iter()
            .position(|kind| ALLOC.is(&kind.name) && !kind.is_empty());
        let names = &self.joined.names;
        let (nodes, contexts, shares, rest) = gathered.columns(names.lanes.all());
        Data {
            schema: "lucce-page",
            version: 1,
            runs: self.texts.clone(),
            main_kind: main_kind.unwrap_or_else(|| most_frequent(&kinds)),
            kinds,
            classes: plain(names.classes.all()),
            methods: Methods::new(names),
            types: plain(names.types.all()),
            threads: plain(names.threads.all()),
            tags: plain(names.tags.all()),
            nodes,
            contexts,
            shares,
            rest,
            leaks: self.leaks.clone(),
            live: self.live.clone(),
            opening: self.opening.clone().filter(|opening| !opening.is_empty()),
            stream,
        }
    }

    fn kinds(&self) -> Vec<KindSums> {
        let runs = self.texts.len();
        let named = self.joined.names.kinds.all().iter();
        let mut kinds: Vec<_> = named.map(|kind| KindSums::new(kind, runs)).collect();
        for (run, of) in self.joined.runs.iter().enumerate() {
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
        let tree = &self.joined.tree;
        let counted = self.joined.runs.iter().flat_map(|run| &run.counted);
        Heavy::new(tree, heavy::weights(tree, counted, &totals), NODES)
    }
}

/// Names as a page may show them: without what changes the text around them.
fn plain(names: &[String]) -> Vec<String> {
    names.iter().map(|name| Text(name).to_string()).collect()
}

fn most_frequent(kinds: &[KindSums]) -> usize {
    let counts = kinds.iter().map(|kind| kind.totals().0);
    let most = counts
        .enumerate()
        .max_by_key(|(at, count)| (*count, usize::MAX - at));
    most.map_or(0, |(at, _)| at)
}
