//! A run as the dataset has it: what its log says, by content ids.
//!
//! Each frame of the graph is hashed once, and each path once, its callers' first.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use lucce_callgraph::{Frame, MethodId, SiteId};
use lucce_contentid::{Detail, FrameId, FrameText, StackId, names};
use lucce_decoder::{
    ALLOC, Code, ContextId, Damage, OpenError, Profile, Source, StackFrame, Stream, Trace, Traces,
    path_beside, tags_in_line,
};
use lucce_tracelog::Item;
use rustc_hash::FxHashMap;

/// Living objects that were followed.
const INUSE: &str = "inuse";
/// A JVM counts no more in one run.
const MOST: u64 = i64::MAX as u64;

/// Why a file is not taken.
#[derive(Debug)]
pub enum Refused {
    Open(OpenError),
    Damaged(Damage),
    /// In words.
    Other(String),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::Open(error) => error.fmt(f),
            Refused::Damaged(damage) => damage.fmt(f),
            Refused::Other(reason) => f.write_str(reason),
        }
    }
}

impl From<OpenError> for Refused {
    fn from(error: OpenError) -> Self {
        Refused::Open(error)
    }
}

impl From<Damage> for Refused {
    fn from(damage: Damage) -> Self {
        Refused::Damaged(damage)
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
    pub of: u32,
    pub is_virtual: bool,
    /// As `endpoint=/search, tenant=a`; empty: none.
    pub tags: u32,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Sums {
    pub count: u64,
    pub value: u64,
}

pub struct StreamRow {
    /// Nanoseconds since 1970.
    pub time: u64,
    pub thread: u32,
    pub stack: StackId,
    pub event: u32,
    pub of: u32,
    pub value: i64,
}

/// Texts by number, in the order in which they were met.
#[derive(Default)]
pub struct Texts {
    numbers: FxHashMap<String, u32>,
    texts: Vec<String>,
}

impl Texts {
    pub fn number(&mut self, text: &str) -> u32 {
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
pub struct Decoded {
    pub path: PathBuf,
    /// 16 hexadecimal digits.
    pub run: String,
    pub start_ms: u64,
    pub end_ms: Option<u64>,
    pub ended: bool,
    pub meta: BTreeMap<String, String>,
    pub lost: u64,
    /// Counted and allocated bytes.
    pub coverage: Option<(u64, u64)>,
    pub log_bytes: u64,
    pub texts: Texts,
    /// The kinds' names and units, by number.
    pub kinds: Vec<(String, String)>,
    pub frames: Vec<FrameRow>,
    /// Callers come first; each once.
    pub stacks: Vec<StackRow>,
    pub events: BTreeMap<EventKey, Sums>,
    /// Every number that has a counter, with its stack.
    pub numbers: Vec<(u64, StackId)>,
    pub stream: Vec<StreamRow>,
    pub symbols: Vec<u8>,
}

impl Decoded {
    /// All that one run has told: the whole log, and the stream beside it if there is one. `arguments`: with the program's
    /// arguments, which are masked else.
    ///
    /// # Errors
    /// The log is foreign or damaged, or says not enough.
    pub fn read(path: &Path, arguments: bool) -> Result<Decoded, Refused> {
        let mut source = Source::open(path)?;
        let mut profile = source.profile(&|_| ())?;
        if arguments {
            profile.show_arguments();
        }
        if let Some(damage) = &profile.damage {
            return Err(damage.clone().into());
        }
        if profile.is_symbols() {
            return Err(Refused::Other(
                "symbols of a run, in which nothing is counted".into(),
            ));
        }
        let Some(run) = profile.header.run else {
            return Err(Refused::Other(
                "a log without a run's id, of an agent before version 0.1".into(),
            ));
        };
        let mut building = Building::new(&profile);
        building.count()?;
        building.numbers(&source)?;
        building.survivors()?;
        let beside = path_beside(path);
        let stream = match beside.exists() {
            true => building.stream(&Stream::open(&beside)?)?,
            false => Vec::new(),
        };
        let mut decoded = building.done(path, run.to_string(), stream);
        let wrote = source.write_symbols(&mut decoded.symbols, arguments);
        let wrote = wrote.map_err(|e| Refused::Open(OpenError::Io(e)))?;
        match wrote.damage {
            Some(damage) => Err(damage.into()),
            None => Ok(decoded),
        }
    }

    /// A kind's name and unit.
    #[must_use]
    pub fn kind(&self, number: u32) -> (&str, &str) {
        let kind = self.kinds.get(number as usize);
        kind.map_or(("", ""), |(name, unit)| (name, unit))
    }

    /// Events of all kinds.
    #[must_use]
    pub fn count(&self) -> u64 {
        let counts = self.counters().into_iter().map(|(_, sums)| sums.count);
        counts.fold(0, u64::saturating_add).min(MOST)
    }

    /// What only becomes more while the run goes on.
    #[must_use]
    pub fn counters(&self) -> Vec<(&EventKey, Sums)> {
        self.rows(|is_alive| !is_alive)
    }

    /// Living objects: how many there were when the log was last told of them.
    #[must_use]
    pub fn alive(&self) -> Vec<(&EventKey, Sums)> {
        self.rows(|is_alive| is_alive)
    }

    fn rows(&self, is_wanted: impl Fn(bool) -> bool) -> Vec<(&EventKey, Sums)> {
        let is_alive = |key: &EventKey| {
            let kind = self.kinds.get(key.event as usize);
            kind.is_some_and(|(name, _)| name == INUSE)
        };
        let rows = self
            .events
            .iter()
            .filter(|(key, _)| is_wanted(is_alive(key)));
        rows.map(|(key, sums)| (key, *sums)).collect()
    }
}

struct Building<'p> {
    profile: &'p Profile,
    traces: Traces<'p>,
    ids: Ids,
    texts: Texts,
    /// Numbers of types, by the names that the log has for them.
    types: FxHashMap<String, u32>,
    kinds: Vec<(String, String)>,
    events: FxHashMap<EventKey, Sums>,
    numbers: FxHashMap<u64, StackId>,
}

/// Content ids of frames, and of the paths that were walked so far.
#[derive(Default)]
struct Ids {
    /// What the log numbers, to the place in `frames`.
    known: FxHashMap<Frame, u32>,
    places: FxHashMap<FrameId, u32>,
    frames: Vec<FrameRow>,
    /// Of each node of the traces.
    nodes: Vec<StackRow>,
}

impl Ids {
    /// Those of the nodes that were met since.
    fn follow(&mut self, traces: &Traces<'_>, code: &Code) {
        let met = self.nodes.len();
        for (caller, frame, shown) in traces.nodes_from(met) {
            let at = self.frame(frame, shown, code);
            let Some(row) = self.frames.get(at as usize) else {
                continue;
            };
            let above = caller.and_then(|caller| self.nodes.get(caller.number() as usize));
            let (parent, by_method, depth, application) = above
                .map_or((StackId::EMPTY, StackId::EMPTY, 0, FrameId(0)), |above| {
                    (above.id, above.by_method, above.depth, above.application)
                });
            let is_own = !shown.is_of_the_jdk();
            self.nodes.push(StackRow {
                id: parent.then(row.id),
                parent,
                frame: row.id,
                depth: depth + 1,
                by_method: by_method.then(row.by_method),
                application: if is_own { row.id } else { application },
            });
        }
    }

    fn frame(&mut self, frame: Frame, shown: &StackFrame, code: &Code) -> u32 {
        if let Some(known) = self.known.get(&frame) {
            return *known;
        }
        let row = frame_row(shown, code.descriptor(frame.method));
        let next = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        let at = *self.places.entry(row.id).or_insert(next);
        if at == next {
            self.frames.push(row);
        }
        self.known.insert(frame, at);
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
    let class = names::class(&shown.class);
    let kind = match &class {
        _ if shown.line == StackFrame::NATIVE => "native",
        std::borrow::Cow::Owned(_) => "generated",
        _ if shown.is_of_the_jdk() => "jdk",
        _ => "application",
    };
    FrameRow {
        id: FrameId::of(text, Detail::ByLine),
        by_method: FrameId::of(text, Detail::ByMethod),
        class: class.into_owned(),
        method: shown.method.clone(),
        descriptor: names::descriptor(descriptor).into_owned(),
        file: shown.file.clone(),
        line: shown.line,
        kind,
    }
}

impl<'p> Building<'p> {
    fn new(profile: &'p Profile) -> Self {
        Building {
            profile,
            traces: Traces::new(profile),
            ids: Ids::default(),
            texts: Texts::default(),
            types: FxHashMap::default(),
            kinds: Vec::new(),
            events: FxHashMap::default(),
            numbers: FxHashMap::default(),
        }
    }

    /// The stack and the site of a number. `offset`: where the log has it.
    fn place(&mut self, id: ContextId, offset: u64) -> Result<(StackId, SiteId), Refused> {
        let found = self.traces.of(id).and_then(|trace| {
            let leaf = self.profile.graph.caller(id, MethodId::EVENT)?;
            Ok((trace, leaf.map_or(SiteId::NONE, |(_, leaf)| leaf.site)))
        });
        let (trace, site) = found.map_err(|e| {
            let number = self.profile.number(id);
            Damage::at(
                offset,
                format!("{number}, which the log does not explain ({e})"),
            )
        })?;
        self.ids.follow(&self.traces, &self.profile.code);
        let stack = self.stack(trace);
        self.numbers.insert(id.0, stack);
        Ok((stack, site))
    }

    fn stack(&self, trace: Trace) -> StackId {
        let node = self.ids.nodes.get(trace.number() as usize);
        node.map_or(StackId::EMPTY, |node| node.id)
    }

    fn count(&mut self) -> Result<(), Refused> {
        let profile = self.profile;
        for shares in profile.events.by_context() {
            let Some(first) = shares.first() else {
                continue;
            };
            let (stack, site) = self.place(first.id, first.offset)?;
            for share in shares {
                let Some(info) = profile.types.get(share.event) else {
                    let what = format!(
                        "a counter of type {}, which the log does not explain",
                        share.event.0
                    );
                    return Err(Damage::at(share.offset, what).into());
                };
                let thread = profile.threads.get(&share.thread);
                let tags = profile.tags_by_key(share.thread);
                let tags = tags.map(tags_in_line).unwrap_or_default();
                let sized = share.count.saturating_mul(profile.each(share.event, site));
                let key = EventKey {
                    event: kind(&mut self.kinds, &info.kind, &info.unit),
                    stack,
                    of: self.of(profile.detail_at(share.event, site)),
                    is_virtual: thread.is_some_and(|thread| thread.is_virtual),
                    tags: self.texts.number(&tags),
                };
                self.add(key, share.count, share.value.saturating_add(sized));
            }
        }
        Ok(())
    }

    /// A type without what differs from run to run; empty: none.
    fn of(&mut self, of: Option<&str>) -> u32 {
        let of = of.unwrap_or_default();
        if let Some(number) = self.types.get(of) {
            return *number;
        }
        let number = self.texts.number(&names::class(of));
        self.types.insert(of.to_owned(), number);
        number
    }

    fn add(&mut self, key: EventKey, count: u64, value: u64) {
        let sums = self.events.entry(key).or_default();
        sums.count = sums.count.saturating_add(count).min(MOST);
        sums.value = sums.value.saturating_add(value).min(MOST);
    }

    /// Those that a program asked for and that counted nothing, too.
    fn numbers(&mut self, source: &Source) -> Result<(), Refused> {
        let mut refused = Ok(());
        let read = source.each(|item| {
            refused = item
                .map_err(Refused::from)
                .and_then(|item| self.numbers_of(&item));
            match refused {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        read.map_err(OpenError::Io)?;
        refused
    }

    fn numbers_of(&mut self, item: &Item<'_>) -> Result<(), Refused> {
        let found: Vec<(ContextId, u64)> = match item {
            Item::Cells(cells) => cells.iter().map(|cell| (cell.id, cell.offset)).collect(),
            Item::EventCells(cells) => cells.iter().map(|cell| (cell.id, cell.offset)).collect(),
            _ => return Ok(()),
        };
        for (id, offset) in found {
            if !self.numbers.contains_key(&id.0) {
                self.place(id, offset)?;
            }
        }
        Ok(())
    }

    /// Objects that were followed and alive at the last snapshot.
    fn survivors(&mut self) -> Result<(), Refused> {
        let following = &self.profile.following;
        let Some(last) = following.moments().last() else {
            return Ok(());
        };
        for row in &last.rows {
            let Some((id, of)) = following.name(row.key) else {
                continue;
            };
            let (stack, _) = self.place(*id, 0)?;
            let key = EventKey {
                event: kind(&mut self.kinds, INUSE, ALLOC.unit),
                stack,
                of: self.of(Some(of)),
                is_virtual: false,
                tags: self.texts.number(""),
            };
            self.add(key, row.objects, row.bytes);
        }
        Ok(())
    }

    fn stream(&mut self, stream: &Stream) -> Result<Vec<StreamRow>, Refused> {
        self.profile.explains(stream)?;
        if let Some(damage) = stream.damage() {
            return Err(damage.clone().into());
        }
        let profile = self.profile;
        let mut rows = Vec::new();
        for event in stream.events() {
            let (stack, site) = self.place(event.id, event.offset)?;
            let Some(info) = profile.types.get(event.event) else {
                let what = format!(
                    "an event of type {}, which the log does not explain",
                    event.event.0
                );
                return Err(Damage::at(event.offset, what).into());
            };
            let thread = stream.thread(event.thread);
            let each = i64::try_from(profile.each(event.event, site)).unwrap_or(i64::MAX);
            rows.push(StreamRow {
                time: profile
                    .header
                    .start
                    .saturating_add(stream.since_start(event.clock)),
                thread: self.texts.number(thread.map_or("", |thread| &thread.name)),
                stack,
                event: kind(&mut self.kinds, &info.kind, &info.unit),
                of: self.of(profile.detail_at(event.event, site)),
                value: event.value.saturating_add(each),
            });
        }
        Ok(rows)
    }

    fn done(self, path: &Path, run: String, stream: Vec<StreamRow>) -> Decoded {
        let profile = self.profile;
        let start_ms = profile.header.start / 1_000_000;
        let millis = profile.stats.get("run.millis").copied();
        let coverage = profile.coverage().ok();
        let mut stacks: Vec<StackRow> = Vec::with_capacity(self.ids.nodes.len());
        let mut met = rustc_hash::FxHashSet::default();
        stacks.extend(self.ids.nodes.iter().filter(|node| met.insert(node.id)));
        let mut numbers: Vec<(u64, StackId)> = self.numbers.into_iter().collect();
        numbers.sort_unstable();
        Decoded {
            path: path.to_owned(),
            run,
            start_ms,
            end_ms: millis.map(|millis| start_ms.saturating_add(millis)),
            ended: profile.ended,
            meta: profile.meta.clone(),
            lost: profile.lost(),
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
fn kind(kinds: &mut Vec<(String, String)>, name: &str, unit: &str) -> u32 {
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
mod tests {
    use lucce_decoder::Known as KindOf;

    use super::*;

    #[test]
    fn names_of_kinds_are_known_to_the_command() {
        assert_eq!(KindOf::of(INUSE).unit, ALLOC.unit);
    }
}
