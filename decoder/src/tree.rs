//! Contexts as a tree of frames (the calling context tree of the papers), of one run or of several.
//!
//! ```text
//! ROOT ── main ── parse ── next      a node is one path of frames from the thread's entry; paths that
//!              └─ write              begin alike share their nodes
//! ```
//! Memory is proportional to the nodes, not to the lengths of the paths: a path is walked up only to a
//! place that an earlier walk has remembered. One place in [`SPACING`] is remembered, chosen by its own
//! number, so walks that meet anywhere meet at a remembered place soon after.

use std::collections::{HashMap, HashSet};

use lucce_callgraph::{ContextFrame, ContextId, DecodeError, MethodId, VersionedGraph};
use lucce_contentid::{FrameId, StackId};
use rustc_hash::FxHashMap;

use crate::profile::{MethodInContext, Profile};

/// A node of a [`ContextTree`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// What frames are equal by, as the grower of the tree numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TreeFrameKey(pub u32);

/// One place in so many is remembered; a power of two. A walk goes past so many known places on average before it knows
/// where it is: half as many walks half as far, and takes twice the memory.
const SPACING: u64 = 2;

/// So many children of a node stand in a list; those after them in a table.
const MAX_LISTED_CHILDREN: usize = 12;

const NONE: u32 = u32::MAX;

/// Paths of frames.
#[derive(Debug)]
pub struct ContextTree {
    nodes: Vec<ContextTreeNode>,
    /// Children of nodes that have many.
    many_children: FxHashMap<(u32, u32), u32>,
}

#[derive(Clone, Copy, Debug)]
struct ContextTreeNode {
    parent: u32,
    key: u32,
    /// Of its children.
    first_child: u32,
    /// Of its parent's children.
    next_sibling: u32,
}

impl Default for ContextTree {
    fn default() -> Self {
        let root = ContextTreeNode {
            parent: NONE,
            key: NONE,
            first_child: NONE,
            next_sibling: NONE,
        };
        ContextTree {
            nodes: vec![root],
            many_children: FxHashMap::default(),
        }
    }
}

impl ContextTree {
    /// No frame at all.
    pub const ROOT: NodeId = NodeId(0);

    /// How many nodes there are, the root among them. A node comes after its parent.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a tree has a root")]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The frame that is called last in the node's path, and the path before it; `None`: the root.
    #[must_use]
    pub fn caller_and_frame(&self, node: NodeId) -> Option<(NodeId, TreeFrameKey)> {
        let node = self.nodes.get(node.0 as usize)?;
        (node.parent != NONE).then_some((NodeId(node.parent), TreeFrameKey(node.key)))
    }

    /// By node, the content id of its path. `id`: that of a frame; none: the frame is no frame of the program.
    #[must_use]
    pub fn stack_ids(&self, id: impl Fn(TreeFrameKey) -> Option<FrameId>) -> Vec<StackId> {
        let mut stacks: Vec<StackId> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let callers = stacks.get(node.parent as usize).copied();
            let callers = callers.unwrap_or(StackId::EMPTY);
            let own = id(TreeFrameKey(node.key)).filter(|_| node.parent != NONE);
            stacks.push(own.map_or(callers, |own| callers.with_callee(own)));
        }
        stacks
    }

    /// The node for one frame more; `None`: there are four billion already.
    pub fn get_or_insert_child(&mut self, parent: NodeId, key: TreeFrameKey) -> Option<NodeId> {
        let (mut at, mut seen, mut last) =
            (self.nodes.get(parent.0 as usize)?.first_child, 0, NONE);
        while let Some(node) = self.nodes.get(at as usize) {
            if node.key == key.0 {
                return Some(NodeId(at));
            }
            (last, at, seen) = (at, node.next_sibling, seen + 1);
        }
        if seen == MAX_LISTED_CHILDREN
            && let Some(known) = self.many_children.get(&(parent.0, key.0))
        {
            return Some(NodeId(*known));
        }
        let new = u32::try_from(self.nodes.len())
            .ok()
            .filter(|new| *new != NONE)?;
        self.nodes.push(ContextTreeNode {
            parent: parent.0,
            key: key.0,
            first_child: NONE,
            next_sibling: NONE,
        });
        match (seen, last) {
            (MAX_LISTED_CHILDREN, _) => {
                self.many_children.insert((parent.0, key.0), new);
            }
            (_, NONE) => self.nodes.get_mut(parent.0 as usize)?.first_child = new,
            (_, last) => self.nodes.get_mut(last as usize)?.next_sibling = new,
        }
        Some(NodeId(new))
    }
}

/// A place without room between its parts: there are millions of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PackedPosition([u32; 3]);

