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

use crate::ids::{CallLabel, ForestNodeId, LabeledCallee};

/// A node's children by label.
pub trait ForestChildren: Default {
    /// The child and how many entries were looked at.
    fn find_child(
        &self,
        parent: ForestNodeId,
        callee: LabeledCallee,
    ) -> (Option<ForestNodeId>, u64);

    /// `child` has no parent yet and `parent` no child of this label. Nodes are added in the order
    /// of their numbers.
    fn add_child(
        &mut self,
        parent: Option<ForestNodeId>,
        callee: LabeledCallee,
        child: ForestNodeId,
    );
}

/// One hash table for all nodes.
#[derive(Default)]
pub struct HashedChildren(FxHashMap<u64, u32>);

fn child_key(parent: ForestNodeId, label: CallLabel) -> u64 {
    u64::from(parent.0) << 32 | u64::from(label.0)
}

impl ForestChildren for HashedChildren {
    fn find_child(
        &self,
        parent: ForestNodeId,
        callee: LabeledCallee,
    ) -> (Option<ForestNodeId>, u64) {
        let child = self.0.get(&child_key(parent, callee.label));
        (child.copied().map(ForestNodeId), 1)
    }

    fn add_child(
        &mut self,
        parent: Option<ForestNodeId>,
        callee: LabeledCallee,
        child: ForestNodeId,
    ) {
        if let Some(parent) = parent {
            self.0.insert(child_key(parent, callee.label), child.0);
        }
    }
}

/// First child, next sibling: the paper's standard representation.
#[derive(Default)]
pub struct SiblingLists(Vec<SiblingLink>);

struct SiblingLink {
    label: CallLabel,
    first: Option<ForestNodeId>,
    next: Option<ForestNodeId>,
}

impl ForestChildren for SiblingLists {
    fn find_child(
        &self,
        parent: ForestNodeId,
        callee: LabeledCallee,
    ) -> (Option<ForestNodeId>, u64) {
        let mut looked = 0;
        let mut next = self
            .0
            .get(parent.as_index())
            .and_then(|parent| parent.first);
        while let Some(id) = next {
            looked += 1;
            match self.0.get(id.as_index()) {
                Some(child) if child.label == callee.label => return (next, looked),
                child => next = child.and_then(|child| child.next),
            }
        }
        (None, looked)
    }

    fn add_child(
        &mut self,
        parent: Option<ForestNodeId>,
        callee: LabeledCallee,
        child: ForestNodeId,
    ) {
        let parent = parent.and_then(|parent| self.0.get_mut(parent.as_index()));
        let next = parent.and_then(|parent| parent.first.replace(child));
        self.0.push(SiblingLink {
            label: callee.label,
            first: None,
            next,
        });
    }
}

/// An array per node, indexed by the callee's number in its caller: the paper's indexed
/// representation. The array grows to the largest number that was called.
#[derive(Default)]
pub struct IndexedChildren(Vec<Vec<Option<ForestNodeId>>>);

impl ForestChildren for IndexedChildren {
    fn find_child(
        &self,
        parent: ForestNodeId,
        callee: LabeledCallee,
    ) -> (Option<ForestNodeId>, u64) {
        let slots = self.0.get(parent.as_index());
        let child = slots.and_then(|slots| slots.get(callee.slot as usize));
        (child.copied().flatten(), 1)
    }

    fn add_child(
        &mut self,
        parent: Option<ForestNodeId>,
        callee: LabeledCallee,
        child: ForestNodeId,
    ) {
        self.0.push(Vec::new());
        let Some(slots) = parent.and_then(|parent| self.0.get_mut(parent.as_index())) else {
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
