//! The trait of all formats.

use std::io::{self, Write};

use crate::run::{ExportEventSource, ExportRun};

/// A file format for a run.
pub trait ExportFormat: Sync {
    /// Returns the name by which the format is requested.
    fn name(&self) -> &'static str;

    /// Returns a line that says for which tools it is.
    fn description(&self) -> &'static str;

    /// Whether single events with their times are written, if the run has any.
    fn has_times(&self) -> bool {
        false
    }

    /// Returns about how many bytes the stacks of the run need, if each is written with all of its frames; 0: shared
    /// parts of stacks are written once.
    fn estimate_stack_bytes(&self, _run: &ExportRun) -> u64 {
        0
    }

    /// Whether the output is compressed.
    fn is_compressed(&self) -> bool {
        false
    }

    /// Whether the format can hold content ids of contexts.
    fn has_content_ids(&self) -> bool {
        false
    }

    /// Whether a terminal can show it.
    fn is_text(&self) -> bool {
        true
    }

    /// Writes the counts, or the events if the format [has times](Self::has_times) and the run has any.
    ///
    /// Memory is bounded by the run's frames, paths and rows; the output is not kept.
    ///
    /// # Errors
    /// Errors of the output.
    /// The output's.
    fn write(
        &self,
        run: &ExportRun,
        events: Option<&ExportEventSource<'_>>,
        out: &mut dyn Write,
    ) -> io::Result<ExportCount>;
}

/// The number of written items.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExportCount {
    /// Stacks with sums.
    Stacks(u64),
    Events(u64),
}
