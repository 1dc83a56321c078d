//! Turns a log back into stack traces: the library behind the `lucce` command.
//!
//! ```text
//! Log ──► Profile { Graph, Code, Events, … } ──► trace(id): frames
//!                                            └─► contexts(): all events, by stack trace
//! ```
//! Reading order: `escape` (how names are written), `frame`, `code` (what sites and methods are called), `events` (what was counted),
//! `kinds` (of events, and all that is said of one kind only), `idle` (threads that wait for work), `scope` (whose frames are shown), `profile` (a log's content), `load` (from the log), `limits` (of packed logs), `source` (the log's file), `symbols` (a log without counters), `prints` (traces' fingerprints), `traces` (a tree of frames), `contexts` (all
//! events by trace), `amounts` (what was counted, by kind), `asked` (what the run was asked for), `tags` (the program's own), `collapsed`; `labels` and `calls` (a run's calls, for k-calling contexts);
//! `streamed` (single events with their times); `survivors` (sampled objects that live), `taken` (counters of a run that goes on, each event once), `evidence`, `sufficiency` and `leaks` (which of them leak, and whether that can be denied), `alive` (what lives, without proof);
//! `tree` (paths that begin alike share their frames), `joined` (several runs by their names), `exported` (one run for other tools), `view` (a page for a browser).
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

pub mod escape;
mod frame;

mod code;
mod events;
mod idle;
mod kinds;

mod survivors;
mod taken;

mod scope;

mod load;
mod profile;

mod limits;
mod source;
mod symbols;

mod prints;
mod traces;

mod origins;

mod bursts;
mod streamed;

mod collapsed;
mod contexts;
mod coverage;

mod amounts;
mod asked;
mod tags;

mod labels;

mod calls;

mod evidence;
mod sufficiency;

mod leaks;

mod alive;

mod tree;

mod joined;

mod exported;

mod view;

pub use alive::{AgeClass, AliveAmount, AliveObjects, AliveRow};
pub use bursts::Bursts;
pub use calls::{Count, Origin, Told, of_log, of_recording};
pub use code::{Code, type_name};
pub use collapsed::{Collapsed, Value, write_difference};
pub use contexts::{Context, Contexts, Summary};
pub use coverage::{Coverage, Covered, ThreadCoverage};
pub use events::{Events, Share};
pub use evidence::{Evidence, Live, Point};
pub use exported::{Exported, Wish};
pub use frame::{StackFrame, is_of_the_jdk};
pub use idle::IdleContexts;
pub use joined::{Branch, By, Counted, Drawing, Joined, Key, Measure, PathSum};
pub use kinds::{ALLOC, ALLOCATION, KindTotal, Known, LEAK, TypeInfo, Types};
pub use labels::{Called, Labels, Routine};
pub use leaks::{Leak, Leaks, Suspect, Verdict};
pub use lucce_callgraph::{ContextId, DecodeError, MethodId, SiteId};
pub use lucce_stream::{Event, Stream, path_beside};
pub use lucce_tracelog::{Damage, EventTypeId, Number, OpenError, RunId, ThreadId};
pub use origins::{StartedFrom, Submissions};
pub use profile::{Mismatch, Profile, Sizes, Skipped, StackTrace, ThreadInfo, Tick};
pub use source::{Source, header_of};
pub use streamed::{Told as ToldEvent, Window};
pub use sufficiency::{LiveCourse, MissingEvidence, Sufficiency, judge_course, judge_sufficiency};
pub use survivors::{Census, Following, Moment, Row};
pub use symbols::Extract;
pub use tags::{UNTAGGED, tags_in_line};
pub use taken::Taken;
pub use traces::{Listed, Sums, Trace, Traces, Visit};
pub use tree::{FrameKey, NodeId, Tree};
pub use view::{
    AliveTable, AliveText, LeakText, LeaksText, Opening, Page, Refresh, RunText, SuspectText,
};
