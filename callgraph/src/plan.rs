//! Numbers that were decided before a base version begins.

use crate::numbering::Numbering;
use crate::{Edge, MethodId};

/// What the nodes of a base version and the calls between them are to be. Ranges of one callee's
/// callers must not overlap; a call whose range is taken already is treated as unknown.
pub trait Plan: Send {
    /// How many numbers a method's node owns; none: it is not planned.
    fn capacity(&self, method: MethodId) -> Option<u64>;

    /// Behind the last planned caller of a method: there is room for others.
    fn end(&self, method: MethodId) -> u64;

    /// What a call adds; none: it is not planned, or not additive.
    fn addition(&self, edge: Edge) -> Option<u64>;

    /// Bytes in memory.
    fn memory(&self) -> usize;
}

impl Plan for Numbering {
    fn capacity(&self, method: MethodId) -> Option<u64> {
        self.nodes.get(&method).map(|node| node.count)
    }

    fn end(&self, method: MethodId) -> u64 {
        self.nodes.get(&method).map_or(1, |node| node.end)
    }

    fn addition(&self, edge: Edge) -> Option<u64> {
        Numbering::addition(self, edge)
    }

    fn memory(&self) -> usize {
        Numbering::memory(self)
    }
}
