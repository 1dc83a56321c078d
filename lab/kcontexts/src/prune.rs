//! The pruned k-CCF (Section 6, "Data structures"): chains that lead to a leaf are cut after their
//! first node, which points to where they can be read.
//!
//! A chain here has the same counter in all its nodes. Where no root function is called recursively,
//! nodes with one child always have their child's counter (Section 4.1, property (b)), and the chains
//! are the paper's; otherwise counters stay exact.

use rustc_hash::FxHashMap;

use crate::error::KContextError;
use crate::forest::LabelForest;
use crate::ids::{CallLabel, ForestNodeId};
use crate::inverse::ContextForest;

/// The pruned k-CCF.
pub struct PrunedForest {
    forest: LabelForest,
    chains: FxHashMap<ForestNodeId, PrunedChain>,
}

/// What was cut below a node: one path, as often activated as the node's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrunedChain {
    /// A node of the CCT or k-SF from which the k-CCF was made.
    pub origin: ForestNodeId,
    /// How many nodes were cut.
    pub length: u32,
}

impl ContextForest {
    /// # Errors
    /// None that the k-CCF itself did not meet.
    pub fn prune_tails(&self) -> Result<PrunedForest, KContextError> {
        let tails = self.find_tails();
        let tail = |node: ForestNodeId| tails.get(node.as_index()).copied().flatten();
        let mut pruned = PrunedForest {
            forest: LabelForest::default(),
            chains: FxHashMap::default(),
        };
        let mut copies: Vec<Option<ForestNodeId>> = Vec::new();
        for node in self.forest().nodes() {
            let parent = self.forest().parent(node);
            let cut = parent.is_some_and(|parent| tail(parent).is_some());
            let copied = parent.and_then(|parent| copies.get(parent.as_index()).copied().flatten());
            copies.push(match cut {
                true => None,
                false => Some(pruned.copy_nodes(self, node, copied, tail(node))?),
            });
        }
        Ok(pruned)
    }

    /// How many nodes follow each node whose subtree is a chain.
    fn find_tails(&self) -> Vec<Option<u32>> {
        let forest = self.forest();
        let degrees = forest.child_counts();
        let mut tails = vec![None; forest.len()];
        for (node, degree) in forest.nodes().zip(&degrees) {
            if *degree == 0
                && let Some(tail) = tails.get_mut(node.as_index())
            {
                *tail = Some(0);
            }
        }
        // Children come after their parents.
        for node in forest.nodes().rev() {
            let Some(parent) = forest.parent(node) else {
                continue;
            };
            let only = degrees.get(parent.as_index()) == Some(&1);
            let same = forest.count(parent) == forest.count(node);
            let tail = tails.get(node.as_index()).copied().flatten();
            if let Some(above) = tails.get_mut(parent.as_index()).filter(|_| only && same) {
                *above = tail.map(|tail: u32| tail + 1);
            }
        }
        tails
    }
}

impl PrunedForest {
    fn copy_nodes(
        &mut self,
        from: &ContextForest,
        node: ForestNodeId,
        parent: Option<ForestNodeId>,
        tail: Option<u32>,
    ) -> Result<ForestNodeId, KContextError> {
        let label = from.forest().label(node);
        let copy = match parent {
            None => self.forest.find_or_add_root(label),
            Some(parent) => self.forest.find_or_add_child(parent, label.into()),
        }?;
        self.forest.add_weight(copy, from.forest().count(node));
        if let Some(length) = tail.filter(|length| *length > 0) {
            let origin = from.origin(node);
            self.chains.insert(copy, PrunedChain { origin, length });
        }
        Ok(copy)
    }

    #[must_use]
    pub fn forest(&self) -> &LabelForest {
        &self.forest
    }

    #[must_use]
    pub fn chain_below(&self, node: ForestNodeId) -> Option<PrunedChain> {
        self.chains.get(&node).copied()
    }

    /// The labels that were cut below `node`, callee first. `source`: the forest that the k-CCF was
    /// made from.
    pub fn cut_to_length<'s, C>(
        &self,
        source: &'s LabelForest<C>,
        node: ForestNodeId,
    ) -> impl Iterator<Item = CallLabel> + use<'s, C> {
        let above = self.forest.level(node) as usize + 1;
        let chain = self.chain_below(node);
        let length = chain.map_or(0, |chain| chain.length as usize);
        let labels = chain.map(|chain| source.labels_upwards(chain.origin));
        labels.into_iter().flatten().skip(above).take(length)
    }
}
