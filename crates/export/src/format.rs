//! What a format is.

use std::io::{self, Write};

use crate::run::{ExportEventSource, ExportRun};

/// Something that can be written of a run.
pub trait ExportFormat: Sync {
    /// As it is asked for.
    fn name(&self) -> &'static str;

    /// For whom it is, in a line.
    fn description(&self) -> &'static str;

    /// Whether single events with their times are written if there are any.
    fn has_times(&self) -> bool {
        false
    }

    /// About how many bytes the stacks of the run take, where each is written with all of its frames; 0: what stacks
    /// share is written once.
    fn estimate_stack_bytes(&self, _run: &ExportRun) -> u64 {
        0
    }

    /// Whether what is written is packed, so that it takes less.
    fn is_compressed(&self) -> bool {
        false
    }

    /// Whether content ids of contexts have room in it.
    fn has_content_ids(&self) -> bool {
        false
    }

    /// Whether a terminal can show it.
    fn is_text(&self) -> bool {
        true
    }

    /// Writes what was counted, or the events if the format [has times](Self::has_times) and there are any. Memory is bounded by the run's frames, paths and rows; what is
    /// written is not kept.
    ///
    /// # Errors
    /// The output's.
    fn write(
        &self,
        run: &ExportRun,
        events: Option<&ExportEventSource<'_>>,
        out: &mut dyn Write,
    ) -> io::Result<ExportCount>;
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExportCount {
    /// Stacks with sums.
    Stacks(u64),
    Events(u64),
}
