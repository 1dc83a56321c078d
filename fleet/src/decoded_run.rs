//! A run as the dataset has it: what its log says, by content ids.
//!
//! Each frame of the graph is hashed once, and each path once, its callers' first.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use lucce_callgraph::{ContextFrame, MethodId, SiteId};
use lucce_contentid::{ContentDetail, FrameId, FrameText, StackId, generated_names};
use lucce_decoder::{
    ALLOC, CodeSymbols, ContextId, EventStream, LogDamage, LogSource, OpenError, Profile,
    StackFrame, TraceId, TraceTree, check_same_run, compute_coverage, events_path,
    find_thread_tags, format_tags, is_symbols,
};
use lucce_tracelog::LogItem;
use rustc_hash::FxHashMap;

/// Living objects that were followed.
const LIVE_OBJECTS: &str = "inuse";
/// A JVM counts no more in one run.
const MAX_COUNT: u64 = i64::MAX as u64;

/// Why a file is not taken.
#[derive(Debug)]
pub enum IngestError {
    Open(OpenError),
    Damaged(LogDamage),
    /// In words.
    Other(String),
}

impl std::fmt::Display for IngestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IngestError::Open(error) => error.fmt(f),
            IngestError::Damaged(damage) => damage.fmt(f),
            IngestError::Other(reason) => f.write_str(reason),
        }
    }
}

impl From<OpenError> for IngestError {
    fn from(error: OpenError) -> Self {
        IngestError::Open(error)
    }
}

impl From<LogDamage> for IngestError {
    fn from(damage: LogDamage) -> Self {
        IngestError::Damaged(damage)
    }
}

/// A frame, as it is in every run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameRow {
    pub id: FrameId,
    pub by_method: FrameId,
    pub class: String,
    pub method: String,
    pub descriptor: String,
    pub file: Option<String>,
    pub line: i32,
    pub kind: &'static str,
}

/// A path from a thread's entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackRow {
    pub id: StackId,
    pub parent: StackId,
    pub frame: FrameId,
    pub depth: u32,
    pub by_method: StackId,
    /// The innermost frame that is the program's own; 0: there is none.
    pub application: FrameId,
}

/// What was counted of one kind, type and kind of thread in one context, under the same tags.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EventKey {
    /// Kind and unit.
    pub event: u32,
    pub stack: StackId,
    pub type_number: u32,
    pub is_virtual: bool,
    /// As `endpoint=/search, tenant=a`; empty: none.
    pub tags: u32,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct EventSums {
    pub count: u64,
    pub value: u64,
}

pub struct StreamRow {
    /// Nanoseconds since 1970.
    pub time: u64,
    pub thread: u32,
    pub stack: StackId,
    pub event: u32,
    pub type_number: u32,
    pub value: i64,
}

/// Texts by number, in the order in which they were met.
#[derive(Default)]
pub struct RunStringTable {
    numbers: FxHashMap<String, u32>,
    texts: Vec<String>,
}

impl RunStringTable {
    pub fn intern_text(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    /// By number.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }

    #[must_use]
    pub fn get(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", String::as_str)
    }
}

/// A run's facts, numbers and counters.
pub struct DecodedRun {
    pub path: PathBuf,
    /// 16 hexadecimal digits.
    pub run: String,
    pub start_ms: u64,
    pub end_ms: Option<u64>,
    pub ended: bool,
    pub meta: BTreeMap<String, String>,
    pub dropped: u64,
    /// Counted and allocated bytes.
    pub coverage: Option<(u64, u64)>,
    pub log_bytes: u64,
    pub texts: RunStringTable,
    /// The kinds' names and units, by number.
    pub kinds: Vec<(String, String)>,
    pub frames: Vec<FrameRow>,
    /// Callers come first; each once.
    pub stacks: Vec<StackRow>,
    pub events: BTreeMap<EventKey, EventSums>,
    /// Every number that has a counter, with its stack.
    pub numbers: Vec<(u64, StackId)>,
    pub stream: Vec<StreamRow>,
    pub symbols: Vec<u8>,
}

impl DecodedRun {
    /// Everything of one run: the whole log, and the stream beside it if there is one. `arguments`: with the program's
    /// arguments, which are masked else.
    ///
    /// # Errors
    /// The log is foreign or damaged, or says not enough.
    pub fn read_log(path: &Path, arguments: bool) -> Result<DecodedRun, IngestError> {
        let mut source = LogSource::open(path)?;
        let mut profile = source.read_profile(&|_| ())?;
        if arguments {
            profile.show_arguments();
        }
        if let Some(damage) = &profile.damage {
            return Err(damage.clone().into());
        }
        if is_symbols(&profile) {
            return Err(IngestError::Other(
                "symbols of a run, in which nothing is counted".into(),
            ));
        }
        let Some(run) = profile.header.run else {
            return Err(IngestError::Other(
                "a log without a run's id, of an agent before version 0.1".into(),
            ));
        };
        let mut building = DecodedRunBuilder::new(&profile);
        building.add_counters()?;
        building.add_numbers(&source)?;
        building.add_live_objects()?;
        let beside = events_path(path);
        let stream = match beside.exists() {
            true => building.read_stream(&EventStream::open(&beside)?)?,
            false => Vec::new(),
        };
        let mut decoded = building.finish_run(path, run.to_string(), stream);
        let wrote = source.write_symbols(&mut decoded.symbols, arguments);
        let wrote = wrote.map_err(|e| IngestError::Open(OpenError::Io(e)))?;
        match wrote.damage {
            Some(damage) => Err(damage.into()),
            None => Ok(decoded),
        }
    }

