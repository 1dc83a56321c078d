//! A log's content, ready to be asked.

use std::collections::{BTreeMap, HashMap};
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
use crate::events::ContextCounters;
use crate::followed_objects::FollowedObjects;
use crate::frame::StackFrame;
use crate::kinds::EventTypeTable;
use crate::scope::FrameScope;

/// A method in a context: what a step back goes from.
pub(crate) type MethodInContext = (ContextId, MethodId);

/// Told how much more was done, for progress bars.
pub type ProgressTick<'a> = &'a (dyn Fn(u64) + Sync);

/// Everything that a log says.
pub struct Profile {
    pub header: LogHeader,
    /// The log's size in bytes.
    pub size: u64,
    pub graph: VersionedGraph,
    pub code: CodeSymbols,
    pub events: ContextCounters,
    pub types: EventTypeTable,
    pub threads: HashMap<ThreadId, ProfileThread>,
    /// The contexts that started a thread, or threads of one name, one after the other.
    pub origins: BTreeMap<ThreadId, Vec<ContextId>>,
    /// Under which tags the events of a thread happened, key and value; none: under no tag.
    pub tags: HashMap<ThreadId, BTreeMap<String, String>>,
    /// What the VM says that threads have allocated.
    pub vm_counts: Vec<VmCounterValue>,
    /// What counters had counted when the VM was last asked.
    pub counted_sums: Vec<CountedSum>,
    /// Facts of the run, by key. In `command` the program's arguments are masked, unless they were asked for.
    pub meta: BTreeMap<String, String>,
    /// `command` as the log has it.
    pub(crate) command: String,
    pub stats: BTreeMap<String, u64>,
    pub mismatches: Vec<DecodeMismatch>,
    pub skipped: Vec<SkippedCode>,
    pub warnings: Vec<String>,
    /// Sampled objects that were alive, with `events=leak`.
    pub followed_objects: FollowedObjects,
    pub sizes: LogSizes,
    /// The JVM ended by itself.
    pub ended: bool,
    /// Blocks of counters without a checksum.
    pub unsealed: u64,
    /// When the counters were read.
    pub counted_at: Instant,
    /// The first damage: a counter that was left out, or where reading stopped.
    pub damage: Option<LogDamage>,
    pub(crate) scope: FrameScope,
    /// Contexts differ if the tasks in which they are were submitted elsewhere.
    pub(crate) across_threads: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProfileThread {
    pub name: String,
    pub is_virtual: bool,
}

/// A number that did not decode to the JVM's own trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecodeMismatch {
    pub id: ContextId,
    /// The number of the event.
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

/// What the log spends its bytes on.
#[derive(Clone, Default, Debug)]
pub struct LogSizes {
    /// Records and bytes by kind.
    pub records: BTreeMap<RecordKind, (u64, u64)>,
    /// Cells in use and bytes of counters.
    pub counters: (u64, u64),
}

/// A decoded context.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackTrace {
    pub id: ContextId,
    /// Its content id (docs/reference/content-ids.md), which is equal in every run.
    pub stack: StackId,
    /// What is allocated, if it is an allocation.
    pub allocated: Option<String>,
    /// Leaf first.
    pub frames: Vec<StackFrame>,
}

impl Profile {
    /// A number of this run, as it is shown.
    #[must_use]
    pub fn context_number(&self, id: ContextId) -> ContextNumber {
        // Of no context: of no run either.
        let run = self.header.run.filter(|_| id != ContextId::UNKNOWN);
        ContextNumber { run, id }
    }

    /// From now on, the arguments of the program are shown as the log has them.
    pub fn show_arguments(&mut self) {
        if let Some(command) = self.meta.get_mut(COMMAND) {
            self.command.clone_into(command);
        }
    }

    /// From now on, traces have frames of these classes only.
    pub fn restrict_scope(&mut self, filter: &ClassFilter) {
        self.scope = FrameScope::new(&self.code, filter);
    }

    /// Whether some frames are left out.
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        self.scope.is_partial()
    }

    /// The place of an event and its callers, innermost first, as far as they are in scope.
    ///
    /// # Errors
    /// The log does not know this number.
    pub fn decode_frames(&self, id: ContextId) -> Result<Vec<ContextFrame>, DecodeError> {
        let mut frames = self.graph.decode_context(id, MethodId::EVENT)?;
        self.keep_own_frames(&mut frames);
        frames.retain(|frame| self.scope.contains_frame(*frame));
        Ok(frames)
    }

    /// Only those of the thread itself, not those of the thread that submitted the task that it ran.
    fn keep_own_frames(&self, frames: &mut Vec<ContextFrame>) {
        let between = |frame: &ContextFrame| self.code.is_submission_frame(*frame);
        frames.truncate(frames.iter().position(between).unwrap_or(frames.len()));
    }

    /// From now on, traces of tasks that were submitted from different contexts are not one.
    pub fn distinguish_submitters(&mut self) {
        self.across_threads = true;
    }

    /// # Errors
    /// The log does not know this number.
    pub fn decode_trace(&self, id: ContextId) -> Result<StackTrace, DecodeError> {
        let mut frames = self.graph.decode_context(id, MethodId::EVENT)?;
        self.keep_own_frames(&mut frames);
        Ok(self.resolve_trace(id, frames))
    }

    /// The trace of these frames.
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

    /// The name of the thread that recorded events of this context, if it is exactly one.
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

    /// Events that happened and are not in the log.
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.stat_value("events.lost")
    }

    /// Classes, and single methods of other classes, that ran without hooks.
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

/// The frames as the JVM prints them under an exception.
impl fmt::Display for StackTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.frames
            .iter()
            .try_for_each(|frame| writeln!(f, "\tat {frame}"))
    }
}

impl SkippedCode {
    /// As the agent said it on standard error.
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
