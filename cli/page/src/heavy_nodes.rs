//! Selects the heaviest nodes of the tree for a page. Omitted callees of a node are summed up in one node.

use lucce_decoder::MergedCounter;
use lucce_decoder::{CallTree, NodeId};

/// The selected nodes. A node's weight is the fraction of each kind's total, by value and by count, that it has with all
/// its callees.
pub struct HeavyNodes {
    /// For each node of the tree, its node in the page, or its nearest caller's.
    placements: Vec<NodePlacement>,
    /// The tree's node of each node of the page, in the order of the tree; callers come first.
    kept_nodes: Vec<NodeId>,
}

/// The place where a node's events are shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NodePlacement {
    /// At this node of the page.
    Own(u32),
    /// In the sum below this node of the page.
    Below(u32),
}

impl HeavyNodes {
    /// Selects at most `nodes` nodes, and the root. `weights`: the weight of each node's own events.
    pub fn new(tree: &CallTree, mut weights: Vec<f32>, nodes: usize) -> HeavyNodes {
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
            kept_nodes: vec![CallTree::ROOT],
        };
        for node in 1..tree.len() {
            let place =
                heavy.place_node(tree, NodeId(node as u32), weights.get(node).copied(), least);
            heavy.placements.push(place);
        }
        heavy
    }

    /// Places one node. A node is never heavier than its caller, so the callers of a kept node are kept, except for
    /// rounding.
    fn place_node(
        &mut self,
        tree: &CallTree,
        node: NodeId,
        weight: Option<f32>,
        least: f32,
    ) -> NodePlacement {
        let caller = tree
            .caller_and_frame(node)
            .map_or(CallTree::ROOT, |(caller, _)| caller);
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

    /// The nodes of the page: the root, then the others in the order of the tree.
    pub fn kept_nodes(&self) -> &[NodeId] {
        &self.kept_nodes
    }
}

/// The threshold that at most `nodes` weights exceed.
fn weight_threshold(weights: &[f32], nodes: usize) -> f32 {
    let mut sorted = weights.to_vec();
    match sorted.len().checked_sub(nodes + 1) {
        None => -1.0,
        Some(at) => *sorted.select_nth_unstable_by(at, f32::total_cmp).1,
    }
}

/// The weights of the nodes' own events.
pub fn node_weights<'c>(
    tree: &CallTree,
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
mod heavy_nodes_tests {
    use lucce_decoder::TreeFrameKey;

    use super::*;

    /// root ─ 1 ─ 2, 3 ─ 4; root ─ 5
    fn tree() -> CallTree {
        let mut tree = CallTree::default();
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
