//! `inv_k` and the k-calling context forest (Sections 4 and 5.1).

use crate::error::Error;
use crate::forest::Forest;
use crate::ids::{Label, NodeId};

/// No bound on the contexts' length: ∞.
pub const UNBOUNDED: u32 = u32::MAX;

/// The k-CCF: a tree for each routine, whose root paths are the paths of at most k calls that lead to
/// it, read backwards, and whose counters say how often.
pub struct ContextForest {
    forest: Forest,
    /// A node of the source whose reversed path made the node.
    origins: Vec<NodeId>,
}

impl ContextForest {
    /// The k-inverse of a forest (Definition 6, Lemma 1), of those nodes where something was counted.
    pub(crate) fn new<C>(
        source: &Forest<C>,
        k: u32,
        weight: impl Fn(NodeId) -> u64,
    ) -> Result<Self, Error> {
        Self::of(source, k, weight, |_| true)
    }

    /// Only the trees of the wanted labels.
    pub(crate) fn of<C>(
        source: &Forest<C>,
        k: u32,
        weight: impl Fn(NodeId) -> u64,
        wanted: impl Fn(Label) -> bool,
    ) -> Result<Self, Error> {
        let counted = |node: &NodeId| wanted(source.label(*node)) && weight(*node) > 0;
        let mut nodes: Vec<NodeId> = source.nodes().filter(counted).collect();
        // The lists L_x one after the other, so that trees are made one at a time.
        nodes.sort_unstable_by_key(|node| (source.label(*node), *node));
        let mut inverse = ContextForest {
            forest: Forest::default(),
            origins: Vec::new(),
        };
        for node in nodes {
            inverse.join(source, node, k, weight(node))?;
        }
        Ok(inverse)
    }

    /// Joins the reverse of the maximal suffix of length at most k that ends in `node`.
    fn join<C>(
        &mut self,
        source: &Forest<C>,
        node: NodeId,
        k: u32,
        weight: u64,
    ) -> Result<(), Error> {
        let mut at: Option<NodeId> = None;
        for label in source.upwards(node).take((k as usize).saturating_add(1)) {
            let next = match at {
                None => self.forest.root(label),
                Some(at) => self.forest.child(at, label.into()),
            }?;
            self.forest.add(next, weight);
            if next.at() == self.origins.len() {
                self.origins.push(node);
            }
            at = Some(next);
        }
        Ok(())
    }

    #[must_use]
    pub fn forest(&self) -> &Forest {
        &self.forest
    }

    /// A node of the forest that this was made from, whose reversed path begins with the path to `node`.
    pub(crate) fn origin(&self, node: NodeId) -> NodeId {
        self.origins.get(node.at()).copied().unwrap_or(node)
    }
}
