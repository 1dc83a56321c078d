//! The calling context tree of one run or of several.
//!
//! ```text
//! ROOT ── main ── parse ── next      a node is one path of frames from the thread's entry;
//!              └─ write              paths with a common prefix share its nodes
//! ```
//! Memory is proportional to the number of nodes, not to the lengths of paths. A path is walked up only to a place that an
//! earlier walk remembered. One place in [`SPACING`] is remembered, chosen by its own context id, so two walks that meet
//! reach a remembered place soon after.

use std::collections::{HashMap, HashSet};

use lucce_callgraph::{ContextFrame, ContextId, DecodeError, MethodId, VersionedGraph};
use lucce_contentid::{FrameId, StackId};
use rustc_hash::FxHashMap;

use crate::profile::{MethodInContext, Profile};

/// A node of a [`ContextTree`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// A key for equal frames, assigned by the user of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TreeFrameKey(pub u32);

/// One place in this number is remembered; a power of two. A walk passes this number of known places on average before it
/// finds a remembered one. Half the number shortens walks by half and takes twice the memory.
const SPACING: u64 = 2;

/// Maximum number of children in a node's list; further ones are in a table.
const MAX_LISTED_CHILDREN: usize = 12;

const NONE: u32 = u32::MAX;

/// A calling context tree.
#[derive(Debug)]
pub struct ContextTree {
    nodes: Vec<ContextTreeNode>,
    /// Children beyond the list: (parent, key) → child.
    many_children: FxHashMap<(u32, u32), u32>,
}

#[derive(Clone, Copy, Debug)]
struct ContextTreeNode {
    parent: u32,
    key: u32,
    /// Its first child.
    first_child: u32,
    /// The next child of its parent.
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
    /// The node of the empty path.
    pub const ROOT: NodeId = NodeId(0);

    /// Number of nodes with the root. A node follows its parent.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a tree has a root")]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node's innermost frame, and its caller's node; `None`: the root.
    #[must_use]
    pub fn caller_and_frame(&self, node: NodeId) -> Option<(NodeId, TreeFrameKey)> {
        let node = self.nodes.get(node.0 as usize)?;
        (node.parent != NONE).then_some((NodeId(node.parent), TreeFrameKey(node.key)))
    }

    /// The content id of each node's path. `id`: a frame's content id; `None`: not a frame of the program.
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

    /// The node for one more frame; `None`: the tree has four billion nodes already.
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

/// A place without padding: there are millions of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PackedPosition([u32; 3]);

impl From<MethodInContext> for PackedPosition {
    fn from((id, method): MethodInContext) -> PackedPosition {
        PackedPosition([id.0 as u32, (id.0 >> 32) as u32, method.0])
    }
}

/// Finds one node to represent all nodes whose paths have equal content ids.
#[derive(Default)]
pub struct EqualStacks {
    /// Content ids by node; empty: all nodes differ.
    stacks: Vec<StackId>,
    first: FxHashMap<StackId, NodeId>,
}

impl EqualStacks {
    /// `frames`: content ids by key, see [`ContextTree::stack_ids`].
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

    /// Of all nodes with the same content id, the first that was passed to this function.
    pub fn first_node(&mut self, node: NodeId) -> NodeId {
        match self.stacks.get(node.0 as usize) {
            Some(stack) => *self.first.entry(*stack).or_insert(node),
            None => node,
        }
    }
}

/// Inserts the contexts of one run into a tree.
pub struct ContextTreeBuilder<'p, F> {
    graph: &'p VersionedGraph,
    /// The method of frames whose callers belong to another thread.
    boundary_method: Option<MethodId>,
    key: F,
    memos: FxHashMap<PackedPosition, NodeId>,
    path: Vec<(MethodInContext, ContextFrame)>,
}

impl Profile {
    /// Builds a tree. `key`: equal for frames that share a node; `None` leaves a frame out, such as frames out of scope.
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
    /// Inserts a context. Returns its node and the frame of its event.
    ///
    /// # Errors
    /// The log does not explain this context id.
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

    /// Walks up to a known node, and inserts the nodes below it.
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

/// Whether a place is remembered. An event's own place never is: only its own id reaches it. The multiplication spreads
/// ids that differ by a constant, as in a recursion.
fn is_remembered((id, method): MethodInContext) -> bool {
    let mixed = (id.0 ^ u64::from(method.0) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    method != MethodId::EVENT && mixed.leading_zeros() >= SPACING.ilog2()
}
