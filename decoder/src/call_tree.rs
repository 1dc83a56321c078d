//! The calling context tree of one run or of several.
//!
//! ```text
//! ROOT ── main ── parse ── next      a node is one path of frames from the thread's entry;
//!              └─ write              paths with a common prefix share its nodes
//! ```
//! Memory is proportional to the number of nodes, not to the lengths of paths.

use std::collections::HashSet;

use lucce_callgraph::{ContextFrame, ContextId, DecodeError};
use lucce_contentid::{FrameId, StackId};
use rustc_hash::FxHashMap;

use crate::context_walk::{ContextWalker, PathFold, WalkLimits};
use crate::profile::Profile;

/// A node of a [`CallTree`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// A key for equal frames, assigned by the user of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TreeFrameKey(pub u32);

/// Maximum number of children in a node's list; further ones are in a table.
const MAX_LISTED_CHILDREN: usize = 12;

const NONE: u32 = u32::MAX;

/// A calling context tree.
#[derive(Debug)]
pub struct CallTree {
    nodes: Vec<CallTreeNode>,
    /// Children beyond the list: (parent, key) → child.
    many_children: FxHashMap<(u32, u32), u32>,
}

#[derive(Clone, Copy, Debug)]
struct CallTreeNode {
    parent: u32,
    key: u32,
    /// Its first child.
    first_child: u32,
    /// The next child of its parent.
    next_sibling: u32,
}

impl Default for CallTree {
    fn default() -> Self {
        let root = CallTreeNode {
            parent: NONE,
            key: NONE,
            first_child: NONE,
            next_sibling: NONE,
        };
        CallTree {
            nodes: vec![root],
            many_children: FxHashMap::default(),
        }
    }
}

impl CallTree {
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
        self.nodes.push(CallTreeNode {
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

/// Finds one node to represent all nodes whose paths have equal content ids.
#[derive(Default)]
pub struct EqualStacks {
    /// Content ids by node; empty: all nodes differ.
    stacks: Vec<StackId>,
    first: FxHashMap<StackId, NodeId>,
}

impl EqualStacks {
    /// `frames`: content ids by key, see [`CallTree::stack_ids`].
    #[must_use]
    pub fn new(tree: &CallTree, frames: &[Option<FrameId>]) -> Self {
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
pub struct CallTreeBuilder<'p, F> {
    profile: &'p Profile,
    key: F,
    walker: ContextWalker<'p, NodeId>,
}

impl<'p, F: FnMut(ContextFrame) -> Option<TreeFrameKey>> CallTreeBuilder<'p, F> {
    /// `key`: equal for frames that share a node; `None` leaves a frame out. Frames out of scope are left out.
    pub fn new(profile: &'p Profile, key: F) -> Self {
        CallTreeBuilder {
            profile,
            key,
            walker: ContextWalker::new(&profile.graph, WalkLimits::default()),
        }
    }

    /// Inserts a context. Returns its node and the frame of its event.
    ///
    /// # Errors
    /// The log does not explain this context id.
    pub fn insert_context(
        &mut self,
        tree: &mut CallTree,
        id: ContextId,
    ) -> Result<(NodeId, Option<ContextFrame>), DecodeError> {
        let mut fold = NodeFold {
            profile: self.profile,
            tree,
            key: &mut self.key,
        };
        self.walker.walk_context(&mut fold, id)
    }
}

/// Finds the node of a path.
struct NodeFold<'f, F> {
    profile: &'f Profile,
    tree: &'f mut CallTree,
    key: &'f mut F,
}

impl<F: FnMut(ContextFrame) -> Option<TreeFrameKey>> PathFold for NodeFold<'_, F> {
    type Value = NodeId;
    const EMPTY: NodeId = CallTree::ROOT;
    const MEMO_SPACING: u64 = 2;

    fn push_frame(&mut self, callers: NodeId, frame: ContextFrame) -> Result<NodeId, DecodeError> {
        let profile = self.profile;
        // The callers of this frame belong to the thread that submitted the task.
        if !profile.across_threads && profile.code.is_submission_frame(frame) {
            return Ok(CallTree::ROOT);
        }
        let in_scope = profile.scope.contains_frame(frame);
        match in_scope.then(|| (self.key)(frame)).flatten() {
            Some(key) => self
                .tree
                .get_or_insert_child(callers, key)
                .ok_or(DecodeError::TooDeep),
            None => Ok(callers),
        }
    }
}
