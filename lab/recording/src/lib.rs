//! Recorded calls: the stream of enters, exits and thread starts of a real run, in one file.
//!
//! ```text
//! threads ─► ThreadWriter (a buffer each) ─► Writer ─► file ─► Recording ─► steps
//! ```
//!
//! The stream is what every encoding of calling contexts can be fed with; what methods and sites
//! are called is told by the log's own records. A file never outgrows its limit: when the limit is
//! reached the recording says "cut", and what it holds is the beginning of every thread.
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
