//! How much an agent costs: a program with and without it, side by side, each time in a JVM of its own.
//!
//! ```text
//! Plan { programs × variants × rounds } ──► run, interleaved ──► samples ──► Report ──► table, JSON, chart
//! ```
//! A time says nothing by itself: machines differ, and the same machine differs from hour to hour.
//! Hence the baseline runs between the variants, in the same run of the harness, and all that is
//! said of a variant is its ratio to that baseline.
//!
//! Reading order: `variant` (what is compared), `plan` (what runs), `process` (one JVM, or several in turns),
//! `looking` and `threads` (what is seen of it meanwhile), `iterations` (what it prints), `jit` (what the JVM prints),
//! `spread` (median and quartiles), `report` (ratios), `run` (all of it, interleaved), then what shows it: `table`, `chart`.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod plan;
mod variant;

mod iterations;
mod jit;
mod looking;
mod process;
mod threads;

mod report;
mod spread;

mod run;

mod chart;
mod table;

pub use chart::chart;
pub use iterations::{Iteration, Iterations};
pub use plan::{JavaCommand, Plan, Program};
pub use process::{Ended, Usage, run as run_process};
pub use report::{Column, Metric, Outcome, Quantity, Ratio, Report, Row, Samples};
pub use run::{Step, measure, refusals};
pub use spread::{Centre, Spread, geometric_mean};
pub use table::{differences, remarks, side_by_side, table};
pub use threads::Own;
pub use variant::{Tools, Variant};
