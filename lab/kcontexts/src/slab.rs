//! The k-slab forest, built while the program runs (Section 5.2, Figure 7).
//!
//! Routines at stack depths 0, k, 2k, … each begin a tree; trees of the same first routine are
//! joined. A tree spans two slabs of k levels, its top and its bottom region, so each path of at
//! most k calls lies whole in some tree.
//!
//! ```text
//! depth 0      k      2k     3k
//!       ├─top──┼─bot──┤             tree of the routine at depth 0
//!              ├─top──┼─bot──┤      tree of the routine at depth k: t, and b in the one before
//! ```
//! A call takes at most two look-ups, two new nodes and one push, whatever k and the depth.

use crate::children::{ForestChildren, HashedChildren};
use crate::error::KContextError;
use crate::forest::LabelForest;
use crate::ids::{ForestNodeId, LabeledCallee, TraceThreadId};
use crate::inverse::ContextForest;
use crate::listener::CallListener;
use crate::stacks::ThreadStacks;

/// The k-SF.
pub struct SlabForest<C = HashedChildren> {
    k: u32,
    forest: LabelForest<C>,
    /// What top regions counted while no bottom region did: in slab 0.
    outermost: Vec<u64>,
    stacks: ThreadStacks<SlabLocations>,
}

/// `⟨t, b⟩` of Figure 7.
#[derive(Clone, Copy)]
struct SlabLocations {
    top: ForestNodeId,
    bottom: Option<ForestNodeId>,
}

impl<C: ForestChildren> SlabForest<C> {
    /// `k`: height of a slab in calls, at least 1; beyond the depth of the CCT this is the CCT.
    ///
    /// # Errors
    /// `k` is 0.
    pub fn new(k: u32) -> Result<Self, KContextError> {
        match k {
            0 => Err(KContextError::Height),
            _ => Ok(SlabForest {
                k,
                forest: LabelForest::default(),
                outermost: Vec::new(),
                stacks: ThreadStacks::default(),
            }),
        }
    }

    /// The k-SF of a CCT (Definition 7), as if each of its nodes were entered once.
    ///
    /// # Errors
    /// `k` is 0; the forest is too large.
    pub fn from_tree<D>(k: u32, tree: &LabelForest<D>) -> Result<Self, KContextError> {
        let mut slabs = Self::new(k)?;
        let mut all: Vec<SlabLocations> = Vec::with_capacity(tree.len());
        // Parents come first.
        for node in tree.nodes() {
            let parent = tree.parent(node);
            let parent = parent.and_then(|parent| all.get(parent.as_index()).copied());
            let at = slabs.find_locations(parent, tree.level(node), tree.label(node).into())?;
            slabs.count_at(at, tree.count(node));
            all.push(at);
        }
        Ok(slabs)
    }

    /// `call(x)` without its counters: from the caller's locations to the callee's, which is `depth`
    /// calls from the thread's first.
    fn find_locations(
        &mut self,
        from: Option<SlabLocations>,
        depth: u32,
        x: LabeledCallee,
    ) -> Result<SlabLocations, KContextError> {
        let Some(SlabLocations { top, bottom }) = from else {
            let top = self.forest.find_or_add_root(x.label)?;
            return Ok(SlabLocations { top, bottom: None });
        };
        let (top, above) = match depth.is_multiple_of(self.k) {
            true => (self.forest.find_or_add_root(x.label)?, Some(top)),
            false => (self.forest.find_or_add_child(top, x)?, bottom),
        };
        let bottom = above
            .map(|above| self.forest.find_or_add_child(above, x))
            .transpose()?;
        Ok(SlabLocations { top, bottom })
    }
}

impl<C> SlabForest<C> {
    /// Its nodes; counters are those of Figure 7: the same activation counts in two regions.
    #[must_use]
    pub fn forest(&self) -> &LabelForest<C> {
        &self.forest
    }

    /// k-CCF = inv_k(k-SF) (Property 2), for any length up to the slabs' height. Time O(k n).
    ///
    /// Top regions' counters are left out except for what slab 0 counted. (The paper clears those
    /// of all trees but the root's, which counts twice where the root function recurs.)
    ///
    /// # Errors
    /// `k` is larger than the slabs' height; the forest is too large.
    pub fn inverse(&self, k: u32) -> Result<ContextForest, KContextError> {
        if k > self.k {
            return Err(KContextError::Height);
        }
        ContextForest::new(&self.forest, k, |node| self.outermost_count(node))
    }

    /// What is counted here and nowhere else.
    fn outermost_count(&self, node: ForestNodeId) -> u64 {
        match self.forest.level(node) < self.k {
            true => self.outermost.get(node.as_index()).copied().unwrap_or(0),
            false => self.forest.count(node),
        }
    }

    /// Lines 16 and 24.
    fn count_at(&mut self, SlabLocations { top, bottom }: SlabLocations, weight: u64) {
        self.forest.add_weight(top, weight);
        match bottom {
            Some(bottom) => self.forest.add_weight(bottom, weight),
            None => self.count_outermost(top, weight),
        }
    }

    fn count_outermost(&mut self, node: ForestNodeId, weight: u64) {
        if self.outermost.len() <= node.as_index() {
            self.outermost.resize(self.forest.len(), 0);
        }
        if let Some(count) = self.outermost.get_mut(node.as_index()) {
            *count = count.saturating_add(weight);
        }
    }
}

impl<C: ForestChildren> CallListener for SlabForest<C> {
    fn enter_call(
        &mut self,
        thread: TraceThreadId,
        callee: LabeledCallee,
    ) -> Result<(), KContextError> {
        let stack = self.stacks.stack_mut(thread);
        let depth = u32::try_from(stack.len()).map_err(|_| KContextError::TooManyNodes)?;
        let caller = stack.last().copied();
        let at = self.find_locations(caller, depth, callee)?;
        self.stacks.stack_mut(thread).push(at);
        Ok(())
    }

    fn add_count(&mut self, thread: TraceThreadId, weight: u64) -> Result<(), KContextError> {
        let top = self.stacks.stack_mut(thread).last().copied();
        self.count_at(top.ok_or(KContextError::NothingEntered(thread))?, weight);
        Ok(())
    }

    fn leave_call(&mut self, thread: TraceThreadId) -> Result<(), KContextError> {
        let left = self.stacks.stack_mut(thread).pop();
        left.map(drop).ok_or(KContextError::NothingToLeave(thread))
    }
}
