//! The data of a page, by columns; the page's `model.js` reads them.

use serde::Serialize;

use lucce_decoder::CallTree;
use lucce_decoder::escape::EscapedText;
use lucce_decoder::{CodeOrigin, FrameName, KindName, MergedNames, is_supplement_kind};

use super::heavy_nodes::HeavyNodes;

/// Facts of a run on a page.
#[derive(Clone, Serialize, Default, Debug)]
pub struct RunText {
    pub file: String,
    /// The run's id.
    pub run: Option<String>,
    pub command: Option<String>,
    pub jvm: Option<String>,
    pub start: Option<String>,
    pub seconds: Option<f64>,
    pub ended: bool,
    /// The allocation coverage in words.
    pub coverage: Option<String>,
    pub lost: u64,
    pub notes: Vec<String>,
    pub warnings: Vec<String>,
}

/// The leaks on a page.
#[derive(Clone, Serialize, Debug)]
pub struct LeaksText {
    pub says: String,
    pub found: Vec<LeakText>,
    /// Other live objects, without a proof.
    pub suspects: Vec<SuspectText>,
    /// Number of further suspects.
    pub more: u64,
    /// All live objects, without a proof.
    pub alive: Option<AliveTable>,
}

/// The live objects at one time.
#[derive(Clone, Serialize, Debug)]
pub struct AliveTable {
    /// The time, and the number of objects that the estimate is from.
    pub says: String,
    pub rows: Vec<AliveText>,
}

/// Live objects of one context and type.
#[derive(Clone, Serialize, Debug)]
pub struct AliveText {
    pub bytes: u64,
    pub objects: u64,
    pub class: String,
    /// This field and the next two: bytes by age class.
    pub old_bytes: u64,
    pub survived_bytes: u64,
    pub new_bytes: u64,
    /// The innermost frame of the application.
    pub at: Option<String>,
    pub trace: String,
}

#[derive(Clone, Serialize, Debug)]
pub struct LeakText {
    pub head: String,
    pub lines: Vec<String>,
    pub trace: String,
}

#[derive(Clone, Serialize, Debug)]
pub struct SuspectText {
    pub head: String,
    /// The innermost frame of the application.
    pub at: Option<String>,
    /// What is missing for a proof.
    pub verdict: String,
}

/// A table of a whole run that is no sum of events, such as who waits for whom.
#[derive(Clone, Serialize, Debug)]
pub struct FactTable {
    /// The kind of its events.
    #[serde(skip)]
    pub kind: &'static str,
    /// Whether `says` sums it up.
    #[serde(skip)]
    pub has_summary: bool,
    /// The tab that begins with it.
    pub tab: &'static str,
    pub title: &'static str,
    pub says: String,
    pub columns: Vec<FactColumn>,
    /// Sorted by the first column of numbers, which is descending.
    pub rows: Vec<FactRow>,
}

#[derive(Clone, Serialize, Debug)]
pub struct FactColumn {
    pub head: &'static str,
    /// The unit of numbers; `None`: text.
    pub unit: Option<&'static str>,
}

impl FactColumn {
    #[must_use]
    pub fn new(head: &'static str, unit: Option<&'static str>) -> FactColumn {
        FactColumn { head, unit }
    }
}

#[derive(Clone, Serialize, Debug)]
#[serde(rename_all = "camelCase")]
pub struct FactRow {
    pub cells: Vec<FactCell>,
    /// What an open row shows.
    pub trace: String,
    /// Whether it comes last in every order.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_last: bool,
}

#[derive(Clone, Serialize, Debug)]
#[serde(untagged)]
pub enum FactCell {
    Number(u64),
    Text(String),
}

/// The state of the page of a running JVM.
#[derive(Clone, Serialize, Debug)]
pub struct PageRefresh {
    /// The number of the reading of the log.
    pub reading: u64,
    /// Milliseconds until there are newer data.
    pub pause: u64,
    /// The length of the recent interval in seconds; `None`: the log was read only once.
    pub seconds: Option<f64>,
    /// Whether there will be no newer data.
    pub ended: bool,
}

