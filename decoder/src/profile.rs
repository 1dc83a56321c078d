//! [`Profile`]: the content of a log, and look-ups in it.
//!
//! ```text
//! ContextId ──► graph: ContextFrame ──► scope: frames in scope ──► code: StackFrame ──► StackTrace
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::time::Instant;

use lucce_callgraph::{ContextFrame, ContextId, DecodeError, MethodId, SiteId, VersionedGraph};
use lucce_contentid::{ContentDetail, StackId};
use lucce_filter::ClassFilter;
use lucce_tracelog::{
    COMMAND, ContextNumber, CountedSum, LogDamage, LogHeader, RecordKind, ThreadId, VmCounterValue,
};

use crate::code::CodeSymbols;
use crate::escape::EscapedText;
use crate::events::{ContextCounter, ContextCounters};
use crate::followed_objects::FollowedObjects;
use crate::frame::{CodeOrigin, StackFrame};
use crate::kinds::EventTypeTable;
use crate::marks::{RunInterval, RunMarks};
use crate::scope::FrameScope;

/// A method in a context: the start of a step to its caller.
pub(crate) type MethodInContext = (ContextId, MethodId);

/// Called with the amount of work done since the last call, for progress bars.
pub type ProgressTick<'a> = &'a (dyn Fn(u64) + Sync);

/// The content of a log.
pub struct Profile {
    pub header: LogHeader,
    /// The log's size in bytes.
    pub size: u64,
    pub graph: VersionedGraph,
    pub code: CodeSymbols,
    pub events: ContextCounters,
    pub marks: RunMarks,
    /// The marks between which events are counted. `None`: all events of the run.
    pub interval: Option<RunInterval>,
    pub types: EventTypeTable,
    /// Counters of holders of locks: see [`crate::lock_pairs`].
    pub(crate) lock_holders: ContextCounters,
    /// With `budget=`: the variances of sampled allocations.
    pub(crate) sample_errors: ContextCounters,
    /// Counters of living threads, one for each thread: see [`crate::started_threads`].
    pub(crate) alive_threads: Vec<ContextCounter>,
    /// Counters of living memory outside of the heap: see [`crate::living_memory`].
    pub(crate) living_memory: Vec<ContextCounter>,
    /// Counters of open resources, one for each, and of collected ones: see [`crate::open_resources`].
    pub(crate) open_resources: Vec<ContextCounter>,
    pub(crate) collected_resources: Vec<ContextCounter>,
    pub threads: HashMap<ThreadId, ProfileThread>,
    /// The contexts that started a thread, or several threads of one name in turn.
    pub origins: BTreeMap<ThreadId, Vec<ContextId>>,
    /// The tags of a thread's events, by key. A thread without an entry has no tags.
    pub tags: HashMap<ThreadId, BTreeMap<String, String>>,
    /// Bytes that threads allocated, by the VM's count.
    pub vm_counts: Vec<VmCounterValue>,
    /// What the counters had counted at the VM's last count.
    pub counted_sums: Vec<CountedSum>,
    /// Facts of the run, by key. The program's arguments in `command` are masked, unless they are to be shown.
    pub meta: BTreeMap<String, String>,
    /// `command` with unmasked arguments.
    pub(crate) command: String,
    pub stats: BTreeMap<String, u64>,
    pub mismatches: Vec<DecodeMismatch>,
    pub skipped: Vec<SkippedCode>,
    pub warnings: Vec<String>,
    /// Sampled objects that were alive, with `events=leak`.
    pub followed_objects: FollowedObjects,
    pub sizes: LogSizes,
    /// Whether the JVM ended normally.
    pub ended: bool,
    /// Number of blocks of counters without a checksum.
    pub unsealed: u64,
    /// When the counters were read.
    pub counters_read_at: Instant,
    /// The first damage: a counter that was left out, or the place where reading stopped.
    pub damage: Option<LogDamage>,
    pub(crate) scope: FrameScope,
    /// The places of the program's own code; see [`Profile::own_code`].
    pub(crate) own_places: BTreeSet<String>,
    /// The longest time in each context, of kinds that have one.
    pub(crate) longest_values: HashMap<ContextId, u64>,
    /// Whether contexts of tasks differ by the context that submitted the task.
    pub(crate) across_threads: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProfileThread {
    pub name: String,
    pub is_virtual: bool,
}

/// A context id that did not decode to the JVM's own stack trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecodeMismatch {
    pub id: ContextId,
    /// The number of the event in the run.
    pub at: u64,
    pub expected: String,
    pub decoded: String,
}

/// A class or method that ran without hooks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SkippedCode {
    pub class: String,
    pub method: Option<String>,
    pub reason: String,
}

/// Sizes of a log's parts.
#[derive(Clone, Default, Debug)]
pub struct LogSizes {
    /// Number of records and their bytes, by kind.
    pub records: BTreeMap<RecordKind, (u64, u64)>,
    /// Number of counters in use, and bytes of all blocks of counters.
    pub counters: (u64, u64),
}

/// A decoded context.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackTrace {
    pub id: ContextId,
    /// Its content id (docs/reference/content-ids.md), which is equal in every run.
    pub stack: StackId,
    /// The allocated type, if the event is an allocation.
    pub allocated: Option<String>,
    /// Innermost first.
    pub frames: Vec<StackFrame>,
}

impl StackTrace {
    /// The frame by which people know the context: the innermost frame of own code, else the innermost frame.
    #[must_use]
    pub fn focus_frame(&self) -> Option<&StackFrame> {
        let mut frames = self.frames.iter();
        let own = frames.find(|frame| frame.origin == CodeOrigin::Application);
        own.or(self.frames.first())
    }

