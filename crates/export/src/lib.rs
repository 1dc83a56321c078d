//! Writes files for other tools: one module per format, all from one model of a run.
//!
//! ```text
//! log ──► decoder: ExportRun { frames, nodes, rows, events } ──► ExportFormat::write ──► the tool's file
//! ```
//! A format is one file here and one line in [`ALL_FORMATS`]. This crate does not depend on logs: it gets frames, paths
//! of frames and their counts.
//!
//! Reading order: `run` (the model), `format` (the trait), then any format.
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

/// Returns the format with this name.
#[must_use]
pub fn format_by_name(name: &str) -> Option<&'static dyn ExportFormat> {
    ALL_FORMATS
        .iter()
        .copied()
        .find(|format| format.name() == name)
}