/// The initial view of a page, in the parameters of its URL's fragment. Empty: the page's default.
#[derive(Clone, Serialize, Default, PartialEq, Eq, Debug)]
pub struct PageOpening {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tab: String,
    /// The kind of events.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `value` or `count`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub measure: String,
    /// The kind of events by whose counts amounts are divided.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub per: String,
    /// The grouping of changes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
}

impl PageOpening {
    pub fn is_empty(&self) -> bool {
        *self == PageOpening::default()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PageData {
    pub schema: &'static str,
    pub version: u32,
    pub runs: Vec<RunText>,
    pub main_kind: usize,
    pub kinds: Vec<KindSums>,
    pub classes: Vec<String>,
    /// Whose code each class is, a character for each: `a` application, `l` library, `j` JDK.
    pub class_origins: String,
    pub methods: MethodColumns,
    pub types: Vec<String>,
    pub threads: Vec<String>,
    /// All sets of tags of events, in words; one entry: events are not divided by tags.
    pub tags: Vec<String>,
    /// All requests; one entry: the run has none.
    pub requests: Vec<String>,
    /// The request of each set of tags.
    pub tag_requests: Vec<u32>,
    pub nodes: NodeColumns,
    pub contexts: ContextColumns,
    pub shares: CounterColumns,
    pub rest: OmittedContexts,
    /// The sampling interval in bytes of what reached the heap, if it was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap_interval: Option<u64>,
    pub leaks: Option<LeaksText>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<FactTable>,
    pub stream: Option<TimelineColumns>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<PageRefresh>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opening: Option<PageOpening>,
}

/// A kind of event, with sums by run.
#[derive(Serialize, Clone)]
pub struct KindSums {
    pub name: String,
    pub unit: String,
    /// Whether it says more about the events of another kind.
    pub supplement: bool,
    pub count: Vec<u64>,
    pub value: Vec<u64>,
}

#[derive(Serialize, Default)]
pub struct MethodColumns {
    pub owner: Vec<u32>,
    pub name: Vec<String>,
    pub file: Vec<Option<String>>,
}

/// Nodes. The root has parent and method -1; a node for the sum of others has method -1.
#[derive(Serialize, Default)]
pub struct NodeColumns {
    pub parent: Vec<i32>,
    pub method: Vec<i32>,
    pub line: Vec<i32>,
}

/// Contexts, and sums of omitted contexts; sums have no context id.
#[derive(Serialize, Default)]
pub struct ContextColumns {
    pub node: Vec<u32>,
    pub kind: Vec<u32>,
    /// The type; -1: none, or several in a sum.
    #[serde(rename = "type")]
    pub what: Vec<i32>,
    pub number: Vec<String>,
    pub stack: Vec<String>,
    /// Contexts of threads that wait for work, for kinds that count time.
    pub idle: Vec<u32>,
}

#[derive(Serialize, Default)]
pub struct CounterColumns {
    pub context: Vec<u32>,
    pub run: Vec<u32>,
    pub thread: Vec<u32>,
    /// Tags by row; empty: there is only one set of tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tag: Vec<u32>,
    pub count: Vec<u64>,
    pub value: Vec<u64>,
}

/// The contexts that are only in sums.
#[derive(Serialize, Default)]
pub struct OmittedContexts {
    pub contexts: u64,
    /// Some sums are not divided by own code.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
}

/// Events over time, of one run.
#[derive(Serialize, Default)]
pub struct TimelineColumns {
    pub run: usize,
    /// Start of the first step, in nanoseconds since the start of the run.
    pub start: u64,
    /// Length of a step in nanoseconds.
    pub width: u64,
    pub count: usize,
    /// Series by kind; `None`: the stream has no event of the kind.
    pub kinds: Vec<Option<TimelineSeries>>,
    pub cells: TimelineCells,
}

#[derive(Serialize, Default, Clone)]
pub struct TimelineSeries {
    pub count: Vec<u64>,
    pub value: Vec<i64>,
}

#[derive(Serialize, Default)]
pub struct TimelineCells {
    pub bucket: Vec<u32>,
    pub context: Vec<u32>,
    pub count: Vec<u64>,
    pub value: Vec<i64>,
}

impl KindSums {
    pub fn new(kind: &KindName, runs: usize) -> KindSums {
        KindSums {
            name: plain_text(&kind.name),
            unit: plain_text(&kind.unit),
            supplement: is_supplement_kind(&kind.name),
            count: vec![0; runs],
            value: vec![0; runs],
        }
    }

    pub fn add_counts(&mut self, run: usize, count: u64, value: u64) {
        if let (Some(counts), Some(values)) = (self.count.get_mut(run), self.value.get_mut(run)) {
            *counts = counts.saturating_add(count);
            *values = values.saturating_add(value);
        }
    }

    /// The sums of all runs.
    pub fn total_sums(&self) -> (u64, u64) {
        let sum = |of: &[u64]| of.iter().fold(0, |sum: u64, one| sum.saturating_add(*one));
        (sum(&self.count), sum(&self.value))
    }

    pub fn is_empty(&self) -> bool {
        self.total_sums().0 == 0
    }
}

fn plain_text(name: &str) -> String {
    EscapedText(name).to_string()
}

/// The characters of [`PageData::class_origins`].
pub fn encode_class_origins(names: &MergedNames) -> String {
    let classes = 0..names.classes.as_slice().len();
    let origins = classes.map(|class| names.class_origin(class as u32));
    origins
        .map(|origin| match origin {
            CodeOrigin::Application => 'a',
            CodeOrigin::Library => 'l',
            CodeOrigin::Jdk => 'j',
        })
        .collect()
}

#[cfg(test)]
impl PageData {
    /// A page with these type names only.
    pub fn from_types(types: Vec<String>) -> PageData {
        PageData {
            schema: "lucce-page",
            version: 1,
            runs: Vec::new(),
            main_kind: 0,
            kinds: Vec::new(),
            classes: Vec::new(),
            class_origins: String::new(),
            methods: MethodColumns::default(),
            types,
            threads: Vec::new(),
            tags: Vec::new(),
            requests: Vec::new(),
            tag_requests: Vec::new(),
            nodes: NodeColumns::default(),
            contexts: ContextColumns::default(),
            shares: CounterColumns::default(),
            rest: OmittedContexts::default(),
            heap_interval: None,
            leaks: None,
            facts: Vec::new(),
            stream: None,
            live: None,
            opening: None,
        }
    }
}

impl MethodColumns {
    pub fn new(names: &MergedNames) -> MethodColumns {
        let all = names.methods.as_slice();
        MethodColumns {
            owner: all.iter().map(|method| method.class).collect(),
            name: all.iter().map(|method| plain_text(&method.name)).collect(),
            file: all
                .iter()
                .map(|method| method.file.as_deref().map(plain_text))
                .collect(),
        }
    }
}

impl NodeColumns {
    pub fn new(tree: &CallTree, heavy: &HeavyNodes, names: &MergedNames) -> NodeColumns {
        let mut nodes = NodeColumns::default();
        for node in heavy.kept_nodes() {
            let step = tree.caller_and_frame(*node);
            let frame = step.and_then(|(_, key)| names.frames.get(key.0));
            let parent = step.map(|(caller, _)| heavy.node_placement(caller));
            nodes.parent.push(match parent {
                Some(super::heavy_nodes::NodePlacement::Own(at)) => at as i32,
                _ => -1,
            });
            nodes
                .method
                .push(frame.map_or(-1, |frame| frame.method as i32));
            nodes.line.push(frame.map_or(-1, |frame| frame.line));
        }
        nodes
    }

    /// Adds a node below `parent`; no frame: for the sum of omitted nodes.
    pub fn push_node(&mut self, parent: u32, frame: Option<&FrameName>) -> u32 {
        self.parent.push(parent as i32);
        let method = frame.map_or(-1, |frame| frame.method as i32);
        self.method.push(method);
        self.line.push(frame.map_or(-1, |frame| frame.line));
        self.parent.len() as u32 - 1
    }
}
