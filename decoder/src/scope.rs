//! Which classes' frames are shown: `--include`, `--exclude`.
//!
//! Frames of other classes are left out of every trace, as the agent leaves them out when it is told so.
//! Events stay with the innermost frame that is left; traces that are equal then are one context.

use std::collections::HashSet;

use lucce_callgraph::{ContextFrame, MethodId};
use lucce_filter::ClassFilter;

use crate::code::CodeSymbols;

/// The methods whose frames are left out.
#[derive(Default)]
pub(crate) struct FrameScope(HashSet<MethodId>);

impl FrameScope {
    pub(crate) fn new(code: &CodeSymbols, filter: &ClassFilter) -> FrameScope {
        let methods = code.classes_of_methods();
        let outside = methods.filter(|(_, class)| !filter.admits_class(class));
        FrameScope(outside.map(|(method, _)| method).collect())
    }

    /// Whether frames are left out at all.
    pub(crate) fn is_partial(&self) -> bool {
        !self.0.is_empty()
    }

    pub(crate) fn contains_frame(&self, frame: ContextFrame) -> bool {
        !self.0.contains(&frame.method)
    }
}
