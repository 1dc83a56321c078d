//! Labelled trees whose roots, and whose nodes' children, have distinct labels (Section 3).

use rustc_hash::FxHashMap;

use crate::children::{ForestChildren, HashedChildren};
use crate::error::KContextError;
use crate::ids::{CallLabel, ForestNodeId, LabeledCallee};

/// A forest with a counter in each node. Joining a path with it (Definition 4) is [`root`](Self::root)
/// and then [`child`](Self::child) for each further label.
#[derive(Default)]
pub struct LabelForest<C = HashedChildren> {
    nodes: Vec<ForestNode>,
    roots: FxHashMap<CallLabel, ForestNodeId>,
    children: C,
    work: ForestWork,
}

#[derive(Clone, Copy)]
struct ForestNode {
    label: CallLabel,
    parent: Option<ForestNodeId>,
    level: u32,
    count: u64,
}

/// What building a forest took, in operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ForestWork {
    /// Number of lookups of roots and children.
    pub lookups: u64,
    /// Entries that were looked at for that.
    pub looked: u64,
    /// Nodes that were made.
    pub made: u64,
}

impl<C: ForestChildren> LabelForest<C> {
    /// `find(R, x)` of Figure 7; the tree is made if there is none.
    ///
    /// # Errors
    /// The forest is full.
    pub fn find_or_add_root(&mut self, label: CallLabel) -> Result<ForestNodeId, KContextError> {
        self.work.lookups += 1;
        self.work.looked += 1;
        match self.roots.get(&label) {
            Some(root) => Ok(*root),
            None => {
                let root = self.create_node(None, label.into(), 0)?;
                self.roots.insert(label, root);
                Ok(root)
            }
        }
    }

    /// The child of this label; it is made if there is none.
    ///
    /// # Errors
    /// The forest is full.
    pub fn find_or_add_child(
        &mut self,
        parent: ForestNodeId,
        callee: LabeledCallee,
    ) -> Result<ForestNodeId, KContextError> {
        let (child, looked) = self.children.find_child(parent, callee);
        self.work.lookups += 1;
        self.work.looked += looked;
        match child {
            Some(child) => Ok(child),
            None => self.create_node(Some(parent), callee, self.level(parent) + 1),
        }
    }

    fn create_node(
        &mut self,
        parent: Option<ForestNodeId>,
        callee: LabeledCallee,
        level: u32,
    ) -> Result<ForestNodeId, KContextError> {
        let id = u32::try_from(self.nodes.len()).ok();
        // The last number stays free: lists of nodes count from 1.
        let id = id
            .filter(|id| *id < u32::MAX)
            .ok_or(KContextError::TooManyNodes)?;
        self.nodes.push(ForestNode {
            label: callee.label,
            parent,
            level,
            count: 0,
        });
        self.children.add_child(parent, callee, ForestNodeId(id));
        self.work.made += 1;
        Ok(ForestNodeId(id))
    }
}

impl<C> LabelForest<C> {
    /// Counts.
    pub fn add_weight(&mut self, node: ForestNodeId, weight: u64) {
        if let Some(node) = self.nodes.get_mut(node.as_index()) {
            node.count = node.count.saturating_add(weight);
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    #[must_use]
    pub fn trees(&self) -> usize {
        self.roots.len()
    }

    /// All nodes, parents first.
    pub fn nodes(
        &self,
    ) -> impl DoubleEndedIterator<Item = ForestNodeId> + ExactSizeIterator + use<C> {
        (0..self.nodes.len() as u32).map(ForestNodeId)
    }

    /// The root of this label, `c` of which is the number of all its activations.
    #[must_use]
    pub fn find_root(&self, label: CallLabel) -> Option<ForestNodeId> {
        self.roots.get(&label).copied()
    }

    /// `l(v)`
    #[must_use]
    pub fn label(&self, node: ForestNodeId) -> CallLabel {
        self.nodes
            .get(node.as_index())
            .map_or(CallLabel(0), |node| node.label)
    }

    /// `c(v)`
    #[must_use]
    pub fn count(&self, node: ForestNodeId) -> u64 {
        self.nodes.get(node.as_index()).map_or(0, |node| node.count)
    }

    /// Calls from the root; 0 for a root.
    #[must_use]
    pub fn level(&self, node: ForestNodeId) -> u32 {
        self.nodes.get(node.as_index()).map_or(0, |node| node.level)
    }

    #[must_use]
    pub fn parent(&self, node: ForestNodeId) -> Option<ForestNodeId> {
        self.nodes.get(node.as_index())?.parent
    }

    /// The largest level.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.nodes.iter().map(|node| node.level).max().unwrap_or(0)
    }

    /// The labels from a node up to its root.
    pub fn labels_upwards(&self, node: ForestNodeId) -> impl Iterator<Item = CallLabel> + '_ {
        std::iter::successors(Some(node), |node| self.parent(*node)).map(|node| self.label(node))
    }

    /// The join of the same trees with other labels.
    ///
    /// # Errors
    /// None that the forest itself did not meet.
    pub fn relabel_nodes(
        &self,
        mut label: impl FnMut(ForestNodeId) -> CallLabel,
    ) -> Result<LabelForest, KContextError> {
        let mut forest = LabelForest::default();
        let mut copies: Vec<ForestNodeId> = Vec::with_capacity(self.len());
        for node in self.nodes() {
            let parent = self.parent(node);
            let parent = parent.and_then(|parent| copies.get(parent.as_index()).copied());
            let copy = match parent {
                None => forest.find_or_add_root(label(node)),
                Some(parent) => forest.find_or_add_child(parent, label(node).into()),
            }?;
            forest.add_weight(copy, self.count(node));
            copies.push(copy);
        }
        Ok(forest)
    }

    /// How many children each node has.
    #[must_use]
    pub fn child_counts(&self) -> Vec<u32> {
        let mut degrees = vec![0; self.nodes.len()];
        let parents = self.nodes.iter().filter_map(|node| node.parent);
        for parent in parents {
            if let Some(degree) = degrees.get_mut(parent.as_index()) {
                *degree += 1;
            }
        }
        degrees
    }

    #[must_use]
    pub fn work(&self) -> ForestWork {
        self.work
    }
}
