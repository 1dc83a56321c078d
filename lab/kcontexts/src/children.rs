//! How a node finds its children (Section 6, "Tree implementation").
//!
//! | representation | looks at | space per node |
//! |---|---|---|
//! | [`Hashed`] | one entry of one table for the whole forest | 12–24 bytes |
//! | [`Siblings`] | the children one after the other: first child, next sibling | 12 bytes |
//! | [`Indexed`] | one element of the node's own array | 24 bytes and 4 per callee of the routine |
//!
//! The paper has the latter two. Section 5.2 allows a hash table for "constant time per call".

use rustc_hash::FxHashMap;

use crate::ids::{Callee, Label, NodeId};

/// A node's children by label.
pub trait Children: Default {
    /// The child and how many entries were looked at.
    fn find(&self, parent: NodeId, callee: Callee) -> (Option<NodeId>, u64);

    /// `child` has no parent yet and `parent` no child of this label. Nodes are added in the order
    /// of their numbers.
    fn add(&mut self, parent: Option<NodeId>, callee: Callee, child: NodeId);
}

/// One hash table for all nodes.
#[derive(Default)]
pub struct Hashed(FxHashMap<u64, u32>);

fn key(parent: NodeId, label: Label) -> u64 {
    u64::from(parent.0) << 32 | u64::from(label.0)
}

impl Children for Hashed {
    fn find(&self, parent: NodeId, callee: Callee) -> (Option<NodeId>, u64) {
        let child = self.0.get(&key(parent, callee.label));
        (child.copied().map(NodeId), 1)
    }

    fn add(&mut self, parent: Option<NodeId>, callee: Callee, child: NodeId) {
        if let Some(parent) = parent {
            self.0.insert(key(parent, callee.label), child.0);
        }
    }
}

/// First child, next sibling: the paper's standard representation.
#[derive(Default)]
pub struct Siblings(Vec<Sibling>);

struct Sibling {
    label: Label,
    first: Option<NodeId>,
    next: Option<NodeId>,
}

impl Children for Siblings {
    fn find(&self, parent: NodeId, callee: Callee) -> (Option<NodeId>, u64) {
        let mut looked = 0;
        let mut next = self.0.get(parent.at()).and_then(|parent| parent.first);
        while let Some(id) = next {
            looked += 1;
            match self.0.get(id.at()) {
                Some(child) if child.label == callee.label => return (next, looked),
                child => next = child.and_then(|child| child.next),
            }
        }
        (None, looked)
    }

    fn add(&mut self, parent: Option<NodeId>, callee: Callee, child: NodeId) {
        let parent = parent.and_then(|parent| self.0.get_mut(parent.at()));
        let next = parent.and_then(|parent| parent.first.replace(child));
        self.0.push(Sibling {
            label: callee.label,
            first: None,
            next,
        });
    }
}

/// An array per node, indexed by the callee's number in its caller: the paper's indexed
/// representation. The array grows to the largest number that was called.
#[derive(Default)]
pub struct Indexed(Vec<Vec<Option<NodeId>>>);

impl Children for Indexed {
    fn find(&self, parent: NodeId, callee: Callee) -> (Option<NodeId>, u64) {
        let slots = self.0.get(parent.at());
        let child = slots.and_then(|slots| slots.get(callee.slot as usize));
        (child.copied().flatten(), 1)
    }

    fn add(&mut self, parent: Option<NodeId>, callee: Callee, child: NodeId) {
        self.0.push(Vec::new());
        let Some(slots) = parent.and_then(|parent| self.0.get_mut(parent.at())) else {
            return;
        };
        let at = callee.slot as usize;
        if slots.len() <= at {
            slots.resize(at + 1, None);
        }
        if let Some(slot) = slots.get_mut(at) {
            *slot = Some(child);
        }
    }
}
