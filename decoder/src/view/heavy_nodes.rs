//! Which nodes of the tree a page has: the heaviest. What lies below them is summed up, one node for all
//! that a node of the page calls and that is too light.

use crate::merged::MergedCounter;
use crate::tree::{ContextTree, NodeId};

/// The weight of a node in the sums: what it and all below it have of each kind, as a part of the kind's
/// whole, by value and by number.
pub struct HeavyNodes {
    /// By node of the tree: its node in the page, or that of its nearest caller that is there.
    placements: Vec<NodePlacement>,
    /// By node of the page: that of the tree, in the order of the tree; callers come first.
    kept_nodes: Vec<NodeId>,
}

/// Where a node's events are shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NodePlacement {
    /// At this node of the page.
    Own(u32),
    /// In what is summed up below this node of the page.
    Below(u32),
}

impl HeavyNodes {
    /// `node_weights`: by node, of its own events. At most `nodes` are kept, and the root.
    pub fn new(tree: &ContextTree, mut weights: Vec<f32>, nodes: usize) -> HeavyNodes {
        for node in (1..tree.len()).rev() {
            let own = weights.get(node).copied().unwrap_or_default();
            if let Some((caller, _)) = tree.caller_and_frame(NodeId(node as u32))
                && let Some(sum) = weights.get_mut(caller.0 as usize)
            {
                *sum += own;
            }
        }
        let least = weight_threshold(&weights, nodes);
        let mut heavy = HeavyNodes {
            placements: vec![NodePlacement::Own(0)],
            kept_nodes: vec![ContextTree::ROOT],
        };
        for node in 1..tree.len() {
            let place =
                heavy.place_node(tree, NodeId(node as u32), weights.get(node).copied(), least);
            heavy.placements.push(place);
        }
        heavy
    }

    /// A node is never heavier than its caller, so callers of what is kept are kept, but for rounding.
    fn place_node(
        &mut self,
        tree: &ContextTree,
        node: NodeId,
        weight: Option<f32>,
        least: f32,
    ) -> NodePlacement {
        let caller = tree
            .caller_and_frame(node)
            .map_or(ContextTree::ROOT, |(caller, _)| caller);
        match self.node_placement(caller) {
            NodePlacement::Own(caller) if weight.is_none_or(|weight| weight <= least) => {
                NodePlacement::Below(caller)
            }
            NodePlacement::Own(_) => {
                self.kept_nodes.push(node);
                NodePlacement::Own(self.kept_nodes.len() as u32 - 1)
            }
            below @ NodePlacement::Below(_) => below,
        }
    }

    pub fn node_placement(&self, node: NodeId) -> NodePlacement {
        self.placements
            .get(node.0 as usize)
            .copied()
            .unwrap_or(NodePlacement::Below(0))
    }

    /// The nodes of the page, the root first, then as in the tree.
    pub fn kept_nodes(&self) -> &[NodeId] {
        &self.kept_nodes
    }
}

/// So that at most this many are heavier.
fn weight_threshold(weights: &[f32], nodes: usize) -> f32 {
    let mut sorted = weights.to_vec();
    match sorted.len().checked_sub(nodes + 1) {
        None => -1.0,
        Some(at) => *sorted.select_nth_unstable_by(at, f32::total_cmp).1,
    }
}

/// Weights of the nodes by their own events.
pub fn node_weights<'c>(
    tree: &ContextTree,
    counted: impl Iterator<Item = &'c MergedCounter>,
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
    use crate::tree::TreeFrameKey;

    use super::*;

    /// root ─ 1 ─ 2, 3 ─ 4; root ─ 5
    fn tree() -> ContextTree {
        let mut tree = ContextTree::default();
        for (caller, key) in [(0, 1), (1, 1), (1, 2), (3, 1), (0, 2)] {
            tree.get_or_insert_child(NodeId(caller), TreeFrameKey(key));
        }
        tree
    }

    #[test]
    fn what_is_light_is_below_its_nearest_heavy_caller() {
        let heavy = HeavyNodes::new(&tree(), vec![0.0, 0.0, 8.0, 0.5, 0.5, 4.0], 4);
        assert_eq!(heavy.kept_nodes(), [0, 1, 2, 5].map(NodeId));
        let places = [1, 2, 3, 4, 5].map(|node| heavy.node_placement(NodeId(node)));
        let below = NodePlacement::Below(1);
        assert_eq!(
            places,
            [
                NodePlacement::Own(1),
                NodePlacement::Own(2),
                below,
                below,
                NodePlacement::Own(3)
            ]
        );
    }

    #[test]
    fn everything_is_kept_where_there_is_room() {
        let heavy = HeavyNodes::new(&tree(), vec![0.0; 6], 100);
        assert_eq!(heavy.kept_nodes().len(), 6);
    }
}