    /// That frame as text.
    #[must_use]
    pub fn place_text(&self) -> String {
        let frame = self.focus_frame();
        frame.map_or_else(|| "an unknown place".to_owned(), ToString::to_string)
    }
}

impl Profile {
    /// The end of the run in milliseconds since 1970; without one, the last of these times.
    pub(crate) fn end_ms(&self, times: impl Iterator<Item = u64>) -> u64 {
        match self.stat_value("run.millis") {
            0 => times.max().unwrap_or_default(),
            millis => (self.header.start / 1_000_000).saturating_add(millis),
        }
    }

    /// A context id with the run's id, as it is shown.
    #[must_use]
    pub fn context_number(&self, id: ContextId) -> ContextNumber {
        // The unknown context has no run.
        let run = self.header.run.filter(|_| id != ContextId::UNKNOWN);
        ContextNumber { run, id }
    }

    /// What counts as the program's own code, for people, sorted: `shop.jar!BOOT-INF/classes`, `com.acme.*`.
    #[must_use]
    pub fn own_code(&self) -> &BTreeSet<String> {
        &self.own_places
    }

    /// Shows the program's arguments unmasked from now on.
    pub fn show_arguments(&mut self) {
        if let Some(command) = self.meta.get_mut(COMMAND) {
            self.command.clone_into(command);
        }
    }

    /// Limits traces to frames of classes that `filter` admits, from now on.
    pub fn restrict_scope(&mut self, filter: &ClassFilter) {
        self.scope = FrameScope::new(&self.code, filter);
    }

    /// Whether the scope leaves out frames.
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        self.scope.is_partial()
    }

    /// The frames of an event in scope, innermost first.
    ///
    /// # Errors
    /// The log does not explain this context id.
    pub fn decode_frames(&self, id: ContextId) -> Result<Vec<ContextFrame>, DecodeError> {
        let mut frames = self.graph.decode_context(id, MethodId::EVENT)?;
        self.keep_own_frames(&mut frames);
        frames.retain(|frame| self.scope.contains_frame(*frame));
        Ok(frames)
    }

    /// Removes the frames of the thread that submitted the task.
    fn keep_own_frames(&self, frames: &mut Vec<ContextFrame>) {
        let between = |frame: &ContextFrame| self.code.is_submission_frame(*frame);
        frames.truncate(frames.iter().position(between).unwrap_or(frames.len()));
    }

    /// Treats traces of tasks as different if different contexts submitted the tasks, from now on.
    pub fn distinguish_submitters(&mut self) {
        self.across_threads = true;
    }

    /// Decodes a context id to its trace, without the submitter's frames.
    ///
    /// # Errors
    /// The log does not explain this context id.
    pub fn decode_trace(&self, id: ContextId) -> Result<StackTrace, DecodeError> {
        let mut frames = self.graph.decode_context(id, MethodId::EVENT)?;
        self.keep_own_frames(&mut frames);
        Ok(self.resolve_trace(id, frames))
    }

    /// Resolves the frames in scope to a trace.
    pub(crate) fn resolve_trace(&self, id: ContextId, mut frames: Vec<ContextFrame>) -> StackTrace {
        let site = frames.first().map_or(SiteId::NONE, |leaf| leaf.site);
        frames.retain(|frame| self.scope.contains_frame(*frame));
        let shown: Vec<_> = frames
            .iter()
            .map(|frame| self.code.resolve_frame(*frame))
            .collect();
        let outermost_first = frames.iter().zip(&shown).rev();
        let ids = outermost_first
            .map(|(frame, shown)| self.code.frame_id(*frame, shown, ContentDetail::ByLine));
        StackTrace {
            id,
            stack: ids.fold(StackId::EMPTY, StackId::with_callee),
            allocated: self.code.allocated_type(site).map(str::to_owned),
            frames: shown,
        }
    }

    /// The name of the thread that has events of this context, if it is exactly one.
    #[must_use]
    pub fn single_thread_name(&self, id: ContextId) -> Option<&str> {
        let (first, rest) = self.events.counters_of_context(id).split_first()?;
        let only = rest.iter().all(|share| share.thread == first.thread);
        let thread = self.threads.get(&first.thread).filter(|_| only)?;
        Some(&thread.name)
    }

    #[must_use]
    pub fn stat_value(&self, key: &str) -> u64 {
        self.stats.get(key).copied().unwrap_or(0)
    }

    /// Number of dropped events.
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.stat_value("events.lost")
    }

    /// Number of classes, and of methods of other classes, that ran without hooks.
    #[must_use]
    pub fn skipped_counts(&self) -> (u64, u64) {
        let methods = self
            .skipped
            .iter()
            .filter(|skipped| skipped.method.is_some())
            .count() as u64;
        let classes = self.skipped.len() as u64 - methods;
        (
            classes.max(self.stat_value("classes.skipped")),
            methods.max(self.stat_value("methods.skipped")),
        )
    }
}

/// Prints the frames as the JVM prints them under an exception.
impl fmt::Display for StackTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.frames
            .iter()
            .try_for_each(|frame| writeln!(f, "\tat {frame}"))
    }
}

impl SkippedCode {
    /// The text of the agent's warning on standard error.
    pub fn warning_text(&self) -> String {
        let method = self.method.iter();
        let method: String = method.map(|name| format!(".{name}")).collect();
        format!("{}{method} is left as it is: {}", self.class, self.reason)
    }
}

impl fmt::Display for SkippedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", EscapedText(&self.class))?;
        if let Some(method) = &self.method {
            write!(f, ".{}", EscapedText(method))?;
        }
        write!(f, ": {}", EscapedText(&self.reason))
    }
}