    /// A kind's name and unit.
    #[must_use]
    pub fn event_kind(&self, number: u32) -> (&str, &str) {
        let kind = self.kinds.get(number as usize);
        kind.map_or(("", ""), |(name, unit)| (name, unit))
    }

    /// Events of all kinds.
    #[must_use]
    pub fn event_count(&self) -> u64 {
        let counts = self.counter_rows().into_iter().map(|(_, sums)| sums.count);
        counts.fold(0, u64::saturating_add).min(MAX_COUNT)
    }

    /// What only becomes more while the run goes on.
    #[must_use]
    pub fn counter_rows(&self) -> Vec<(&EventKey, EventSums)> {
        self.filter_rows(|is_alive| !is_alive)
    }

    /// Living objects: their number at the log's last report of them.
    #[must_use]
    pub fn live_object_rows(&self) -> Vec<(&EventKey, EventSums)> {
        self.filter_rows(|is_alive| is_alive)
    }

    fn filter_rows(&self, is_wanted: impl Fn(bool) -> bool) -> Vec<(&EventKey, EventSums)> {
        let is_alive = |key: &EventKey| {
            let kind = self.kinds.get(key.event as usize);
            kind.is_some_and(|(name, _)| name == LIVE_OBJECTS)
        };
        let rows = self
            .events
            .iter()
            .filter(|(key, _)| is_wanted(is_alive(key)));
        rows.map(|(key, sums)| (key, *sums)).collect()
    }
}

struct DecodedRunBuilder<'p> {
    profile: &'p Profile,
    traces: TraceTree<'p>,
    ids: ContentIds,
    texts: RunStringTable,
    /// Numbers of types, by the names that the log has for them.
    types: FxHashMap<String, u32>,
    kinds: Vec<(String, String)>,
    events: FxHashMap<EventKey, EventSums>,
    numbers: FxHashMap<u64, StackId>,
}

/// Content ids of frames, and of the paths that were walked so far.
#[derive(Default)]
struct ContentIds {
    /// What the log numbers, to the place in `frames`.
    frame_indexes: FxHashMap<ContextFrame, u32>,
    places: FxHashMap<FrameId, u32>,
    frames: Vec<FrameRow>,
    /// Of each node of the traces.
    nodes: Vec<StackRow>,
    /// Whether the node or a caller is own code.
    have_own_code: Vec<bool>,
}

impl ContentIds {
    /// Those of the nodes that were met since.
    fn add_nodes(&mut self, traces: &TraceTree<'_>, code: &CodeSymbols) {
        let met = self.nodes.len();
        for (caller, frame, shown) in traces.nodes_from(met) {
            let at = self.frame_index(frame, shown, code);
            let Some(row) = self.frames.get(at as usize) else {
                continue;
            };
            let above = caller.and_then(|caller| self.nodes.get(caller.to_u32() as usize));
            let (parent, by_method, depth, application) = above
                .map_or((StackId::EMPTY, StackId::EMPTY, 0, FrameId(0)), |above| {
                    (above.id, above.by_method, above.depth, above.application)
                });
            let above_is_own = caller.is_some_and(|caller| {
                self.have_own_code.get(caller.to_u32() as usize) == Some(&true)
            });
            let is_own = shown.is_own();
            let names_stack = is_own || !above_is_own && !shown.is_jdk_frame();
            self.have_own_code.push(is_own || above_is_own);
            self.nodes.push(StackRow {
                id: parent.with_callee(row.id),
                parent,
                frame: row.id,
                depth: depth + 1,
                by_method: by_method.with_callee(row.by_method),
                application: if names_stack { row.id } else { application },
            });
        }
    }

    fn frame_index(&mut self, frame: ContextFrame, shown: &StackFrame, code: &CodeSymbols) -> u32 {
        if let Some(known) = self.frame_indexes.get(&frame) {
            return *known;
        }
        let row = frame_row(shown, code.method_descriptor(frame.method));
        let next = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        let at = *self.places.entry(row.id).or_insert(next);
        if at == next {
            self.frames.push(row);
        }
        self.frame_indexes.insert(frame, at);
        at
    }
}

