//! The typed options.

use std::path::PathBuf;
use std::time::Duration;

use lucce_filter::{ClassFilter, PatternList};

use crate::kinds::{ALLOC, CALL, EventKindSet, OPEN, REQUEST, THREAD};
use crate::resources::ResourceRules;
use crate::selection::EventSelection;
use crate::{BurstOptions, CostBudget, StartDelay};

/// The agent's options, as the user has given them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordingOptions {
    /// The log's path; see [`crate::placeholders`].
    pub out: PathBuf,
    pub events: EventSelection,
    /// Requests are recorded in addition to `events`.
    pub requests: bool,
    /// A task has the tags of the code that submitted it.
    pub tags_follow_tasks: bool,
    /// Resources of the program, in addition to those that are known.
    pub resources: ResourceRules,
    /// When counting begins; `None`: at once.
    pub delay: Option<StartDelay>,
    /// Count in bursts only.
    pub burst: Option<BurstOptions>,
    /// The cost of samples that the user allows.
    pub budget: Option<CostBudget>,
    /// Compare every n-th event with the VM's own stack trace; 0: none.
    pub verify: u32,
    /// Largest size of the log in bytes.
    pub limit: u64,
    /// How contexts are numbered.
    pub encoding: EncodingChoice,
    /// The log of an earlier run, for [`EncodingChoice::Static`].
    pub graph: Option<PathBuf>,
    /// Each event is also written with its time to a file of at most `stream_limit` bytes.
    pub stream: bool,
    pub stream_limit: u64,
    /// For the lab: all calls are also written to a file of at most `calls_limit` bytes.
    pub calls: bool,
    pub calls_limit: u64,
    /// How contexts are kept if classes have hooks.
    pub tracking: TrackingMode,
    /// The agent decides whether classes have hooks (`tracking=auto`).
    pub(crate) is_tracking_automatic: bool,
    /// Whether `lucce ctl` finds the JVM.
    pub ctl: ControlMode,
    pub log: LogLevel,
    /// The collector that gets the log while the program runs.
    pub push: PushOptions,
    /// If recording is impossible, the JVM does not start.
    pub strict: bool,
    /// Known facts about the JDK are compared with the present JDK.
    pub facts: bool,
    pub class_cache: ClassCacheOption,
    /// The programs whose JVMs are recorded; empty: all.
    pub only: PatternList,
    /// Which classes get hooks and appear in traces: the classes of `instrument` that the filter admits.
    pub instrument: InstrumentScope,
    pub filter: ClassFilter,
    /// The classes of the program itself, which reports show first; empty: known by where they came from.
    pub app: PatternList,
    /// Allocations that an attached agent counts; `None`: the default.
    pub attached_alloc: Option<AllocationSampling>,
    /// An existing file for the reason why the attached agent does not stay.
    pub refusal_file: Option<PathBuf>,
}

/// The way to start the agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartMode {
    /// With the JVM: `-agentpath`, `lucce run`.
    WithJvm,
    /// Into a running JVM: `lucce attach`, `lucce record`.
    Attached,
}

/// Allocations that an attached agent counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllocationSampling {
    Every,
    /// One for this number of bytes.
    Interval(u32),
}

/// The classes that get hooks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InstrumentScope {
    All,
    /// Classes that neither the boot loader nor the platform loader defined.
    App,
}

/// Where the JDK's classes with hooks are kept for other runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClassCacheOption {
    Off,
    /// In the user's cache folder.
    User,
    In(PathBuf),
}

/// How a thread keeps its current context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrackingMode {
    /// Frames publish their call sites; an event computes its context.
    Lazy,
    /// For comparison: a calling context tree for each thread, with a look-up at every entry.
    Cct,
    /// For comparison: the scheme of the Lucce paper, with a number and a version for every frame.
    Paper,
}

/// How contexts are numbered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EncodingChoice {
    Lucce,
    Adaptive,
    /// Planned in advance, from an earlier run's log.
    Static,
    Cct,
}

/// Control while the program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControlMode {
    Off,
    /// Kinds for which classes have hooks can be switched.
    On,
    /// Classes have hooks for all kinds that can be switched.
    All,
}

/// Least severe level of messages on standard error.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
    None,
}

/// The options of pushing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PushOptions {
    /// The collector's URL; `None`: the log is not pushed.
    pub url: Option<String>,
    /// Pause between two pushes.
    pub every: Duration,
    /// A file with the token for the collector.
    pub token: Option<PathBuf>,
    /// Names of the program for the dataset; see [`crate::placeholders`].
    pub service: String,
    pub version: String,
}

impl Default for PushOptions {
    fn default() -> Self {
        PushOptions {
            url: None,
            every: Duration::from_secs(60),
            token: None,
            service: String::new(),
            version: String::new(),
        }
    }
}

/// Default maximum size in bytes of a file beside the log.
const DEFAULT_FILE_LIMIT: u64 = 64 << 20;

/// HotSpot's default sampling interval in bytes.
pub const DEFAULT_SAMPLING_INTERVAL: u32 = 512 << 10;

