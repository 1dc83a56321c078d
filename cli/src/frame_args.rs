//! The option `--frames`, which commands with traces as text share.

use lucce_decoder::{FoldedLine, FrameDisplay, StackFrame};

/// Which frames of a trace are printed as text. JSON has all.
#[derive(clap::Args, Clone, Copy, Default)]
pub struct FrameArgs {
    /// Frames of text: `own` shows own code and the frame of the event, and folds runs of others; `all`; or at most N of each trace
    #[arg(long, value_name = "own|all|N", default_value = "own")]
    pub frames: FrameDisplay,
}

impl FrameArgs {
    /// How frames are shown. `is_mixed`: some frames are own code, and some are not. Otherwise there is nothing to fold.
    pub fn resolve_display(self, is_mixed: bool) -> FrameDisplay {
        match (self.frames, is_mixed) {
            (FrameDisplay::Focused, false) => FrameDisplay::All,
            (chosen, _) => chosen,
        }
    }
}

/// Folds a trace if it has own code; otherwise, all frames are lines.
pub fn fold_own_trace(frames: &[StackFrame]) -> Vec<FoldedLine<'_>> {
    let has_own_code = frames.iter().any(StackFrame::is_own);
    let display = FrameArgs::default().resolve_display(has_own_code);
    display.fold_frames(frames)
}