/// A frame without what differs from run to run.
#[must_use]
pub fn frame_row(shown: &StackFrame, descriptor: &str) -> FrameRow {
    let text = FrameText {
        class: &shown.class,
        method: &shown.method,
        descriptor,
        line: shown.line,
    };
    let class = generated_names::normalize_class(&shown.class);
    let kind = match &class {
        _ if shown.line == StackFrame::NATIVE => "native",
        std::borrow::Cow::Owned(_) => "generated",
        _ if shown.is_jdk_frame() => "jdk",
        _ => "application",
    };
    FrameRow {
        id: FrameId::from_frame(text, ContentDetail::ByLine),
        by_method: FrameId::from_frame(text, ContentDetail::ByMethod),
        class: class.into_owned(),
        method: shown.method.clone(),
        descriptor: generated_names::normalize_descriptor(descriptor).into_owned(),
        file: shown.file.clone(),
        line: shown.line,
        kind,
    }
}

impl<'p> DecodedRunBuilder<'p> {
    fn new(profile: &'p Profile) -> Self {
        DecodedRunBuilder {
            profile,
            traces: TraceTree::new(profile),
            ids: ContentIds::default(),
            texts: RunStringTable::default(),
            types: FxHashMap::default(),
            kinds: Vec::new(),
            events: FxHashMap::default(),
            numbers: FxHashMap::default(),
        }
    }

    /// The stack and the site of a number. `offset`: where the log has it.
    fn resolve_context(
        &mut self,
        id: ContextId,
        offset: u64,
    ) -> Result<(StackId, SiteId), IngestError> {
        let found = self.traces.insert_trace(id).and_then(|trace| {
            let leaf = self.profile.graph.find_caller(id, MethodId::EVENT)?;
            Ok((trace, leaf.map_or(SiteId::NONE, |(_, leaf)| leaf.site)))
        });
        let (trace, site) = found.map_err(|e| {
            let number = self.profile.context_number(id);
            LogDamage::at_offset(
                offset,
                format!("{number}, which the log does not explain ({e})"),
            )
        })?;
        self.ids.add_nodes(&self.traces, &self.profile.code);
        let stack = self.stack_id(trace);
        self.numbers.insert(id.0, stack);
        Ok((stack, site))
    }

    fn stack_id(&self, trace: TraceId) -> StackId {
        let node = self.ids.nodes.get(trace.to_u32() as usize);
        node.map_or(StackId::EMPTY, |node| node.id)
    }

    fn add_counters(&mut self) -> Result<(), IngestError> {
        let profile = self.profile;
        for shares in profile.events.by_context() {
            let Some(first) = shares.first() else {
                continue;
            };
            let (stack, site) = self.resolve_context(first.id, first.offset)?;
            for share in shares {
                let Some(info) = profile.types.get(share.event) else {
                    let what = format!(
                        "a counter of type {}, which the log does not explain",
                        share.event.0
                    );
                    return Err(LogDamage::at_offset(share.offset, what).into());
                };
                let thread = profile.threads.get(&share.thread);
                let tags = find_thread_tags(profile, share.thread);
                let tags = tags.map(format_tags).unwrap_or_default();
                let sized = share
                    .count
                    .saturating_mul(profile.value_per_event(share.event, site));
                let key = EventKey {
                    event: kind_number(&mut self.kinds, &info.kind, &info.unit),
                    stack,
                    type_number: self.intern_type(profile.event_detail(share.event, site)),
                    is_virtual: thread.is_some_and(|thread| thread.is_virtual),
                    tags: self.texts.intern_text(&tags),
                };
                self.add_event(key, share.count, share.value.saturating_add(sized));
            }
        }
        Ok(())
    }

    /// A type without what differs from run to run; empty: none.
    fn intern_type(&mut self, of: Option<&str>) -> u32 {
        let of = of.unwrap_or_default();
        if let Some(number) = self.types.get(of) {
            return *number;
        }
        let number = self
            .texts
            .intern_text(&generated_names::normalize_class(of));
        self.types.insert(of.to_owned(), number);
        number
    }

    fn add_event(&mut self, key: EventKey, count: u64, value: u64) {
        let sums = self.events.entry(key).or_default();
        sums.count = sums.count.saturating_add(count).min(MAX_COUNT);
        sums.value = sums.value.saturating_add(value).min(MAX_COUNT);
    }

