//! The x%-similar forest (Section 6): of each routine's tree what makes at least x% of its activations.

use crate::error::KContextError;
use crate::forest::LabelForest;
use crate::ids::ForestNodeId;
use crate::inverse::ContextForest;

/// `c(u) ≥ (x/100) c(r)`
pub(crate) fn is_similar(count: u64, root: u64, percent: u32) -> bool {
    u128::from(count) * 100 >= u128::from(percent) * u128::from(root)
}

impl ContextForest {
    /// Without the nodes whose counter is below `percent` of their root's. Its leaves are the longest
    /// paths that make that much of a routine's activations.
    ///
    /// # Errors
    /// None that the k-CCF itself did not meet.
    pub fn prune_similar(&self, percent: u32) -> Result<LabelForest, KContextError> {
        self.forest().prune_similar(percent)
    }
}

impl<C> LabelForest<C> {
    /// See [`ContextForest::similar`].
    ///
    /// # Errors
    /// None that the forest itself did not meet.
    pub fn prune_similar(&self, percent: u32) -> Result<LabelForest, KContextError> {
        let mut similar = LabelForest::default();
        // Per node: its copy, and its root's counter. Counters fall with the level, so a node that
        // is left out has no descendant that is not.
        let mut copies: Vec<Option<(ForestNodeId, u64)>> = Vec::new();
        for node in self.nodes() {
            let (label, count) = (self.label(node), self.count(node));
            let copy = match self.parent(node) {
                None => Some((similar.find_or_add_root(label)?, count)),
                Some(parent) => match copies.get(parent.as_index()).copied().flatten() {
                    Some((parent, root)) if is_similar(count, root, percent) => {
                        Some((similar.find_or_add_child(parent, label.into())?, root))
                    }
                    _ => None,
                },
            };
            if let Some((copy, _)) = copy {
                similar.add_weight(copy, count);
            }
            copies.push(copy);
        }
        Ok(similar)
    }
}
