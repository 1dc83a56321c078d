//! Many runs as one dataset: content ids, Parquet, SQL.
//!
//! ```text
//! logs ─► ingest: decoded, known, rows, files ─► commits        what readers see is the sum of the commits
//!                                                  │
//!            engine (DataFusion) ◄── SQL, questions┤            DuckDB and Spark read the same files: views
//!            numbers: a number's trace ◄───────────┤
//!            compact: few files, what is old as sums ┘
//! ```
//! Reading order: `layout` (folders, names), `schema` (columns), `commits` (what counts), `decoded` (a run by content ids), `known` and
//! `through` (what is new of it), `rows`, `files`, `taken` (runs that go on), `ahead` (threads), `ingest`; `engine`, `joins` (with one row), `questions`, `views`, `output`;
//! `numbers`; `compact`; `http` (what servers of the dataset stand on); `collect` (logs that JVMs send), `serve` (numbers, answers, pages); `cli`.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

pub mod error;

pub mod layout;
mod memory;
pub mod schema;

mod ahead;
pub mod commits;

pub mod decoded;
mod known;
mod rows;
mod through;

mod files;
mod given;
mod taken;

pub mod ingest;

pub mod engine;
mod joins;
pub mod output;
pub mod questions;
pub mod views;

pub mod numbers;

pub mod compact;

pub mod http;

pub mod collect;

pub mod serve;

pub mod cli;