impl From<MethodInContext> for PackedPosition {
    fn from((id, method): MethodInContext) -> PackedPosition {
        PackedPosition([id.0 as u32, (id.0 >> 32) as u32, method.0])
    }
}

/// Nodes whose paths have equal content ids: which of them stands for all.
#[derive(Default)]
pub struct EqualStacks {
    /// By node; empty: no two nodes have equal content ids.
    stacks: Vec<StackId>,
    first: FxHashMap<StackId, NodeId>,
}

impl EqualStacks {
    /// `frames`: by key, the frames' content ids; as of [`ContextTree::stack_ids`].
    #[must_use]
    pub fn new(tree: &ContextTree, frames: &[Option<FrameId>]) -> Self {
        let mut different = HashSet::with_capacity(frames.len());
        let are_different = frames.iter().all(|id| different.insert(id));
        let id = |key: TreeFrameKey| frames.get(key.0 as usize).copied().flatten();
        EqualStacks {
            stacks: match are_different {
                true => Vec::new(),
                false => tree.stack_ids(id),
            },
            first: FxHashMap::default(),
        }
    }

    /// Of the nodes with an equal content id, the one that was asked for first.
    pub fn first_node(&mut self, node: NodeId) -> NodeId {
        match self.stacks.get(node.0 as usize) {
            Some(stack) => *self.first.entry(*stack).or_insert(node),
            None => node,
        }
    }
}

/// Puts the contexts of one run into a tree.
pub struct ContextTreeBuilder<'p, F> {
    graph: &'p VersionedGraph,
    /// Callers of a frame of this method are not those of the thread itself.
    boundary_method: Option<MethodId>,
    key: F,
    memos: FxHashMap<PackedPosition, NodeId>,
    path: Vec<(MethodInContext, ContextFrame)>,
}

impl Profile {
    /// `key`: what is told apart of frames; `None` leaves a frame out, as those out of scope are.
    pub fn tree_builder<F: FnMut(ContextFrame) -> Option<TreeFrameKey>>(
        &self,
        mut key: F,
    ) -> ContextTreeBuilder<'_, impl FnMut(ContextFrame) -> Option<TreeFrameKey>> {
        ContextTreeBuilder {
            graph: &self.graph,
            boundary_method: (!self.across_threads)
                .then(|| self.code.submission_method())
                .flatten(),
            key: move |frame| {
                self.scope
                    .contains_frame(frame)
                    .then(|| key(frame))
                    .flatten()
            },
            memos: HashMap::default(),
            path: Vec::new(),
        }
    }
}

impl<F: FnMut(ContextFrame) -> Option<TreeFrameKey>> ContextTreeBuilder<'_, F> {
    /// The context's node, and the place of its event.
    ///
    /// # Errors
    /// The log does not explain this number.
    pub fn insert_context(
        &mut self,
        tree: &mut ContextTree,
        id: ContextId,
    ) -> Result<(NodeId, Option<ContextFrame>), DecodeError> {
        let at = (id, MethodId::EVENT);
        let Some((parent, leaf)) = self.graph.find_caller(at.0, at.1)? else {
            return Ok((ContextTree::ROOT, None));
        };
        self.path.clear();
        self.path.push((at, leaf));
        let mut node = self.walk_up((parent, leaf.method))?;
        while let Some((place, frame)) = self.path.pop() {
            node = match self.boundary_method == Some(frame.method) {
                true => ContextTree::ROOT,
                false => match (self.key)(frame) {
                    Some(key) => tree
                        .get_or_insert_child(node, key)
                        .ok_or(DecodeError::TooDeep)?,
                    None => node,
                },
            };
            if is_remembered(place) {
                self.memos.insert(place.into(), node);
            }
        }
        Ok((node, Some(leaf)))
    }

    /// To a node that is known.
    fn walk_up(&mut self, mut at: MethodInContext) -> Result<NodeId, DecodeError> {
        loop {
            if is_remembered(at)
                && let Some(node) = self.memos.get(&at.into())
            {
                return Ok(*node);
            }
            let Some((parent, frame)) = self.graph.find_caller(at.0, at.1)? else {
                return Ok(ContextTree::ROOT);
            };
            if self.path.len() >= VersionedGraph::MAX_FRAMES {
                return Err(DecodeError::TooDeep);
            }
            self.path.push((at, frame));
            at = (parent, frame.method);
        }
    }
}

/// An event's own place is met by its own number only. Multiplication spreads numbers that differ by a
/// constant, as those of a recursion do.
fn is_remembered((id, method): MethodInContext) -> bool {
    let mixed = (id.0 ^ u64::from(method.0) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    method != MethodId::EVENT && mixed.leading_zeros() >= SPACING.ilog2()
}
