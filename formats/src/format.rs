//! What a format is.

use std::io::{self, Write};

use crate::run::{Events, Run};

/// Something that can be written of a run.
pub trait Format: Sync {
    /// As it is asked for.
    fn name(&self) -> &'static str;

    /// For whom it is, in a line.
    fn about(&self) -> &'static str;

    /// Whether single events with their times are written if there are any.
    fn has_times(&self) -> bool {
        false
    }

    /// About how many bytes the stacks of the run take, where each is written with all of its frames; 0: what stacks
    /// share is written once.
    fn bytes_of_stacks(&self, _run: &Run) -> u64 {
        0
    }

    /// Whether what is written is packed, so that it takes less.
    fn is_packed(&self) -> bool {
        false
    }

    /// Whether content ids of contexts have room in it.
    fn has_contents(&self) -> bool {
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
        run: &Run,
        events: Option<&Events<'_>>,
        out: &mut dyn Write,
    ) -> io::Result<Written>;
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// Stacks with sums.
    Stacks(u64),
    Events(u64),
}
