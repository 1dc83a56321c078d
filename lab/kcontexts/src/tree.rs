//! The calling context tree (Sections 1 and 3): one node for each distinct stack.

use crate::children::{Children, Hashed};
use crate::error::Error;
use crate::forest::Forest;
use crate::ids::{Callee, Label, NodeId, Thread};
use crate::inverse::ContextForest;
use crate::listener::Listener;
use crate::stacks::Stacks;

/// The CCT; threads with different first routines give trees of their own.
#[derive(Default)]
pub struct CallingContextTree<C = Hashed> {
    forest: Forest<C>,
    stacks: Stacks<NodeId>,
}

impl<C: Children> CallingContextTree<C> {
    #[must_use]
    pub fn new() -> Self {
        CallingContextTree {
            forest: Forest::default(),
            stacks: Stacks::default(),
        }
    }
}

impl<C> CallingContextTree<C> {
    /// Its nodes; counters are those of full contexts.
    #[must_use]
    pub fn forest(&self) -> &Forest<C> {
        &self.forest
    }

    /// k-CCF = inv_k(CCT) (Property 1). Time O(k n).
    ///
    /// # Errors
    /// The forest is too large.
    pub fn inverse(&self, k: u32) -> Result<ContextForest, Error> {
        ContextForest::new(&self.forest, k, |node| self.forest.count(node))
    }

    /// Only the trees of the wanted labels.
    ///
    /// # Errors
    /// The forest is too large.
    pub fn inverse_of(
        &self,
        k: u32,
        wanted: impl Fn(Label) -> bool,
    ) -> Result<ContextForest, Error> {
        ContextForest::of(&self.forest, k, |node| self.forest.count(node), wanted)
    }
}

impl<C: Children> Listener for CallingContextTree<C> {
    fn enter(&mut self, thread: Thread, callee: Callee) -> Result<(), Error> {
        let stack = self.stacks.of(thread);
        let node = match stack.last() {
            None => self.forest.root(callee.label),
            Some(&top) => self.forest.child(top, callee),
        }?;
        stack.push(node);
        Ok(())
    }

    fn count(&mut self, thread: Thread, weight: u64) -> Result<(), Error> {
        let top = self.stacks.of(thread).last();
        self.forest
            .add(*top.ok_or(Error::NothingEntered(thread))?, weight);
        Ok(())
    }

    fn leave(&mut self, thread: Thread) -> Result<(), Error> {
        let left = self.stacks.of(thread).pop();
        left.map(drop).ok_or(Error::NothingToLeave(thread))
    }
}
