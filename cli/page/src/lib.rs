//! A page for a browser that shows a run or the difference of two runs. One file has all data; the page loads nothing.
//!
//! ```text
//! Profile ─► MergedProfile: all runs ─► heaviest nodes, sums of the rest ─► columns ─► page
//! ```
//! Reading order: `heavy_nodes` (selects the nodes of the page), `own_paths` (own code of the others), `columns` (the data
//! as the page reads them), `page_sums` (sums by context), `timeline` (events over time), `html` (the file).

mod columns;
mod heavy_nodes;
mod html;
mod own_paths;
mod page_sums;
mod text_page;
mod timeline;

use lucce_stream::EventStream;

pub use html::escape_html;
pub use text_page::render_text_page;

pub use columns::{
    AliveTable, AliveText, FactCell, FactColumn, FactRow, FactTable, LeakText, LeaksText,
    PageOpening, PageRefresh, RunText, SuspectText,
};

use columns::{KindSums, MethodColumns, PageData, encode_class_origins};
use heavy_nodes::HeavyNodes;
use lucce_decoder::ALLOC;
use lucce_decoder::escape::EscapedText;
use lucce_decoder::{MergedNames, MergedProfile, PathSum};
use lucce_decoder::{Profile, ProgressTick, read_heap_interval};
use page_sums::PageSums;

/// Maximum number of nodes in a page: the heaviest; the nodes below them are summed up.
const MAX_NODES: usize = 60_000;

/// Builds a page.
#[derive(Default)]
pub struct HtmlPage {
    merged: MergedProfile,
    texts: Vec<RunText>,
    /// The newest run's events over time.
    steps: Option<timeline::EventTimeline>,
    leaks: Option<LeaksText>,
    facts: Vec<FactTable>,
    refresh: Option<PageRefresh>,
    opening: Option<PageOpening>,
    heap_interval: Option<u64>,
}

impl HtmlPage {
    /// Adds a run; the older of two runs comes first. Calls `tick` with the number of decoded contexts.
    pub fn add_profile(
        &mut self,
        mut text: RunText,
        profile: &Profile,
        stream: Option<&EventStream>,
        tick: ProgressTick<'_>,
    ) {
        self.steps = self.merged.add_profile_with(profile, tick, |meaning| {
            stream.map(|stream| timeline::EventTimeline::new(stream, meaning))
        });
        self.heap_interval = read_heap_interval(profile);
        let run = self.merged.runs.last();
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

    /// Adds sums by path as one run.
    pub fn add_paths(&mut self, text: RunText, sums: &[PathSum]) {
        self.merged.add_paths(sums);
        self.steps = None;
        self.texts.push(text);
    }

    /// Sets the leaks of the newest run.
    pub fn set_leaks(&mut self, leaks: LeaksText) {
        self.leaks = Some(leaks);
    }

    /// Sets the tables of the newest run.
    pub fn set_facts(&mut self, facts: Vec<FactTable>) {
        self.facts = facts;
    }

    /// Makes this the page of a running JVM, which requests newer data from its origin. The first of its two runs has the
    /// recent events, the second has all events since the start.
    pub fn set_refresh(&mut self, live: PageRefresh) {
        self.refresh = Some(live);
    }

    /// Sets the initial view of the page.
    pub fn set_opening(&mut self, opening: PageOpening) {
        self.opening = Some(opening);
    }

    /// The page as HTML.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut files: Vec<_> = self.texts.iter().map(|text| text.file.as_str()).collect();
        files.dedup();
        let title = format!("lucce: {}", files.join(" and "));
        html::render_page(
            &title,
            &HtmlPage::content_policy(self.refresh.is_some()),
            &self.collect_data(),
        )
    }

    /// The page's data as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        // All values of the data have a JSON form.
        serde_json::to_string(&self.collect_data()).unwrap_or_default()
    }

    /// The page's content security policy: only its own script and style run, and nothing is loaded. `is_live`: newer data
    /// may come from the page's origin.
    #[must_use]
    pub fn content_policy(is_live: bool) -> String {
        html::content_policy(is_live)
    }

    fn collect_data(&self) -> PageData {
        let kinds = self.sum_by_kind();
        let heavy = self.find_heavy_nodes(&kinds);
        let mut gathered = PageSums::new(&self.merged, &heavy);
        for (run, of) in self.merged.runs.iter().enumerate() {
            gathered.add_run(run as u32, of);
        }
        let newest = self.texts.len().saturating_sub(1);
        let steps = self.steps.as_ref();
        let stream = steps.map(|steps| steps.to_columns(newest, kinds.len(), &mut gathered));
        let main_kind = kinds
            .iter()
            .position(|kind| ALLOC.is_kind(&kind.name) && !kind.is_empty());
        let names = &self.merged.names;
        let (nodes, contexts, shares, rest) =
            gathered.into_columns(names.tagged_threads.as_slice());
        PageData {
            schema: "lucce-page",
            version: 1,
            runs: self.texts.clone(),
            main_kind: main_kind.unwrap_or_else(|| most_frequent(&kinds)),
            kinds,
            classes: plain_texts(names.classes.as_slice()),
            class_origins: encode_class_origins(names),
            methods: MethodColumns::new(names),
            types: plain_texts(names.types.as_slice()),
            threads: plain_texts(names.threads.as_slice()),
            tags: plain_texts(names.tags.as_slice()),
            requests: plain_texts(names.requests.as_slice()),
            tag_requests: requests_by_tags(names),
            nodes,
            contexts,
            shares,
            rest,
            heap_interval: self.heap_interval,
            leaks: self.leaks.clone(),
            facts: self.facts.clone(),
            live: self.refresh.clone(),
            opening: self.opening.clone().filter(|opening| !opening.is_empty()),
            stream,
        }
    }

    fn sum_by_kind(&self) -> Vec<KindSums> {
        let runs = self.texts.len();
        let named = self.merged.names.kinds.as_slice().iter();
        let mut kinds: Vec<_> = named.map(|kind| KindSums::new(kind, runs)).collect();
        for (run, of) in self.merged.runs.iter().enumerate() {
            for row in &of.counters {
                if let Some(kind) = kinds.get_mut(row.kind as usize) {
                    kind.add_counts(run, row.count, row.value);
                }
            }
        }
        kinds
    }

    fn find_heavy_nodes(&self, kinds: &[KindSums]) -> HeavyNodes {
        let totals: Vec<_> = kinds.iter().map(KindSums::total_sums).collect();
        let tree = &self.merged.tree;
        let counted = self.merged.runs.iter().flat_map(|run| &run.counters);
        HeavyNodes::new(
            tree,
            heavy_nodes::node_weights(tree, counted, &totals),
            MAX_NODES,
        )
    }
}

/// The request of each set of tags, by their numbers.
fn requests_by_tags(names: &MergedNames) -> Vec<u32> {
    let mut requests = vec![0; names.tags.as_slice().len()];
    for thread in names.tagged_threads.as_slice() {
        if let Some(request) = requests.get_mut(thread.tags as usize) {
            *request = thread.request;
        }
    }
    requests
}

/// Removes characters from names that change the text around them.
fn plain_texts(names: &[String]) -> Vec<String> {
    names
        .iter()
        .map(|name| EscapedText(name).to_string())
        .collect()
}

fn most_frequent(kinds: &[KindSums]) -> usize {
    let counts = kinds.iter().map(|kind| kind.total_sums().0);
    let most = counts
        .enumerate()
        .max_by_key(|(at, count)| (*count, usize::MAX - at));
    most.map_or(0, |(at, _)| at)
}
