//! Files that other tools read: one file per format, all written from one model of a run.
//!
//! ```text
//! a log ──► decoder: Run { frames, paths, rows, events } ──► Format::write ──► the tool's file
//! ```
//! A format is one file here and one line in [`ALL_FORMATS`]. This crate knows no log: it is told frames, paths of frames, and
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

pub use format::{ExportCount, ExportFormat};
pub use gzip::{GzipReader, GzipWriter, UnpackLimits, is_gzip};
pub use otlp::{OtlpRequest, OtlpRequests};
pub use otlp_answer::OtlpAnswer;
pub use run::{
    ExportEvent, ExportEventKind, ExportEventSource, ExportFrame, ExportNode, ExportRow, ExportRun,
    ToolNames,
};

/// All formats.
pub const ALL_FORMATS: &[&dyn ExportFormat] = &[
    &pprof::PprofFormat,
    &jfr::JfrFormat,
    &speedscope::SpeedscopeFormat,
    &firefox::FirefoxFormat,
    &perfetto::PerfettoFormat,
    &otlp::OtlpFormat,
];

/// The format of this name.
#[must_use]
pub fn format_by_name(name: &str) -> Option<&'static dyn ExportFormat> {
    ALL_FORMATS
        .iter()
        .copied()
        .find(|format| format.name() == name)
}
