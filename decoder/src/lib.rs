//! Decodes event logs into stack traces: the library behind `lucce` and `lucce-fleet`.
//!
//! ```text
//! LogSource ──► Profile { graph, code, events, … } ──► decode_trace(id): frames
//!                                                  └─► list_contexts(): all events, by stack trace
//! ```
//! Reading order:
//! - text: `escape` (how names are written), `frame`, `frame_fold` (own code stays, other frames are folded)
//! - content of a log: `code` (names and lines of sites and methods), `events` (counters), `kinds` (kinds of events), `profile`,
//!   `load` (log → profile), `limits` (of packed logs), `source` (the log's file), `symbols` (a log without counters)
//! - contexts: `scope` (classes whose frames are shown), `context_walk` (folds frames of contexts), `call_tree` (calling context
//!   tree), `fingerprint` (content ids of traces), `traces` (a call tree with names),
//!   `contexts` (events by trace), `context_focus` (their own code), `origins` (who started a thread), `idle` (threads that wait for work), `tags` (of the program)
//! - locks, threads, memory: `lock_pairs` (who waits for whom), `started_threads` (who started the threads that live), `living_memory` (outside of the heap)
//! - sums: `measure` (what is summed, by what), `kind_totals` (by kind), `coverage` (counted bytes divided by allocated bytes), `recorded_options` (the run's options),
//!   `collapsed` (stacks for flame graphs)
//! - time: `stream_events` (single events with their times), `bursts`, `delta` (counters since the last reading of a running JVM)
//! - live objects: `followed_objects` (sampled live objects), `evidence`, `sufficiency` and `leaks` (contexts that leak, and
//!   whether a leak can be excluded), `alive` (live objects without a proof)
//! - output: `merged` (runs merged by names), `export` (one run for other tools)
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

pub mod escape;
mod frame;
mod frame_fold;

mod code;
mod code_origin;
mod events;
mod idle;
mod kinds;
mod marks;

mod delta;
mod followed_objects;

mod scope;

mod load;
mod measure;
mod profile;
mod run_interval;

mod limits;
mod source;
mod symbols;

mod fingerprint;
mod traces;

mod defined_classes;
mod living_memory;
mod origins;
mod started_threads;

mod bursts;
mod stream_events;

mod collapsed;
mod context_focus;
mod contexts;
mod coverage;
mod heap_estimates;
mod object_sizes;

mod kind_totals;
mod lock_pairs;
mod method_times;
mod open_resources;
mod recorded_options;
mod sample_errors;
mod tags;

mod evidence;
mod sufficiency;

mod leaks;

mod alive;

mod call_tree;
mod context_walk;

mod merged;

mod export;

pub use alive::{AgeClass, AliveAmount, AliveObjects, AliveRow, list_alive_objects};
pub use bursts::{BurstSummary, CountingDelay, read_counting_delay, summarize_bursts};
pub use call_tree::{CallTree, NodeId, TreeFrameKey};
pub use code::{CodeSymbols, type_name};
pub use collapsed::{CollapsedStacks, write_difference};
pub use context_focus::ContextFocus;
pub use contexts::{ContextList, ContextSummary, EventContext};
pub use coverage::{AllocationCoverage, CoverageBytes, ThreadCoverage, compute_coverage};
pub use defined_classes::{ClassDefinitions, ClassTotals, list_defined_classes, sum_classes};
pub use delta::DeltaTracker;
pub use events::{ContextCounter, ContextCounters};
pub use evidence::{LeakEvidence, LiveAmount, SnapshotPoint};
pub use export::{ExportOptions, RunExport, export_run, has_followed_objects};
pub use followed_objects::{FollowedObjects, LiveObjectCensus, LiveObjectRow, LiveObjectSnapshot};
pub use frame::{CodeOrigin, StackFrame, is_jdk_name};
pub use frame_fold::{FoldedFrames, FoldedLine, FrameDisplay, MIN_TRACE_LINES, shorten_trace};
pub use heap_estimates::{
    HeapAmount, HeapEstimates, SURVIVAL_KINDS, SampleRole, SurvivalAmount, find_sample_role,
    has_survival, list_sampled_contexts,
};
pub use idle::{IdleContexts, find_idle_contexts};
pub use kinds::{
    ALLOC, ALLOCATION, EventTypeTable, HEAP, KindTotal, LEAK, TypeInfo, select_own_kinds,
};
pub use leaks::{LeakAnalysis, LeakFinding, LeakSuspect, SuspectVerdict, analyze_leaks};
pub use living_memory::{BlockSum, LivingMemory, MemorySource, list_living_memory};
pub use lock_pairs::{LockPair, LockPairs, list_lock_pairs};
pub use lucce_callgraph::{ContextId, DecodeError, MethodId, SiteId};
pub use lucce_options::KindDescriptor;
pub use lucce_options::kinds::is_supplement_kind;
pub use lucce_stream::{EventStream, StreamEvent, events_path};
pub use lucce_tracelog::{ContextNumber, EventTypeId, LogDamage, OpenError, RunId, ThreadId};
pub use marks::{MarkedMoment, RunInterval, RunMark, RunMarks, START_NAME};
pub use measure::{GroupBy, Measure};
pub use merged::{
    CallTreeBranch, CallTreeOptions, EventMeaning, FrameName, GroupKey, KindName, MergedCounter,
    MergedNames, MergedProfile, MergedRun, PathSum, TaggedThread,
};
pub use method_times::{MethodTimeSums, list_method_times};
pub use object_sizes::{AllocationAmount, has_array_sizes, read_humongous_bytes};
pub use open_resources::{
    GROWTH_PARTS, OpenResource, OpenedContext, OpenedResources, list_open_resources,
};
pub use origins::{StartOrigin, SubmissionIndex, index_submissions, trace_submitters};
pub use profile::{
    DecodeMismatch, LogSizes, Profile, ProfileThread, ProgressTick, SkippedCode, StackTrace,
};
pub use recorded_options::{list_recorded_kinds, read_recorded_options};
pub use run_interval::{IntervalError, IntervalStart};
pub use sample_errors::{
    BudgetSummary, EstimateError, SampleError, SampleErrors, describe_sampling,
    explain_sample_bias, read_heap_interval, read_sampled_bytes, summarize_budget,
};
pub use source::{LogSource, read_header};
pub use started_threads::{StartedThreads, ThreadStarts, list_started_threads};
pub use stream_events::{
    EventExplanation, EventWindow, check_same_run, count_streamed_events, count_unstreamed_events,
    explain_event,
};
pub use sufficiency::{
    EvidenceSufficiency, LiveCourse, MissingEvidence, judge_course, judge_sufficiency,
};
pub use symbols::{SymbolsExtract, is_symbols};
pub use tags::{
    UNTAGGED, check_tags, find_thread_tags, format_tags, format_thread_tags, has_requests,
    has_tags, keep_tagged, threads_with_tags,
};
pub use traces::{FrameList, TraceId, TraceSums, TraceTree, TraceVisit};
