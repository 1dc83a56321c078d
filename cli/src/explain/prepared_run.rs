//! The one view of a run that all detectors read: contexts with their own-code frames.
//!
//! ```text
//! main ── Orders.total ── Repository.find ── Driver.execute ── new ResultSet
//!         │ entry         │ place            └ between: the frames below the program's own code
//!         └ the outermost own frame          └ the innermost own frame
//! ```

use std::collections::{BTreeMap, HashMap};
use std::iter::successors;

use lucce_callgraph::ContextFrame;
use lucce_decoder::{
    ALLOC, CodeOrigin, ContextId, ContextList, LeakAnalysis, LockPairs, Profile, StackFrame,
    TraceId, TraceTree, find_idle_contexts, list_lock_pairs, list_recorded_kinds,
    read_recorded_options, read_sampled_bytes,
};
use lucce_options::RecordingOptions;

/// Entries of methods.
pub const CALL: &str = "call";
/// Calls of `System.gc()` alone.
pub const COLLECTION_CALLS: &str = "call:java.lang.System.gc";
/// Calls of loggers alone.
pub const LOGGER_CALLS: &str = "call:loggers";
/// Named methods, each with one of its methods.
const NAMED_CALLS: [(&str, (&str, &str)); 2] = [
    (COLLECTION_CALLS, ("java.lang.System", "gc")),
    (LOGGER_CALLS, ("java.util.logging.Logger", "fine")),
];

/// A frame with its callers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PathIndex(u32);

/// Estimates from fewer samples say too little.
const MIN_SAMPLES: u64 = 3;

/// Frames of the JDK below an own line that belong to the call which the line makes.
const MAX_JDK_FRAMES: u32 = 12;

const NO_PATH: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct FrameNode {
    caller: u32,
    frame: u32,
    /// The innermost own frame with a line, at this node or above.
    place: u32,
    /// The outermost own frame with a line.
    entry: u32,
    /// Number of frames below the place, if all belong to the JDK; else the maximum.
    jdk_frames: u32,
}

/// The number of events and the sum of their values.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct EventSum {
    pub count: u64,
    pub value: u64,
}

impl EventSum {
    pub fn add(&mut self, other: EventSum) {
        self.count = self.count.saturating_add(other.count);
        self.value = self.value.saturating_add(other.value);
    }
}

/// The events of one stack trace, kind and type.
#[derive(Clone, Debug)]
pub struct RunContext<'f> {
    pub path: PathIndex,
    pub kind: &'f str,
    /// The type of objects, or other text of the event; empty: none.
    pub detail: &'f str,
    pub sum: EventSum,
}

/// Objects of one context that live on.
#[derive(Clone, Debug)]
pub struct LeakedObjects<'f> {
    pub path: PathIndex,
    pub type_name: &'f str,
    /// Estimated objects and bytes that live at the end.
    pub live: EventSum,
}

/// An outermost own method, as class and name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct EntryMethod<'f> {
    pub class: &'f str,
    pub method: &'f str,
}

/// How often a method ran, and which events say so.
#[derive(Clone, Copy, Debug)]
pub struct EntryRuns<'f> {
    pub sum: EventSum,
    /// The type of the counted objects.
    pub detail: &'f str,
    pub path: PathIndex,
}

/// A run, prepared for detectors.
#[derive(Default)]
pub struct PreparedRun<'f> {
    nodes: Vec<FrameNode>,
    frames: Vec<&'f StackFrame>,
    contexts: Vec<RunContext<'f>>,
    totals: BTreeMap<&'f str, EventSum>,
    entries: HashMap<EntryMethod<'f>, EntryRuns<'f>>,
    leaks: Vec<LeakedObjects<'f>>,
    /// Who waits for whom.
    lock_pairs: LockPairs,
    /// Kinds that the run was to record, or has events of.
    kinds: Vec<&'f str>,
    /// The mean number of bytes between two sampled allocations, if they were sampled.
    sampled_bytes: Option<u64>,
    /// The duration of the run; zero: unknown.
    duration_ns: u64,
    /// Classes were left out, such as the JDK's.
    is_partial: bool,
    max_heap_bytes: Option<u64>,
    /// Whether the counts are those of an interval, which has not all that lives.
    pub is_interval: bool,
}

