//! Files that other tools read: one file per format, all written from one model of a run.
//!
//! ```text
//! a log ──► decoder: Run { frames, paths, rows, events } ──► Format::write ──► the tool's file
//! ```
//! A format is one file here and one line in [`ALL`]. This crate knows no log: it is told frames, paths of frames, and
//! what was counted for them, and knows how others write that down.
//!
//! Reading order: `run` (the model), `format` (what a format is), then any format.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod format;
mod run;

mod gzip;
mod proto;

mod firefox;
mod jfr;
mod otlp;
mod otlp_answer;
mod perfetto;
mod pprof;
mod speedscope;

pub use format::{Format, Written};
pub use gzip::{Gunzip, Gzip, UnpackLimits, is_gzip};
pub use otlp::{OtlpRequest, OtlpRequests};
pub use otlp_answer::OtlpAnswer;
pub use run::{Event, Events, Frame, Kind, Node, Row, Run, Words};

/// All formats.
pub const ALL: &[&dyn Format] = &[
    &pprof::Pprof,
    &jfr::Jfr,
    &speedscope::Speedscope,
    &firefox::Firefox,
    &perfetto::Perfetto,
    &otlp::Otlp,
];

/// The format of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static dyn Format> {
    ALL.iter().copied().find(|format| format.name() == name)
}
