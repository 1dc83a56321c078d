//! The frame by which people know a context: the innermost frame of own code.

use lucce_callgraph::{ContextFrame, ContextId, DecodeError};
use lucce_contentid::FrameId;

use crate::context_walk::{ContextWalker, PathFold};
use crate::fingerprint::{FrameStep, frame_step, map_contexts};
use crate::frame::CodeOrigin;
use crate::profile::Profile;

/// The own code of a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ContextFocus {
    /// The innermost frame of own code.
    pub own: Option<ContextFrame>,
    /// Whether a frame is not own code.
    pub has_other_code: bool,
    /// Whether the event happened in own code itself: the innermost frame is own code.
    pub is_own_event: bool,
}

impl ContextFocus {
    fn with_callee(mut self, frame: ContextFrame, origin: CodeOrigin) -> ContextFocus {
        self.is_own_event = origin == CodeOrigin::Application;
        match origin {
            CodeOrigin::Application => self.own = Some(frame),
            CodeOrigin::Library | CodeOrigin::Jdk => self.has_other_code = true,
        }
        self
    }
}

/// As [`Profile::find_focus`].
pub(crate) fn find_focus(profile: &Profile, ids: &[ContextId]) -> Vec<ContextFocus> {
    map_contexts(ids, |ids, limits| {
        let mut fold = FocusFold { profile };
        let mut walker = ContextWalker::new(&profile.graph, limits);
        let mut focus = |id: &ContextId| {
            let found = walker.walk_context(&mut fold, *id);
            found.map_or_else(|_| ContextFocus::default(), |(focus, _)| focus)
        };
        ids.iter().map(&mut focus).collect()
    })
}

struct FocusFold<'p> {
    profile: &'p Profile,
}

impl PathFold for FocusFold<'_> {
    type Value = ContextFocus;
    const EMPTY: ContextFocus = ContextFocus {
        own: None,
        has_other_code: false,
        is_own_event: false,
    };
    const MEMO_SPACING: u64 = 16;

    fn push_frame(
        &mut self,
        callers: ContextFocus,
        frame: ContextFrame,
    ) -> Result<ContextFocus, DecodeError> {
        Ok(match frame_step(self.profile, frame, || FrameId(0)) {
            FrameStep::Restart => Self::EMPTY,
            FrameStep::Skip => callers,
            FrameStep::Add(_) => {
                callers.with_callee(frame, self.profile.code.method_origin(frame.method))
            }
        })
    }
}
