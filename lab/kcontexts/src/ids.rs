//! Labels, nodes, threads: each a newtype.

use serde::Serialize;

/// The label of a node: a routine, or a call site with its callee. The caller of this crate
/// numbers them, best densely from 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
pub struct CallLabel(pub u32);

/// A node of one forest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ForestNodeId(pub(crate) u32);

impl ForestNodeId {
    pub(crate) fn as_index(self) -> usize {
        self.0 as usize
    }
}

/// A thread of the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TraceThreadId(pub u64);

/// What is called: a label, and its number among all callees of its caller.
///
/// Only [`Indexed`](crate::Indexed) looks at `slot`; the paper's instrumentation knows it at compile
/// time, [`Trace`](crate::Trace) counts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LabeledCallee {
    pub label: CallLabel,
    pub slot: u32,
}

/// With the label as slot: right for every caller, small for none.
impl From<CallLabel> for LabeledCallee {
    fn from(label: CallLabel) -> Self {
        let slot = label.0;
        LabeledCallee { label, slot }
    }
}
