//! A forest as calls.

use crate::error::Error;
use crate::forest::Forest;
use crate::ids::{NodeId, Thread};
use crate::listener::Listener;

impl<C> Forest<C> {
    /// Tells a listener each node as one call that counts what the node does, depth first.
    ///
    /// # Errors
    /// The listener's own.
    pub fn walk(&self, listener: &mut impl Listener) -> Result<(), Error> {
        let thread = Thread(0);
        let family = Family::new(self);
        let mut next = family.roots;
        let mut entered: Vec<NodeId> = Vec::new();
        loop {
            match next {
                Some(node) => {
                    listener.enter(thread, self.label(node).into())?;
                    if self.count(node) > 0 {
                        listener.count(thread, self.count(node))?;
                    }
                    entered.push(node);
                    next = at(&family.first, node);
                }
                None => {
                    let Some(left) = entered.pop() else {
                        return Ok(());
                    };
                    listener.leave(thread)?;
                    next = at(&family.sibling, left);
                }
            }
        }
    }
}

/// Every node's first child and next sibling, in the order of their numbers.
struct Family {
    roots: Option<NodeId>,
    first: Vec<Option<NodeId>>,
    sibling: Vec<Option<NodeId>>,
}

impl Family {
    fn new<C>(forest: &Forest<C>) -> Self {
        let mut family = Family {
            roots: None,
            first: vec![None; forest.len()],
            sibling: vec![None; forest.len()],
        };
        for node in forest.nodes().rev() {
            let head = match forest.parent(node) {
                None => Some(&mut family.roots),
                Some(parent) => family.first.get_mut(parent.at()),
            };
            let before = head.and_then(|head| head.replace(node));
            if let Some(sibling) = family.sibling.get_mut(node.at()) {
                *sibling = before;
            }
        }
        family
    }
}

fn at(list: &[Option<NodeId>], node: NodeId) -> Option<NodeId> {
    list.get(node.at()).copied().flatten()
}
