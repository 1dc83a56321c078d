//! Feeds recorded calls to every encoding of the papers and compares what that takes.
//!
//! ```text
//! Recording ─► Survey (contexts, profile, depths)
//!     └──────► pass ─► an Encoding, the plain stacks beside it ─► Outcome ─► Comparison ─► tables, plot
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

pub use comparison::{Comparison, Program};
pub use depths::Depths;
pub use encodings::{NAMES, make};
pub use pass::{Mismatch, Outcome, Settings, run};
pub use plot::plot;
pub use survey::Survey;
pub use tables::tables;

/// Told how many more steps were taken, for progress bars.
pub type Tick<'a> = &'a dyn Fn(u64);
