//! Numbers that were decided before a base version begins.

use crate::numbering::AcyclicNumbering;
use crate::{CallEdge, MethodId};

/// What the nodes of a base version and the calls between them are to be. Ranges of one callee's
/// callers must not overlap; a call whose range is taken already is treated as unknown.
pub trait NumberingPlan: Send {
    /// How many numbers a method's node owns; none: it is not planned.
    fn node_capacity(&self, method: MethodId) -> Option<u64>;

    /// Behind the last planned caller of a method: there is room for others.
    fn planned_end(&self, method: MethodId) -> u64;

    /// What a call adds; none: it is not planned, or not additive.
    fn addition_value(&self, edge: CallEdge) -> Option<u64>;

    /// Bytes in memory.
    fn memory_bytes(&self) -> usize;
}

impl NumberingPlan for AcyclicNumbering {
    fn node_capacity(&self, method: MethodId) -> Option<u64> {
        self.nodes.get(&method).map(|node| node.count)
    }

    fn planned_end(&self, method: MethodId) -> u64 {
        self.nodes.get(&method).map_or(1, |node| node.end)
    }

    fn addition_value(&self, edge: CallEdge) -> Option<u64> {
        AcyclicNumbering::addition_value(self, edge)
    }

    fn memory_bytes(&self) -> usize {
        AcyclicNumbering::memory_bytes(self)
    }
}
