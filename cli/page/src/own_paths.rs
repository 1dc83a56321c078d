//! The own code among omitted frames, so that sums of omitted contexts are divided by it.

use std::collections::HashMap;

use lucce_decoder::{CallTree, CodeOrigin, MergedNames, MergedProfile, NodeId, TreeFrameKey};

use super::heavy_nodes::{HeavyNodes, NodePlacement};

/// The own code of a context that is not a node of the page, below its nearest caller in the page. Without own code there,
/// and for nodes of the page: empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct OwnPath {
    /// The outermost own frame; the innermost one if callers in the page have own code.
    pub outermost: Option<TreeFrameKey>,
    pub innermost: Option<TreeFrameKey>,
}

impl OwnPath {
    pub fn is_empty(&self) -> bool {
        self.innermost.is_none()
    }

    /// Whether the outermost own frame is another one than the innermost.
    pub fn has_several(&self) -> bool {
        self.outermost != self.innermost
    }
}

/// The own paths of all nodes of the tree.
#[derive(Default)]
pub struct OwnPaths {
    /// Each node's number of a path; empty: own code cannot be told from other code.
    path_numbers: Vec<u32>,
    paths: Vec<NodePath>,
}

/// A path, and whether callers in the page have own code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct NodePath {
    has_own_callers: bool,
    own: OwnPath,
}

impl NodePath {
    fn with_own_callee(self, frame: TreeFrameKey, is_kept: bool) -> NodePath {
        if is_kept {
            return NodePath {
                has_own_callers: true,
                own: OwnPath::default(),
            };
        }
        let outermost = self.own.outermost.filter(|_| !self.has_own_callers);
        let own = OwnPath {
            outermost: outermost.or(Some(frame)),
            innermost: Some(frame),
        };
        NodePath { own, ..self }
    }
}

impl OwnPaths {
    pub fn new(merged: &MergedProfile, heavy: &HeavyNodes) -> OwnPaths {
        let (tree, names) = (&merged.tree, &merged.names);
        let own_frames = mark_own_frames(names);
        let has_both = own_frames.contains(&true) && own_frames.contains(&false);
        match has_both {
            true => OwnPaths::from_frames(tree, heavy, &own_frames),
            false => OwnPaths::default(),
        }
    }

    fn from_frames(tree: &CallTree, heavy: &HeavyNodes, own_frames: &[bool]) -> OwnPaths {
        let mut numbers: HashMap<NodePath, u32> = HashMap::from([(NodePath::default(), 0)]);
        let mut paths = OwnPaths {
            path_numbers: vec![0; tree.len()],
            paths: vec![NodePath::default()],
        };
        for node in 1..tree.len() {
            let Some((caller, frame)) = tree.caller_and_frame(NodeId(node as u32)) else {
                continue;
            };
            let mut number = paths.path_number(caller);
            // Most frames are not own code, and have their caller's path.
            if own_frames
                .get(frame.0 as usize)
                .copied()
                .unwrap_or_default()
            {
                let placement = heavy.node_placement(NodeId(node as u32));
                let is_kept = matches!(placement, NodePlacement::Own(_));
                let path = paths.node_path(number).with_own_callee(frame, is_kept);
                number = *numbers.entry(path).or_insert_with(|| {
                    paths.paths.push(path);
                    // There are at most as many paths as nodes.
                    paths.paths.len() as u32 - 1
                });
            }
            if let Some(of_node) = paths.path_numbers.get_mut(node) {
                *of_node = number;
            }
        }
        paths
    }

    /// The path of a node of the tree.
    pub fn find_path(&self, node: NodeId) -> OwnPath {
        self.node_path(self.path_number(node)).own
    }

    fn path_number(&self, node: NodeId) -> u32 {
        let number = self.path_numbers.get(node.0 as usize);
        number.copied().unwrap_or_default()
    }

    fn node_path(&self, number: u32) -> NodePath {
        self.paths.get(number as usize).copied().unwrap_or_default()
    }
}

/// Whether each frame is own code, by its number.
fn mark_own_frames(names: &MergedNames) -> Vec<bool> {
    let frames = names.frames.as_slice().iter();
    frames
        .map(|frame| {
            let method = names.methods.get(frame.method);
            method.is_some_and(|method| names.class_origin(method.class) == CodeOrigin::Application)
        })
        .collect()
}

#[cfg(test)]
mod own_paths_tests {
    use super::*;

    /// root ─ 0 (kept, library) ─ 1 (own) ─ 2 (library) ─ 3 (own); root ─ 1 (kept, own) ─ 2 ─ 3 (own)
    #[test]
    fn omitted_contexts_have_their_own_code_below_the_page() {
        let mut tree = CallTree::default();
        for (caller, frame) in [(0, 0), (1, 1), (2, 2), (3, 3), (0, 1), (5, 2), (6, 3)] {
            tree.get_or_insert_child(NodeId(caller), TreeFrameKey(frame));
        }
        let weights = vec![0.0, 5.0, 0.1, 0.1, 0.1, 5.0, 0.1, 0.1];
        let heavy = HeavyNodes::new(&tree, weights, 3);
        let paths = OwnPaths::from_frames(&tree, &heavy, &[false, true, false, true]);
        let path = |node| {
            let OwnPath {
                outermost,
                innermost,
            } = paths.find_path(NodeId(node));
            (outermost.map(|key| key.0), innermost.map(|key| key.0))
        };
        assert_eq!(path(1), (None, None));
        assert_eq!(path(2), (Some(1), Some(1)));
        assert_eq!(path(3), (Some(1), Some(1)), "its caller's own code");
        assert_eq!(path(4), (Some(1), Some(3)));
        assert_eq!(path(6), (None, None), "the page has its own caller");
        assert_eq!(path(7), (Some(3), Some(3)));
    }
}
