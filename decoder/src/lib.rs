//! Turns a log back into stack traces: the library behind the `lucce` command.
//!
//! ```text
//! Log ──► Profile { Graph, Code, Events, … } ──► trace(id): frames
//!                                            └─► contexts(): all events, by stack trace
//! ```
//! Reading order: `escape` (how names are written), `units` (durations and sizes of options), `frame`, `code` (what sites and methods are called), `events` (what was counted),
//! `kinds` (of events, and all that is said of one kind only), `idle` (threads that wait for work), `scope` (whose frames are shown), `profile` (a log's content), `load` (from the log), `limits` (of packed logs), `source` (the log's file), `symbols` (a log without counters), `fingerprint` (traces' fingerprints), `traces` (a tree of frames), `contexts` (all
//! events by trace), `kind_totals` (what was counted, by kind), `recorded_options` (what the run was asked for), `tags` (the program's own), `collapsed`; `call_labels` and `call_feed` (a run's calls, for k-calling contexts);
//! `stream_events` (single events with their times); `followed_objects` (sampled objects that live), `delta` (counters of a run that goes on, each event once), `evidence`, `sufficiency` and `leaks` (which of them leak, and whether that can be denied), `alive` (what lives, without proof);
//! `tree` (paths that begin alike share their frames), `merged` (several runs by their names), `export` (one run for other tools), `view` (a page for a browser).
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
pub use stream_events::{EventExplanation as ToldEvent, EventWindow};
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
