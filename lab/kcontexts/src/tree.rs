//! The calling context tree (Sections 1 and 3): one node for each distinct stack.

use crate::children::{ForestChildren, HashedChildren};
use crate::error::KContextError;
use crate::forest::LabelForest;
use crate::ids::{CallLabel, ForestNodeId, LabeledCallee, TraceThreadId};
use crate::inverse::ContextForest;
use crate::listener::CallListener;
use crate::stacks::ThreadStacks;

/// The CCT; threads with different first routines give trees of their own.
#[derive(Default)]
pub struct CallingContextTree<C = HashedChildren> {
    forest: LabelForest<C>,
    stacks: ThreadStacks<ForestNodeId>,
}

impl<C: ForestChildren> CallingContextTree<C> {
    #[must_use]
    pub fn new() -> Self {
        CallingContextTree {
            forest: LabelForest::default(),
            stacks: ThreadStacks::default(),
        }
    }
}

impl<C> CallingContextTree<C> {
    /// Its nodes; counters are those of full contexts.
    #[must_use]
    pub fn forest(&self) -> &LabelForest<C> {
        &self.forest
    }

    /// k-CCF = inv_k(CCT) (Property 1). Time O(k n).
    ///
    /// # Errors
    /// The forest is too large.
    pub fn inverse(&self, k: u32) -> Result<ContextForest, KContextError> {
        ContextForest::new(&self.forest, k, |node| self.forest.count(node))
    }

    /// Only the trees of the wanted labels.
    ///
    /// # Errors
    /// The forest is too large.
    pub fn inverse_of(
        &self,
        k: u32,
        wanted: impl Fn(CallLabel) -> bool,
    ) -> Result<ContextForest, KContextError> {
        ContextForest::from_subtree(&self.forest, k, |node| self.forest.count(node), wanted)
    }
}

impl<C: ForestChildren> CallListener for CallingContextTree<C> {
    fn enter_call(
        &mut self,
        thread: TraceThreadId,
        callee: LabeledCallee,
    ) -> Result<(), KContextError> {
        let stack = self.stacks.stack_mut(thread);
        let node = match stack.last() {
            None => self.forest.find_or_add_root(callee.label),
            Some(&top) => self.forest.find_or_add_child(top, callee),
        }?;
        stack.push(node);
        Ok(())
    }

    fn add_count(&mut self, thread: TraceThreadId, weight: u64) -> Result<(), KContextError> {
        let top = self.stacks.stack_mut(thread).last();
        self.forest
            .add_weight(*top.ok_or(KContextError::NothingEntered(thread))?, weight);
        Ok(())
    }

    fn leave_call(&mut self, thread: TraceThreadId) -> Result<(), KContextError> {
        let left = self.stacks.stack_mut(thread).pop();
        left.map(drop).ok_or(KContextError::NothingToLeave(thread))
    }
}
