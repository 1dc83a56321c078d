//! Measures the cost of an agent: a program with and without it, side by side, each time in its own JVM.
//!
//! ```text
//! Plan { programs × variants × rounds } ──► run, interleaved ──► samples ──► Report ──► table, JSON, chart
//! ```
//! A time alone has no meaning: machines differ, and one machine differs from hour to hour. So the baseline runs
//! between the variants, in the same run of the harness, and every result of a variant is its ratio to that baseline.
//!
//! Reading order: `variant` (what is compared), `plan` (what runs), `process` (one JVM, or several in turns), `looking`
//! and `threads` (observation during the run), `iterations` (the program's output), `jit` (the JVM's output), `spread`
//! (median and quartiles), `report` (ratios), `run` (all of it, interleaved), then `table` and `chart`.
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
