//! Recorded calls: the stream of enters, exits and thread starts of a real run, in one file.
//!
//! ```text
//! threads ─► ThreadWriter (a buffer each) ─► Writer ─► file ─► Recording ─► steps
//! ```
//!
//! Every encoding of calling contexts can be fed with the stream. The log's own records name methods
//! and sites. A file never outgrows its limit: when the limit is reached, the recording is marked
//! as cut and holds the beginning of every thread.
//!
//! Reading order: `step` (what happened), `format` (the file and its blocks), `token` (what a block
//! of calls holds), `limits`; then `writer`; then `reader`, `steps`.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod step;

mod file;
mod format;
pub mod limits;
mod token;

mod writer;

mod reader;
mod steps;

pub use format::{FORMAT_VERSION, MAGIC};
pub use lucce_tracelog::{LogDamage, OpenError};
pub use reader::Recording;
pub use step::{CallEdge, ProgramThreadId, RecordedStart, RecordedStep};
pub use steps::RecordedSteps;
pub use writer::{RecordingWriter, ThreadWriter};
