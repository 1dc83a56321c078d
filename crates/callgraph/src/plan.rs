//! Numbers that are decided before a base version begins.

use crate::numbering::AcyclicNumbering;
use crate::{CallEdge, MethodId};

/// The planned nodes of a base version and the calls between them.
///
/// Ranges of the callers of one callee must not overlap; a call whose range is taken is treated as unknown.
pub trait NumberingPlan: Send {
    /// Returns how many numbers a method's node owns; none: it is not planned.
    fn node_capacity(&self, method: MethodId) -> Option<u64>;

    /// Returns the end of the last planned caller of a method: behind it is room for others.
    fn planned_end(&self, method: MethodId) -> u64;

    /// Returns what a call adds; none: it is not planned, or not additive.
    fn addition_value(&self, edge: CallEdge) -> Option<u64>;

    /// Returns the bytes in memory.
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
