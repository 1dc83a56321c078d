//! Decodes event logs into stack traces: the library behind the `lucce` command.
//!
//! ```text
//! LogSource ──► Profile { graph, code, events, … } ──► decode_trace(id): frames
//!                                                  └─► list_contexts(): all events, by stack trace
//! ```
//! Reading order:
//! - text: `escape` (how names are written), `units` (durations and sizes of options), `frame`
//! - content of a log: `code` (names and lines of sites and methods), `events` (counters), `kinds` (kinds of events), `profile`,
//!   `load` (log → profile), `limits` (of packed logs), `source` (the log's file), `symbols` (a log without counters)
//! - contexts: `scope` (classes whose frames are shown), `fingerprint` (content ids of traces), `traces` (a tree of frames),
//!   `contexts` (events by trace), `origins` (who started a thread), `idle` (threads that wait for work), `tags` (of the program)
//! - sums: `kind_totals` (by kind), `coverage` (counted bytes divided by allocated bytes), `recorded_options` (the run's options),
//!   `collapsed` (stacks for flame graphs)
//! - calls: `call_labels` and `call_feed` (calls of a run, for k-calling contexts)
//! - time: `stream_events` (single events with their times), `bursts`, `delta` (counters since the last reading of a running JVM)
//! - live objects: `followed_objects` (sampled live objects), `evidence`, `sufficiency` and `leaks` (contexts that leak, and
//!   whether a leak can be excluded), `alive` (live objects without a proof)
//! - output: `tree` (calling context tree), `merged` (runs merged by names), `export` (one run for other tools), `view` (a page
//!   for a browser)
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

pub mod escape;
mod frame;
pub mod units;

mod code;
mod code_origin;
mod events;
mod idle;
mod kinds;

mod delta;
mod followed_objects;

mod scope;

mod load;
mod profile;

mod limits;
mod source;
mod symbols;

mod fingerprint;
mod traces;

mod origins;

mod bursts;
mod stream_events;

mod collapsed;
mod contexts;
mod coverage;

mod kind_totals;
mod recorded_options;
mod tags;

mod call_labels;

mod call_feed;

mod evidence;
mod sufficiency;

mod leaks;

mod alive;

mod tree;

mod merged;

mod export;

mod view;

pub use alive::{AgeClass, AliveAmount, AliveObjects, AliveRow};
pub use bursts::BurstSummary;
pub use call_feed::{CallFeedOutcome, CallMeasure, EventLeaf, feed_log_calls, feed_recorded_calls};
pub use call_labels::{CallLabels, CallTarget, SiteCall};
pub use code::{CodeSymbols, type_name};
pub use code_origin::{CodeOrigin, CodeOrigins};
pub use collapsed::{CollapsedStacks, StackMeasure, write_difference};
pub use contexts::{ContextList, ContextSummary, EventContext};
pub use coverage::{AllocationCoverage, CoverageBytes, ThreadCoverage};
pub use delta::DeltaTracker;
pub use events::{ContextCounter, ContextCounters};
pub use evidence::{LeakEvidence, LiveAmount, SnapshotPoint};
pub use export::{ExportOptions, RunExport};
pub use followed_objects::{FollowedObjects, LiveObjectCensus, LiveObjectRow, LiveObjectSnapshot};
pub use frame::{StackFrame, is_jdk_name};
pub use idle::IdleContexts;
pub use kinds::{ALLOC, ALLOCATION, EventTypeTable, KindDescriptor, KindTotal, LEAK, TypeInfo};
pub use leaks::{LeakAnalysis, LeakFinding, LeakSuspect, SuspectVerdict};
pub use lucce_callgraph::{ContextId, DecodeError, MethodId, SiteId};
pub use lucce_stream::{EventStream, StreamEvent, events_path};
pub use lucce_tracelog::{ContextNumber, EventTypeId, LogDamage, OpenError, RunId, ThreadId};
pub use merged::{
    CallTreeBranch, CallTreeOptions, GroupBy, GroupKey, Measure, MergedCounter, MergedProfile,
    PathSum,
};
pub use origins::{StartOrigin, SubmissionIndex};
pub use profile::{
    DecodeMismatch, LogSizes, Profile, ProfileThread, ProgressTick, SkippedCode, StackTrace,
};
pub use source::{LogSource, read_header};
pub use stream_events::{EventExplanation, EventWindow};
pub use sufficiency::{
    EvidenceSufficiency, LiveCourse, MissingEvidence, judge_course, judge_sufficiency,
};
pub use symbols::SymbolsExtract;
pub use tags::{UNTAGGED, format_tags};
pub use traces::{FrameList, TraceId, TraceSums, TraceTree, TraceVisit};
pub use tree::{ContextTree, NodeId, TreeFrameKey};
pub use view::{
    AliveTable, AliveText, HtmlPage, LeakText, LeaksText, PageOpening, PageRefresh, RunText,
    SuspectText,
};
