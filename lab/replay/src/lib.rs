//! Feeds recorded calls to every encoding of the papers and compares what that takes.
//!
//! ```text
//! Recording ─► RecordingSurvey (contexts, profile, depths)
//!     └──────► pass ─► a ContextEncoding, the plain stacks beside it ─► EncodingOutcome ─► EncodingComparison ─► tables, plot
//! ```
//! Every k-th number is decoded and compared with the plain stack: at once, and some of them again
//! at the end.
//!
//! Reading order: `stacks` (the plain stacks), `depths`, `survey`; `encodings` (by name), `feed`, `clock`, `pass`;
//! `comparison` and its `tables`, `plot`.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod depths;
mod stacks;

mod survey;

mod encodings;
mod feed;

mod clock;
mod pass;

mod comparison;
mod plot;
mod tables;

pub use comparison::{ComparedProgram, EncodingComparison};
pub use depths::DepthDistribution;
pub use encodings::{NAMES, create_encoding};
pub use pass::{ContextMismatch, EncodingOutcome, ReplaySettings, run};
pub use plot::draw_comparison;
pub use survey::RecordingSurvey;
pub use tables::render_tables;

/// Told how many more steps were taken, for progress bars.
pub type Tick<'a> = &'a dyn Fn(u64);
