//! A forest as calls.

use crate::error::KContextError;
use crate::forest::LabelForest;
use crate::ids::{ForestNodeId, TraceThreadId};
use crate::listener::CallListener;

impl<C> LabelForest<C> {
    /// Tells a listener each node as one call that counts what the node does, depth first.
    ///
    /// # Errors
    /// The listener's own.
    pub fn walk_contexts(&self, listener: &mut impl CallListener) -> Result<(), KContextError> {
        let thread = TraceThreadId(0);
        let family = FirstChildLinks::new(self);
        let mut next = family.roots;
        let mut entered: Vec<ForestNodeId> = Vec::new();
        loop {
            match next {
                Some(node) => {
                    listener.enter_call(thread, self.label(node).into())?;
                    if self.count(node) > 0 {
                        listener.add_count(thread, self.count(node))?;
                    }
                    entered.push(node);
                    next = link_of(&family.first, node);
                }
                None => {
                    let Some(left) = entered.pop() else {
                        return Ok(());
                    };
                    listener.leave_call(thread)?;
                    next = link_of(&family.sibling, left);
                }
            }
        }
    }
}

/// Every node's first child and next sibling, in the order of their numbers.
struct FirstChildLinks {
    roots: Option<ForestNodeId>,
    first: Vec<Option<ForestNodeId>>,
    sibling: Vec<Option<ForestNodeId>>,
}

impl FirstChildLinks {
    fn new<C>(forest: &LabelForest<C>) -> Self {
        let mut family = FirstChildLinks {
            roots: None,
            first: vec![None; forest.len()],
            sibling: vec![None; forest.len()],
        };
        for node in forest.nodes().rev() {
            let head = match forest.parent(node) {
                None => Some(&mut family.roots),
                Some(parent) => family.first.get_mut(parent.as_index()),
            };
            let before = head.and_then(|head| head.replace(node));
            if let Some(sibling) = family.sibling.get_mut(node.as_index()) {
                *sibling = before;
            }
        }
        family
    }
}

fn link_of(list: &[Option<ForestNodeId>], node: ForestNodeId) -> Option<ForestNodeId> {
    list.get(node.as_index()).copied().flatten()
}