/// Adds the traces of all contexts and leaks to `traces`. Context ids that the log does not explain have none.
pub fn insert_traces(
    contexts: &ContextList,
    leaks: &LeakAnalysis,
    traces: &mut TraceTree<'_>,
) -> HashMap<ContextId, TraceId> {
    let ids = contexts.list.iter().map(|context| context.id);
    let ids = ids.chain(leaks.findings.iter().map(|leak| leak.id));
    ids.filter_map(|id| Some((id, traces.insert_trace(id).ok()?)))
        .collect()
}

impl<'f> PreparedRun<'f> {
    /// Prepares the contexts of a log. `traces` has their traces.
    pub fn from_profile(
        profile: &'f Profile,
        contexts: &ContextList,
        leaks: &'f LeakAnalysis,
        traces: &'f TraceTree<'f>,
        paths: &HashMap<ContextId, TraceId>,
    ) -> PreparedRun<'f> {
        let idle = find_idle_contexts(profile, &profile.events);
        let mut run = PreparedRun::default();
        let mut numbers: HashMap<ContextFrame, u32> = HashMap::new();
        for (caller, frame, shown) in traces.nodes() {
            let number = *numbers.entry(frame).or_insert_with(|| run.add_frame(shown));
            run.add_node(caller.map(|caller| PathIndex(caller.to_u32())), number);
        }
        let to_path = |id| {
            let trace = paths.get(&id)?;
            (!traces.is_outside(*trace)).then(|| PathIndex(trace.to_u32()))
        };
        for context in &contexts.list {
            let Some(info) = profile.types.get(context.event) else {
                continue;
            };
            let sum = EventSum {
                count: context.count,
                value: context.value,
            };
            if let Some(path) = to_path(context.id)
                && !idle.is_idle(context.id, context.event)
            {
                run.add_context(RunContext {
                    path,
                    kind: &info.kind,
                    detail: profile
                        .event_detail(context.event, context.site)
                        .unwrap_or_default(),
                    sum,
                });
            }
        }
        for leak in &leaks.findings {
            let [.., last] = leak.evidence.live;
            let live = EventSum {
                count: last.objects,
                value: last.bytes,
            };
            if let Some(path) = to_path(leak.id) {
                run.add_leak(LeakedObjects {
                    path,
                    type_name: &leak.type_name,
                    live,
                });
            }
        }
        run.kinds.extend(list_recorded_kinds(profile));
        let options = read_recorded_options(profile);
        for (kind, (class, method)) in NAMED_CALLS {
            let is_named = |options: &RecordingOptions| {
                let methods = options.events.methods();
                methods.find_use(class, method).is_some()
            };
            if options.as_ref().is_some_and(is_named) {
                run.add_recorded_kind(kind);
            }
        }
        // Calls of named methods say nothing about calls of others.
        let counted = run.totals.keys().copied().filter(|kind| *kind != CALL);
        let counted: Vec<&str> = counted.collect();
        counted
            .into_iter()
            .for_each(|kind| run.add_recorded_kind(kind));
        run.sampled_bytes = read_sampled_bytes(profile);
        run.is_partial = options.is_some_and(|options| options.is_partial());
        let census = profile.followed_objects.last_census();
        run.set_max_heap_bytes(census.and_then(|census| census.record.max_bytes));
        // A context that the log does not explain has no holder.
        run.is_interval = profile.interval.is_some();
        run.lock_pairs = list_lock_pairs(profile).unwrap_or_default();
        run.duration_ns = measure_duration(profile).saturating_mul(1_000_000);
        run
    }

    #[cfg(test)]
    pub(super) fn set_lock_pairs(&mut self, pairs: LockPairs) {
        self.lock_pairs = pairs;
    }

    pub(super) fn set_max_heap_bytes(&mut self, bytes: Option<u64>) {
        self.max_heap_bytes = bytes;
    }

    /// Adds a frame, and returns its number.
    pub(super) fn add_frame(&mut self, frame: &'f StackFrame) -> u32 {
        self.frames.push(frame);
        self.frames.len() as u32 - 1
    }

    pub(super) fn add_leak(&mut self, leak: LeakedObjects<'f>) {
        self.leaks.push(leak);
    }

    /// Adds a frame below its caller; callers come first.
    pub(super) fn add_node(&mut self, caller: Option<PathIndex>, frame: u32) -> PathIndex {
        let index = self.nodes.len() as u32;
        let above = caller.and_then(|caller| self.node(caller));
        let own = self.frames.get(frame as usize);
        let (is_place, is_jdk) = own.map_or((false, false), |frame| {
            (is_place(frame), frame.origin == CodeOrigin::Jdk)
        });
        let above_place = above.map_or(NO_PATH, |node| node.place);
        let above_entry = above.map_or(NO_PATH, |node| node.entry);
        self.nodes.push(FrameNode {
            caller: caller.map_or(NO_PATH, |caller| caller.0),
            frame,
            place: if is_place { index } else { above_place },
            entry: match above_entry {
                NO_PATH if is_place => index,
                entry => entry,
            },
            jdk_frames: match above.map(|node| node.jdk_frames) {
                _ if is_place => 0,
                Some(frames) if is_jdk => frames.saturating_add(1),
                _ => u32::MAX,
            },
        });
        PathIndex(index)
    }

    pub(super) fn add_context(&mut self, context: RunContext<'f>) {
        self.totals
            .entry(context.kind)
            .or_default()
            .add(context.sum);
        self.count_entry(&context);
        self.contexts.push(context);
    }

    /// An object that the outermost own method makes itself counts its runs, unless it makes several in each run.
    fn count_entry(&mut self, context: &RunContext<'f>) {
        let is_entry = self
            .node(context.path)
            .is_some_and(|node| node.entry == context.path.0);
        let Some(name) = self.method_name(context.path).filter(|_| is_entry) else {
            return;
        };
        let runs = EntryRuns {
            sum: context.sum,
            detail: context.detail,
            path: context.path,
        };
        let known = self.entries.entry(name).or_insert(runs);
        if known.sum.count < runs.sum.count {
            *known = runs;
        }
    }

    pub(super) fn add_recorded_kind(&mut self, kind: &'f str) {
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
    }

    fn node(&self, path: PathIndex) -> Option<&FrameNode> {
        self.nodes.get(path.0 as usize)
    }

    pub fn frame(&self, path: PathIndex) -> Option<&'f StackFrame> {
        let node = self.node(path)?;
        self.frames.get(node.frame as usize).copied()
    }

    pub fn caller(&self, path: PathIndex) -> Option<PathIndex> {
        let caller = self.node(path)?.caller;
        (caller != NO_PATH).then_some(PathIndex(caller))
    }

    /// The path and its callers, innermost first.
    pub fn paths_outwards(&self, path: PathIndex) -> impl Iterator<Item = PathIndex> {
        successors(Some(path), |path| self.caller(*path))
    }

    /// The frames of a path, innermost first.
    pub fn frames_outwards(&self, path: PathIndex) -> impl Iterator<Item = &'f StackFrame> {
        self.paths_outwards(path)
            .filter_map(|path| self.frame(path))
    }

    /// The frames below the place, innermost first; all frames if there is no own code.
    pub fn frames_between(&self, path: PathIndex) -> impl Iterator<Item = &'f StackFrame> {
        let place = self.place(path);
        self.paths_outwards(path)
            .take_while(move |path| Some(*path) != place)
            .filter_map(|path| self.frame(path))
    }

    /// The innermost own frame with a line.
    pub fn place(&self, path: PathIndex) -> Option<PathIndex> {
        let place = self.node(path)?.place;
        (place != NO_PATH).then_some(PathIndex(place))
    }

    /// The method of the outermost own frame.
    pub fn entry(&self, path: PathIndex) -> Option<EntryMethod<'f>> {
        let entry = self.node(path)?.entry;
        self.method_name(PathIndex(entry))
    }

    /// Whether the program's own code makes the event itself, or by a few methods of the JDK. Parts of the JDK that work by
    /// themselves, such as its compiler, are like libraries.
    pub fn is_direct(&self, path: PathIndex) -> bool {
        let node = self.node(path);
        node.is_some_and(|node| node.jdk_frames <= MAX_JDK_FRAMES)
    }

    /// Whether all frames below the place belong to the JDK, however many.
    pub fn is_within_jdk(&self, path: PathIndex) -> bool {
        let node = self.node(path);
        node.is_some_and(|node| node.jdk_frames != u32::MAX)
    }

    fn method_name(&self, path: PathIndex) -> Option<EntryMethod<'f>> {
        let frame = self.frame(path)?;
        Some(EntryMethod {
            class: &frame.class,
            method: &frame.method,
        })
    }

    /// How often an entry ran, if events say so.
    pub fn entry_runs(&self, entry: EntryMethod<'f>) -> Option<EntryRuns<'f>> {
        self.entries.get(&entry).copied()
    }

    pub fn contexts_of_kind(&self, kind: &str) -> impl Iterator<Item = &RunContext<'f>> {
        self.contexts
            .iter()
            .filter(move |context| context.kind == kind)
    }

    pub fn lock_pairs(&self) -> &LockPairs {
        &self.lock_pairs
    }

    pub fn leaks(&self) -> &[LeakedObjects<'f>] {
        &self.leaks
    }

    pub fn total(&self, kind: &str) -> EventSum {
        self.totals.get(kind).copied().unwrap_or_default()
    }

    pub fn has_events(&self) -> bool {
        !self.totals.is_empty()
    }

    pub fn has_kind(&self, kind: &str) -> bool {
        self.kinds.contains(&kind)
    }

    /// Whether counts of a kind are estimated from samples.
    pub fn is_sampled(&self, kind: &str) -> bool {
        ALLOC.is_kind(kind) && self.sampled_bytes.is_some()
    }

    /// The approximate number of samples behind a sum of allocations; `None`: the sum is exact.
    pub fn sample_count(&self, sum: EventSum) -> Option<u64> {
        Some(sum.value / self.sampled_bytes?.max(1))
    }

    /// Whether a sum of allocations is exact, or estimated from enough samples.
    pub fn is_reliable(&self, sum: EventSum) -> bool {
        let least = self.sampled_bytes.unwrap_or(0);
        sum.value >= least.saturating_mul(MIN_SAMPLES)
    }

    /// Whether allocations by methods of the JDK are counted.
    pub fn counts_jdk(&self) -> bool {
        !self.is_partial
    }

    /// The maximum size of the heap, if the log has it.
    pub fn max_heap_bytes(&self) -> Option<u64> {
        self.max_heap_bytes
    }

    pub fn duration_ns(&self) -> u64 {
        self.duration_ns
    }
}

/// Milliseconds of a run; of one that goes on or was killed, until the VM's counts or the live objects were read last.
fn measure_duration(profile: &Profile) -> u64 {
    let millis = profile.stat_value("run.millis");
    if millis > 0 {
        return millis;
    }
    let start = profile.header.start / 1_000_000;
    let counts = profile.vm_counts.iter();
    let counted = counts.map(|count| (count.at / 1_000_000).saturating_sub(start));
    let census = profile.followed_objects.last_census();
    counted
        .chain(census.map(|census| census.record.millis))
        .max()
        .unwrap_or(0)
}

/// Whether a frame is a line of the program's source. Generated classes have none.
fn is_place(frame: &StackFrame) -> bool {
    frame.is_own() && frame.line > 0
}
