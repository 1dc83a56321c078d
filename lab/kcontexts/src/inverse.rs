//! `inv_k` and the k-calling context forest (Sections 4 and 5.1).

use crate::error::KContextError;
use crate::forest::LabelForest;
use crate::ids::{CallLabel, ForestNodeId};

/// No bound on the contexts' length: ∞.
pub const UNBOUNDED: u32 = u32::MAX;

/// The k-CCF: a tree for each routine, whose root paths are the paths of at most k calls that lead to
/// it, read backwards, and whose counters say how often.
pub struct ContextForest {
    forest: LabelForest,
    /// A node of the source whose reversed path made the node.
    origins: Vec<ForestNodeId>,
}

impl ContextForest {
    /// The k-inverse of a forest (Definition 6, Lemma 1), of those nodes where something was counted.
    pub(crate) fn new<C>(
        source: &LabelForest<C>,
        k: u32,
        weight: impl Fn(ForestNodeId) -> u64,
    ) -> Result<Self, KContextError> {
        Self::from_subtree(source, k, weight, |_| true)
    }

    /// Only the trees of the wanted labels.
    pub(crate) fn from_subtree<C>(
        source: &LabelForest<C>,
        k: u32,
        weight: impl Fn(ForestNodeId) -> u64,
        wanted: impl Fn(CallLabel) -> bool,
    ) -> Result<Self, KContextError> {
        let counted = |node: &ForestNodeId| wanted(source.label(*node)) && weight(*node) > 0;
        let mut nodes: Vec<ForestNodeId> = source.nodes().filter(counted).collect();
        // The lists L_x one after the other, so that trees are made one at a time.
        nodes.sort_unstable_by_key(|node| (source.label(*node), *node));
        let mut inverse = ContextForest {
            forest: LabelForest::default(),
            origins: Vec::new(),
        };
        for node in nodes {
            inverse.join_paths(source, node, k, weight(node))?;
        }
        Ok(inverse)
    }

    /// Joins the reverse of the maximal suffix of length at most k that ends in `node`.
    fn join_paths<C>(
        &mut self,
        source: &LabelForest<C>,
        node: ForestNodeId,
        k: u32,
        weight: u64,
    ) -> Result<(), KContextError> {
        let mut at: Option<ForestNodeId> = None;
        for label in source
            .labels_upwards(node)
            .take((k as usize).saturating_add(1))
        {
            let next = match at {
                None => self.forest.find_or_add_root(label),
                Some(at) => self.forest.find_or_add_child(at, label.into()),
            }?;
            self.forest.add_weight(next, weight);
            if next.as_index() == self.origins.len() {
                self.origins.push(node);
            }
            at = Some(next);
        }
        Ok(())
    }

    #[must_use]
    pub fn forest(&self) -> &LabelForest {
        &self.forest
    }

    /// A node of the forest that this was made from, whose reversed path begins with the path to `node`.
    pub(crate) fn origin(&self, node: ForestNodeId) -> ForestNodeId {
        self.origins.get(node.as_index()).copied().unwrap_or(node)
    }
}