impl RecordingOptions {
    /// The defaults of a way to start the agent.
    #[must_use]
    pub fn default_for(mode: StartMode) -> RecordingOptions {
        RecordingOptions {
            out: PathBuf::from("lucce-%p-%t.lucce"),
            events: EventSelection::from_kinds(&[&ALLOC]),
            requests: false,
            tags_follow_tasks: true,
            resources: ResourceRules::default(),
            delay: None,
            burst: None,
            budget: None,
            verify: 0,
            limit: u64::MAX,
            encoding: EncodingChoice::Lucce,
            graph: None,
            stream: false,
            stream_limit: DEFAULT_FILE_LIMIT,
            calls: false,
            calls_limit: DEFAULT_FILE_LIMIT,
            tracking: TrackingMode::Lazy,
            is_tracking_automatic: true,
            ctl: ControlMode::On,
            log: match mode {
                StartMode::WithJvm => LogLevel::Info,
                // The JVM's terminal belongs to another program.
                StartMode::Attached => LogLevel::Warn,
            },
            push: PushOptions::default(),
            strict: false,
            facts: false,
            class_cache: ClassCacheOption::User,
            only: PatternList::default(),
            instrument: InstrumentScope::All,
            filter: ClassFilter::default(),
            app: PatternList::default(),
            attached_alloc: None,
            refusal_file: None,
        }
    }

    /// Adds the kinds that other options than `events=` ask for.
    pub(crate) fn complete_events(&mut self, mode: StartMode) {
        let counts_each = self.events.has_kind(&ALLOC) && mode == StartMode::WithJvm;
        if self.budget.is_some() && counts_each && self.events.heap_interval().is_none() {
            self.events = self
                .events
                .with_sampled_allocations(DEFAULT_SAMPLING_INTERVAL);
        }
        if self.requests {
            let request = EventKindSet::default().with_kind(&REQUEST);
            self.events = self.events.with_kinds(request);
        }
        if !self.resources.is_empty() {
            let open = EventKindSet::default().with_kind(&OPEN);
            self.events = self.events.with_kinds(open);
        }
    }

    /// The first sampling interval in bytes that the user gives for `budget=`.
    pub(crate) fn first_interval(&self) -> Option<u32> {
        let attached = self.attached_alloc.map(AllocationSampling::interval);
        attached.or(self.events.alloc_interval())
    }

    /// Whether classes get hooks for allocations.
    #[must_use]
    pub fn has_alloc_hooks(&self) -> bool {
        self.hooked_events().has_kind(&ALLOC)
    }

    /// Whether numbers are planned in advance, from an earlier run's log.
    #[must_use]
    pub fn has_static_graph(&self) -> bool {
        self.encoding == EncodingChoice::Static
    }

    /// Whether some classes have no hooks.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.instrument == InstrumentScope::App || !self.filter.is_open()
    }

    /// The kinds for which classes get hooks and the VM's events are enabled: kinds counted now or possibly later.
    #[must_use]
    pub fn hooked_events(&self) -> EventSelection {
        let all = self.ctl == ControlMode::All;
        let later = EventKindSet::select(|kind| all && kind.can_come_later);
        // A call recording needs every entry.
        let recorded = match self.calls {
            true => EventKindSet::default().with_kind(&CALL),
            false => EventKindSet::default(),
        };
        self.events.with_kinds(later).with_kinds(recorded)
    }

    /// The kinds whose hooks classes get. The hooks of `thread` also pass tags on to tasks.
    #[must_use]
    pub fn kinds_in_code(&self) -> EventKindSet {
        let kinds = self.hooked_events().kinds_in_code();
        match self.passes_tags() {
            true => kinds.with_kind(&THREAD),
            false => kinds,
        }
    }

    /// Whether tasks keep the tags of the code that submits them.
    #[must_use]
    pub fn passes_tags(&self) -> bool {
        self.tags_follow_tasks
            && self.tracking == TrackingMode::Lazy
            && !self.calls
            && !self.has_static_graph()
    }

    /// Whether no class has hooks: all selected events are rare, and the VM itself reports them.
    #[must_use]
    pub fn is_hookless(&self) -> bool {
        let needs_hooks = self.ctl == ControlMode::All
            || self.stream
            || self.calls
            || self.burst.is_some()
            || self.has_static_graph();
        self.is_tracking_automatic && !needs_hooks && self.events.are_all_from_vm()
    }

    /// Whether only the program's own code can ask for a context: no event of bytecode is counted or recorded.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let mut kinds = self.hooked_events().kinds().iter();
        !kinds.any(|kind| kind.is_everywhere) && !self.calls
    }

    /// Sampling interval of an attached agent in bytes, for counted allocations and followed objects. 0: every
    /// allocation.
    #[must_use]
    pub fn attached_interval(&self) -> u32 {
        let alloc = self.attached_alloc.map(AllocationSampling::interval);
        let interval = alloc.or(self.events.leak_interval());
        interval.unwrap_or(DEFAULT_SAMPLING_INTERVAL)
    }
}

impl AllocationSampling {
    /// The sampling interval in bytes; 0: every allocation.
    #[must_use]
    pub fn interval(self) -> u32 {
        match self {
            AllocationSampling::Every => 0,
            AllocationSampling::Interval(bytes) => bytes,
        }
    }
}
