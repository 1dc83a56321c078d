//! The classes whose frames are shown: `--include`, `--exclude`.
//!
//! Traces leave out frames of other classes, like the agent with the same options. Events move to the innermost frame that
//! remains; traces that become equal are one context.

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

    /// Whether any frames are left out.
    pub(crate) fn is_partial(&self) -> bool {
        !self.0.is_empty()
    }

    pub(crate) fn contains_frame(&self, frame: ContextFrame) -> bool {
        !self.0.contains(&frame.method)
    }
}
