//! Many runs as one dataset: content ids, Parquet, SQL.
//!
//! ```text
//! logs ─► ingest: decoded, known, rows, files ─► commits        what readers see is the sum of the commits
//!                                                  │
//!            engine (DataFusion) ◄── SQL, questions┤            DuckDB and Spark read the same files: views
//!            numbers: a number's trace ◄───────────┤
//!            compact: few files, what is old as sums ┘
//! ```
//! Reading order: `layout` (folders, names), `schema` (columns), `store` (a folder or a bucket), `commits` (what counts), `decoded_run` (a run by content ids), `dedup` and
//! `frame_index` (what is new of it), `rows`, `files`, `delta` (runs that go on), `ordered_parallel` (threads), `ingest`; `engine`, `one_row_joins` (with one row), `questions`, `views`, `output`;
//! `numbers`; `compact`; `http` (what servers of the dataset stand on); `collect` (logs that JVMs send), `serve` (numbers, answers, pages); `cli`.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

pub mod error;

pub mod layout;
mod memory_pool;
pub mod schema;

pub mod store;

pub mod commits;
mod ordered_parallel;

pub mod decoded_run;
mod dedup;
mod frame_index;
mod rows;

mod bind_parameters;
mod delta;
mod files;

pub mod ingest;

pub mod engine;
mod one_row_joins;
pub mod output;
pub mod questions;
pub mod views;

pub mod numbers;

pub mod compact;

pub mod http;

pub mod collect;

pub mod serve;

pub mod cli;