    /// Also those that a program requested and that counted nothing.
    fn add_numbers(&mut self, source: &LogSource) -> Result<(), IngestError> {
        let mut refused = Ok(());
        let read = source.for_each_item(|item| {
            refused = item
                .map_err(IngestError::from)
                .and_then(|item| self.add_item_numbers(&item));
            match refused {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        read.map_err(OpenError::Io)?;
        refused
    }

    fn add_item_numbers(&mut self, item: &LogItem<'_>) -> Result<(), IngestError> {
        let numbers: Vec<(ContextId, u64)> = match item {
            LogItem::Counters(cells) => cells.iter().map(|cell| (cell.id, cell.offset)).collect(),
            LogItem::EventCounters(cells) => {
                cells.iter().map(|cell| (cell.id, cell.offset)).collect()
            }
            _ => return Ok(()),
        };
        for (id, offset) in numbers {
            if !self.numbers.contains_key(&id.0) {
                self.resolve_context(id, offset)?;
            }
        }
        Ok(())
    }

    /// Objects that were followed and alive at the last snapshot.
    fn add_live_objects(&mut self) -> Result<(), IngestError> {
        let following = &self.profile.followed_objects;
        let Some(last) = following.snapshots().last() else {
            return Ok(());
        };
        for row in &last.rows {
            let Some((id, of)) = following.context_and_type(row.key) else {
                continue;
            };
            let (stack, _) = self.resolve_context(*id, 0)?;
            let key = EventKey {
                event: kind_number(&mut self.kinds, LIVE_OBJECTS, ALLOC.unit),
                stack,
                type_number: self.intern_type(Some(of)),
                is_virtual: false,
                tags: self.texts.intern_text(""),
            };
            self.add_event(key, row.objects, row.bytes);
        }
        Ok(())
    }

    fn read_stream(&mut self, stream: &EventStream) -> Result<Vec<StreamRow>, IngestError> {
        check_same_run(self.profile, stream)?;
        if let Some(damage) = stream.damage() {
            return Err(damage.clone().into());
        }
        let profile = self.profile;
        let mut rows = Vec::new();
        for event in stream.iter_events() {
            let (stack, site) = self.resolve_context(event.id, event.offset)?;
            let Some(info) = profile.types.get(event.event) else {
                let what = format!(
                    "an event of type {}, which the log does not explain",
                    event.event.0
                );
                return Err(LogDamage::at_offset(event.offset, what).into());
            };
            let thread = stream.thread_info(event.thread);
            let each =
                i64::try_from(profile.value_per_event(event.event, site)).unwrap_or(i64::MAX);
            rows.push(StreamRow {
                time: profile
                    .header
                    .start
                    .saturating_add(stream.since_start(event.clock)),
                thread: self
                    .texts
                    .intern_text(thread.map_or("", |thread| &thread.name)),
                stack,
                event: kind_number(&mut self.kinds, &info.kind, &info.unit),
                type_number: self.intern_type(profile.event_detail(event.event, site)),
                value: event.value.saturating_add(each),
            });
        }
        Ok(rows)
    }

    fn finish_run(self, path: &Path, run: String, stream: Vec<StreamRow>) -> DecodedRun {
        let profile = self.profile;
        let start_ms = profile.header.start / 1_000_000;
        let millis = profile.stats.get("run.millis").copied();
        let coverage = compute_coverage(profile).ok();
        let mut stacks: Vec<StackRow> = Vec::with_capacity(self.ids.nodes.len());
        let mut met = rustc_hash::FxHashSet::default();
        stacks.extend(self.ids.nodes.iter().filter(|node| met.insert(node.id)));
        let mut numbers: Vec<(u64, StackId)> = self.numbers.into_iter().collect();
        numbers.sort_unstable();
        DecodedRun {
            path: path.to_owned(),
            run,
            start_ms,
            end_ms: millis.map(|millis| start_ms.saturating_add(millis)),
            ended: profile.ended,
            meta: profile.meta.clone(),
            dropped: profile.dropped_events(),
            coverage: coverage.map(|coverage| (coverage.sum.counted, coverage.sum.allocated)),
            log_bytes: profile.size,
            texts: self.texts,
            kinds: self.kinds,
            frames: self.ids.frames,
            stacks,
            events: self.events.into_iter().collect(),
            numbers,
            stream,
            symbols: Vec::new(),
        }
    }
}

/// The number of a kind.
fn kind_number(kinds: &mut Vec<(String, String)>, name: &str, unit: &str) -> u32 {
    let at = kinds
        .iter()
        .position(|known| (&*known.0, &*known.1) == (name, unit));
    let at = at.unwrap_or_else(|| {
        kinds.push((name.to_owned(), unit.to_owned()));
        kinds.len() - 1
    });
    // The log has far fewer types.
    at as u32
}

#[cfg(test)]
mod decoded_run_tests {
    use lucce_decoder::KindDescriptor;

    use super::*;

    #[test]
    fn names_of_kinds_are_known_to_the_command() {
        assert_eq!(KindDescriptor::for_kind(LIVE_OBJECTS).unit, ALLOC.unit);
    }
}
