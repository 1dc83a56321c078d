//! Labelled trees whose roots, and whose nodes' children, have distinct labels (Section 3).

use rustc_hash::FxHashMap;

use crate::children::{Children, Hashed};
use crate::error::Error;
use crate::ids::{Callee, Label, NodeId};

/// A forest with a counter in each node. Joining a path with it (Definition 4) is [`root`](Self::root)
/// and then [`child`](Self::child) for each further label.
#[derive(Default)]
pub struct Forest<C = Hashed> {
    nodes: Vec<Node>,
    roots: FxHashMap<Label, NodeId>,
    children: C,
    work: Work,
}

#[derive(Clone, Copy)]
struct Node {
    label: Label,
    parent: Option<NodeId>,
    level: u32,
    count: u64,
}

/// What building a forest took, in operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Roots and children that were asked for.
    pub lookups: u64,
    /// Entries that were looked at for that.
    pub looked: u64,
    /// Nodes that were made.
    pub made: u64,
}

impl<C: Children> Forest<C> {
    /// `find(R, x)` of Figure 7; the tree is made if there is none.
    ///
    /// # Errors
    /// The forest is full.
    pub fn root(&mut self, label: Label) -> Result<NodeId, Error> {
        self.work.lookups += 1;
        self.work.looked += 1;
        match self.roots.get(&label) {
            Some(root) => Ok(*root),
            None => {
                let root = self.make(None, label.into(), 0)?;
                self.roots.insert(label, root);
                Ok(root)
            }
        }
    }

    /// The child of this label; it is made if there is none.
    ///
    /// # Errors
    /// The forest is full.
    pub fn child(&mut self, parent: NodeId, callee: Callee) -> Result<NodeId, Error> {
        let (child, looked) = self.children.find(parent, callee);
        self.work.lookups += 1;
        self.work.looked += looked;
        match child {
            Some(child) => Ok(child),
            None => self.make(Some(parent), callee, self.level(parent) + 1),
        }
    }

    fn make(
        &mut self,
        parent: Option<NodeId>,
        callee: Callee,
        level: u32,
    ) -> Result<NodeId, Error> {
        let id = u32::try_from(self.nodes.len()).ok();
        // The last number stays free: lists of nodes count from 1.
        let id = id.filter(|id| *id < u32::MAX).ok_or(Error::TooManyNodes)?;
        self.nodes.push(Node {
            label: callee.label,
            parent,
            level,
            count: 0,
        });
        self.children.add(parent, callee, NodeId(id));
        self.work.made += 1;
        Ok(NodeId(id))
    }
}

impl<C> Forest<C> {
    /// Counts.
    pub fn add(&mut self, node: NodeId, weight: u64) {
        if let Some(node) = self.nodes.get_mut(node.at()) {
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
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<C> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// The root of this label, `c` of which is the number of all its activations.
    #[must_use]
    pub fn find_root(&self, label: Label) -> Option<NodeId> {
        self.roots.get(&label).copied()
    }

    /// `l(v)`
    #[must_use]
    pub fn label(&self, node: NodeId) -> Label {
        self.nodes
            .get(node.at())
            .map_or(Label(0), |node| node.label)
    }

    /// `c(v)`
    #[must_use]
    pub fn count(&self, node: NodeId) -> u64 {
        self.nodes.get(node.at()).map_or(0, |node| node.count)
    }

    /// Calls from the root; 0 for a root.
    #[must_use]
    pub fn level(&self, node: NodeId) -> u32 {
        self.nodes.get(node.at()).map_or(0, |node| node.level)
    }

    #[must_use]
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.nodes.get(node.at())?.parent
    }

    /// The largest level.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.nodes.iter().map(|node| node.level).max().unwrap_or(0)
    }

    /// The labels from a node up to its root.
    pub fn upwards(&self, node: NodeId) -> impl Iterator<Item = Label> + '_ {
        std::iter::successors(Some(node), |node| self.parent(*node)).map(|node| self.label(node))
    }

    /// The join of the same trees with other labels.
    ///
    /// # Errors
    /// None that the forest itself did not meet.
    pub fn relabelled(&self, mut label: impl FnMut(NodeId) -> Label) -> Result<Forest, Error> {
        let mut forest = Forest::default();
        let mut copies: Vec<NodeId> = Vec::with_capacity(self.len());
        for node in self.nodes() {
            let parent = self.parent(node);
            let parent = parent.and_then(|parent| copies.get(parent.at()).copied());
            let copy = match parent {
                None => forest.root(label(node)),
                Some(parent) => forest.child(parent, label(node).into()),
            }?;
            forest.add(copy, self.count(node));
            copies.push(copy);
        }
        Ok(forest)
    }

    /// How many children each node has.
    #[must_use]
    pub fn degrees(&self) -> Vec<u32> {
        let mut degrees = vec![0; self.nodes.len()];
        let parents = self.nodes.iter().filter_map(|node| node.parent);
        for parent in parents {
            if let Some(degree) = degrees.get_mut(parent.at()) {
                *degree += 1;
            }
        }
        degrees
    }

    #[must_use]
    pub fn work(&self) -> Work {
        self.work
    }
}
