//! Which nodes of the tree a page has: the heaviest. What lies below them is summed up, one node for all
//! that a node of the page calls and that is too light.

use crate::joined::Counted;
use crate::tree::{NodeId, Tree};

/// The weight of a node in the sums: what it and all below it have of each kind, as a part of the kind's
/// whole, by value and by number.
pub struct Heavy {
    /// By node of the tree: its node in the page, or that of its nearest caller that is there.
    at: Vec<ShownAt>,
    /// By node of the page: that of the tree, in the order of the tree; callers come first.
    kept: Vec<NodeId>,
}

/// Where a node's events are shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ShownAt {
    /// At this node of the page.
    Own(u32),
    /// In what is summed up below this node of the page.
    Below(u32),
}

impl Heavy {
    /// `weights`: by node, of its own events. At most `nodes` are kept, and the root.
    pub fn new(tree: &Tree, mut weights: Vec<f32>, nodes: usize) -> Heavy {
        for node in (1..tree.len()).rev() {
            let own = weights.get(node).copied().unwrap_or_default();
            if let Some((caller, _)) = tree.step(NodeId(node as u32))
                && let Some(sum) = weights.get_mut(caller.0 as usize)
            {
                *sum += own;
            }
        }
        let least = least(&weights, nodes);
        let mut heavy = Heavy {
            at: vec![ShownAt::Own(0)],
            kept: vec![Tree::ROOT],
        };
        for node in 1..tree.len() {
            let place =
                heavy.place_of(tree, NodeId(node as u32), weights.get(node).copied(), least);
            heavy.at.push(place);
        }
        heavy
    }

    /// A node is never heavier than its caller, so callers of what is kept are kept, but for rounding.
    fn place_of(&mut self, tree: &Tree, node: NodeId, weight: Option<f32>, least: f32) -> ShownAt {
        let caller = tree.step(node).map_or(Tree::ROOT, |(caller, _)| caller);
        match self.place(caller) {
            ShownAt::Own(caller) if weight.is_none_or(|weight| weight <= least) => {
                ShownAt::Below(caller)
            }
            ShownAt::Own(_) => {
                self.kept.push(node);
                ShownAt::Own(self.kept.len() as u32 - 1)
            }
            below @ ShownAt::Below(_) => below,
        }
    }

    pub fn place(&self, node: NodeId) -> ShownAt {
        self.at
            .get(node.0 as usize)
            .copied()
            .unwrap_or(ShownAt::Below(0))
    }

    /// The nodes of the page, the root first, then as in the tree.
    pub fn kept(&self) -> &[NodeId] {
        &self.kept
    }
}

/// So that at most this many are heavier.
fn least(weights: &[f32], nodes: usize) -> f32 {
    let mut sorted = weights.to_vec();
    match sorted.len().checked_sub(nodes + 1) {
        None => -1.0,
        Some(at) => *sorted.select_nth_unstable_by(at, f32::total_cmp).1,
    }
}

/// Weights of the nodes by their own events.
pub fn weights<'c>(
    tree: &Tree,
    counted: impl Iterator<Item = &'c Counted>,
    totals: &[(u64, u64)],
) -> Vec<f32> {
    let mut weights = vec![0.0; tree.len()];
    let part = |of: u64, whole: u64| match whole {
        0 => 0.0,
        _ => (of as f64 / whole as f64) as f32,
    };
    for row in counted {
        let (count, value) = totals.get(row.kind as usize).copied().unwrap_or_default();
        if let Some(weight) = weights.get_mut(row.node.0 as usize) {
            *weight += part(row.count, count) + part(row.value, value);
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use crate::tree::FrameKey;

    use super::*;

    /// root ─ 1 ─ 2, 3 ─ 4; root ─ 5
    fn tree() -> Tree {
        let mut tree = Tree::default();
        for (caller, key) in [(0, 1), (1, 1), (1, 2), (3, 1), (0, 2)] {
            tree.child(NodeId(caller), FrameKey(key));
        }
        tree
    }

    #[test]
    fn what_is_light_is_below_its_nearest_heavy_caller() {
        let heavy = Heavy::new(&tree(), vec![0.0, 0.0, 8.0, 0.5, 0.5, 4.0], 4);
        assert_eq!(heavy.kept(), [0, 1, 2, 5].map(NodeId));
        let places = [1, 2, 3, 4, 5].map(|node| heavy.place(NodeId(node)));
        let below = ShownAt::Below(1);
        assert_eq!(
            places,
            [
                ShownAt::Own(1),
                ShownAt::Own(2),
                below,
                below,
                ShownAt::Own(3)
            ]
        );
    }

    #[test]
    fn everything_is_kept_where_there_is_room() {
        let heavy = Heavy::new(&tree(), vec![0.0; 6], 100);
        assert_eq!(heavy.kept().len(), 6);
    }
}
