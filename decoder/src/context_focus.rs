//! The frame by which people know a context: the innermost frame of own code.

use lucce_callgraph::{ContextFrame, ContextId, DecodeError};
use rustc_hash::FxHashMap;

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

/// As [`Profile::find_focus`]. Contexts are walked in the order of their ids: neighbours have common callers, whose part of
/// the graph is in the cache.
pub(crate) fn find_focus(profile: &Profile, ids: &[ContextId]) -> Vec<ContextFocus> {
    let mut ascending: Vec<_> = ids.iter().copied().zip(0_usize..).collect();
    ascending.sort_unstable();
    let sorted: Vec<_> = ascending.iter().map(|(id, _)| *id).collect();
    let found = map_contexts(&sorted, |ids, limits| {
        let steps = FxHashMap::default();
        let mut fold = FocusFold { profile, steps };
        let mut walker = ContextWalker::new(&profile.graph, limits);
        let mut focus = |id: &ContextId| {
            let found = walker.walk_context(&mut fold, *id);
            found.map_or_else(|_| ContextFocus::default(), |(focus, _)| focus)
        };
        ids.iter().map(&mut focus).collect()
    });
    let places = ascending.iter().map(|(_, at)| *at);
    let mut placed: Vec<_> = places.zip(found).collect();
    placed.sort_unstable_by_key(|(at, _)| *at);
    placed.into_iter().map(|(_, focus)| focus).collect()
}

struct FocusFold<'p> {
    profile: &'p Profile,
    steps: FxHashMap<ContextFrame, FrameStep<CodeOrigin>>,
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
        let profile = self.profile;
        let origin = || profile.code.method_origin(frame.method);
        let step = self.steps.entry(frame);
        let step = step.or_insert_with(|| frame_step(profile, frame, origin));
        Ok(match *step {
            FrameStep::Restart => Self::EMPTY,
            FrameStep::Skip => callers,
            FrameStep::Add(origin) => callers.with_callee(frame, origin),
        })
    }
}
