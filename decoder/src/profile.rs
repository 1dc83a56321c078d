//! A log's content, ready to be asked.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Instant;

use lucce_callgraph::{ContextId, DecodeError, Frame, Graph, MethodId, SiteId};
use lucce_contentid::{Detail, StackId};
use lucce_filter::ClassFilter;
use lucce_tracelog::{COMMAND, CountedSum, Damage, Header, Number, RecordKind, ThreadId, VmCount};

use crate::code::Code;
use crate::escape::Text;
use crate::events::Events;
use crate::frame::StackFrame;
use crate::kinds::Types;
use crate::scope::Scope;
use crate::survivors::Following;

/// A method in a context: what a step back goes from.
pub(crate) type MethodInContext = (ContextId, MethodId);

/// Told how much more was done, for progress bars.
pub type Tick<'a> = &'a (dyn Fn(u64) + Sync);

/// Everything that a log says.
pub struct Profile {
    pub header: Header,
    /// The log's size in bytes.
    pub size: u64,
    pub graph: Graph,
    pub code: Code,
    pub events: Events,
    pub types: Types,
    pub threads: HashMap<ThreadId, ThreadInfo>,
    /// The contexts that started a thread, or threads of one name, one after the other.
    pub origins: BTreeMap<ThreadId, Vec<ContextId>>,
    /// Under which tags the events of a thread happened, key and value; none: under no tag.
    pub tags: HashMap<ThreadId, BTreeMap<String, String>>,
    /// What the VM says that threads have allocated.
    pub vm_counts: Vec<VmCount>,
    /// What counters had counted when the VM was last asked.
    pub counted_sums: Vec<CountedSum>,
    /// Facts of the run, by key. In `command` the program's arguments are masked, unless they were asked for.
    pub meta: BTreeMap<String, String>,
    /// `command` as the log has it.
    pub(crate) command: String,
    pub stats: BTreeMap<String, u64>,
    pub mismatches: Vec<Mismatch>,
    pub skipped: Vec<Skipped>,
    pub warnings: Vec<String>,
    /// Sampled objects that were alive, with `events=leak`.
    pub following: Following,
    pub sizes: Sizes,
    /// The JVM ended by itself.
    pub ended: bool,
    /// Blocks of counters without a checksum.
    pub unsealed: u64,
    /// When the counters were read.
    pub counted_at: Instant,
    /// The first damage: a counter that was left out, or where reading stopped.
    pub damage: Option<Damage>,
    pub(crate) scope: Scope,
    /// Contexts differ if the tasks in which they are were submitted elsewhere.
    pub(crate) across_threads: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadInfo {
    pub name: String,
    pub is_virtual: bool,
}

/// A number that did not decode to the JVM's own trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    pub id: ContextId,
    /// The number of the event.
    pub at: u64,
    pub expected: String,
    pub decoded: String,
}

/// A class or method that ran without hooks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skipped {
    pub class: String,
    pub method: Option<String>,
    pub reason: String,
}

/// What the log spends its bytes on.
#[derive(Clone, Default, Debug)]
pub struct Sizes {
    /// Records and bytes by kind.
    pub records: BTreeMap<RecordKind, (u64, u64)>,
    /// Cells in use and bytes of counters.
    pub counters: (u64, u64),
}

/// A decoded context.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackTrace {
    pub id: ContextId,
    /// Its content id (docs/content-ids.md), which is equal in every run.
    pub stack: StackId,
    /// What is allocated, if it is an allocation.
    pub allocated: Option<String>,
    /// Leaf first.
    pub frames: Vec<StackFrame>,
}

impl Profile {
    /// A number of this run, as it is shown.
    #[must_use]
    pub fn number(&self, id: ContextId) -> Number {
        // Of no context: of no run either.
        let run = self.header.run.filter(|_| id != ContextId::UNKNOWN);
        Number { run, id }
    }

    /// From now on, the arguments of the program are shown as the log has them.
    pub fn show_arguments(&mut self) {
        if let Some(command) = self.meta.get_mut(COMMAND) {
            self.command.clone_into(command);
        }
    }

    /// From now on, traces have frames of these classes only.
    pub fn restrict(&mut self, filter: &ClassFilter) {
        self.scope = Scope::new(&self.code, filter);
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
    pub fn frames(&self, id: ContextId) -> Result<Vec<Frame>, DecodeError> {
        let mut frames = self.graph.decode(id, MethodId::EVENT)?;
        self.keep_own(&mut frames);
        frames.retain(|frame| self.scope.holds(*frame));
        Ok(frames)
    }

    /// Only those of the thread itself, not those of the thread that submitted the task that it ran.
    fn keep_own(&self, frames: &mut Vec<Frame>) {
        let between = |frame: &Frame| self.code.is_between(*frame);
        frames.truncate(frames.iter().position(between).unwrap_or(frames.len()));
    }

    /// From now on, traces of tasks that were submitted from different contexts are not one.
    pub fn tell_apart_across_threads(&mut self) {
        self.across_threads = true;
    }

    /// # Errors
    /// The log does not know this number.
    pub fn trace(&self, id: ContextId) -> Result<StackTrace, DecodeError> {
        let mut frames = self.graph.decode(id, MethodId::EVENT)?;
        self.keep_own(&mut frames);
        Ok(self.shown(id, frames))
    }

    /// The trace of these frames.
    pub(crate) fn shown(&self, id: ContextId, mut frames: Vec<Frame>) -> StackTrace {
        let site = frames.first().map_or(SiteId::NONE, |leaf| leaf.site);
        frames.retain(|frame| self.scope.holds(*frame));
        let shown: Vec<_> = frames.iter().map(|frame| self.code.frame(*frame)).collect();
        let outermost_first = frames.iter().zip(&shown).rev();
        let ids =
            outermost_first.map(|(frame, shown)| self.code.frame_id(*frame, shown, Detail::ByLine));
        StackTrace {
            id,
            stack: ids.fold(StackId::EMPTY, StackId::then),
            allocated: self.code.allocated(site).map(str::to_owned),
            frames: shown,
        }
    }

    /// The name of the thread that recorded events of this context, if it is exactly one.
    #[must_use]
    pub fn only_thread(&self, id: ContextId) -> Option<&str> {
        let (first, rest) = self.events.of(id).split_first()?;
        let only = rest.iter().all(|share| share.thread == first.thread);
        let thread = self.threads.get(&first.thread).filter(|_| only)?;
        Some(&thread.name)
    }

    #[must_use]
    pub fn stat(&self, key: &str) -> u64 {
        self.stats.get(key).copied().unwrap_or(0)
    }

    /// Events that happened and are not in the log.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.stat("events.lost")
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
            classes.max(self.stat("classes.skipped")),
            methods.max(self.stat("methods.skipped")),
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

impl Skipped {
    /// As the agent said it on standard error.
    pub fn warning(&self) -> String {
        let method = self.method.iter();
        let method: String = method.map(|name| format!(".{name}")).collect();
        format!("{}{method} is left as it is: {}", self.class, self.reason)
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Text(&self.class))?;
        if let Some(method) = &self.method {
            write!(f, ".{}", Text(method))?;
        }
        write!(f, ": {}", Text(&self.reason))
    }
}
