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

use crate::children::{Children, Hashed};
use crate::error::Error;
use crate::forest::Forest;
use crate::ids::{Callee, NodeId, Thread};
use crate::inverse::ContextForest;
use crate::listener::Listener;
use crate::stacks::Stacks;

/// The k-SF.
pub struct SlabForest<C = Hashed> {
    k: u32,
    forest: Forest<C>,
    /// What top regions counted while no bottom region did: in slab 0.
    outermost: Vec<u64>,
    stacks: Stacks<Locations>,
}

/// `⟨t, b⟩` of Figure 7.
#[derive(Clone, Copy)]
struct Locations {
    top: NodeId,
    bottom: Option<NodeId>,
}

impl<C: Children> SlabForest<C> {
    /// `k`: height of a slab in calls, at least 1; beyond the depth of the CCT this is the CCT.
    ///
    /// # Errors
    /// `k` is 0.
    pub fn new(k: u32) -> Result<Self, Error> {
        match k {
            0 => Err(Error::Height),
            _ => Ok(SlabForest {
                k,
                forest: Forest::default(),
                outermost: Vec::new(),
                stacks: Stacks::default(),
            }),
        }
    }

    /// The k-SF of a CCT (Definition 7), as if each of its nodes were entered once.
    ///
    /// # Errors
    /// `k` is 0; the forest is too large.
    pub fn from_tree<D>(k: u32, tree: &Forest<D>) -> Result<Self, Error> {
        let mut slabs = Self::new(k)?;
        let mut all: Vec<Locations> = Vec::with_capacity(tree.len());
        // Parents come first.
        for node in tree.nodes() {
            let parent = tree.parent(node);
            let parent = parent.and_then(|parent| all.get(parent.at()).copied());
            let at = slabs.step(parent, tree.level(node), tree.label(node).into())?;
            slabs.count_at(at, tree.count(node));
            all.push(at);
        }
        Ok(slabs)
    }

    /// `call(x)` without its counters: from the caller's locations to the callee's, which is `depth`
    /// calls from the thread's first.
    fn step(&mut self, from: Option<Locations>, depth: u32, x: Callee) -> Result<Locations, Error> {
        let Some(Locations { top, bottom }) = from else {
            let top = self.forest.root(x.label)?;
            return Ok(Locations { top, bottom: None });
        };
        let (top, above) = match depth.is_multiple_of(self.k) {
            true => (self.forest.root(x.label)?, Some(top)),
            false => (self.forest.child(top, x)?, bottom),
        };
        let bottom = above.map(|above| self.forest.child(above, x)).transpose()?;
        Ok(Locations { top, bottom })
    }
}

impl<C> SlabForest<C> {
    /// Its nodes; counters are those of Figure 7: the same activation counts in two regions.
    #[must_use]
    pub fn forest(&self) -> &Forest<C> {
        &self.forest
    }

    /// k-CCF = inv_k(k-SF) (Property 2), for any length up to the slabs' height. Time O(k n).
    ///
    /// Top regions' counters are left out except for what slab 0 counted. (The paper clears those
    /// of all trees but the root's, which counts twice where the root function recurs.)
    ///
    /// # Errors
    /// `k` is larger than the slabs' height; the forest is too large.
    pub fn inverse(&self, k: u32) -> Result<ContextForest, Error> {
        if k > self.k {
            return Err(Error::Height);
        }
        ContextForest::new(&self.forest, k, |node| self.once(node))
    }

    /// What is counted here and nowhere else.
    fn once(&self, node: NodeId) -> u64 {
        match self.forest.level(node) < self.k {
            true => self.outermost.get(node.at()).copied().unwrap_or(0),
            false => self.forest.count(node),
        }
    }

    /// Lines 16 and 24.
    fn count_at(&mut self, Locations { top, bottom }: Locations, weight: u64) {
        self.forest.add(top, weight);
        match bottom {
            Some(bottom) => self.forest.add(bottom, weight),
            None => self.count_outermost(top, weight),
        }
    }

    fn count_outermost(&mut self, node: NodeId, weight: u64) {
        if self.outermost.len() <= node.at() {
            self.outermost.resize(self.forest.len(), 0);
        }
        if let Some(count) = self.outermost.get_mut(node.at()) {
            *count = count.saturating_add(weight);
        }
    }
}

impl<C: Children> Listener for SlabForest<C> {
    fn enter(&mut self, thread: Thread, callee: Callee) -> Result<(), Error> {
        let stack = self.stacks.of(thread);
        let depth = u32::try_from(stack.len()).map_err(|_| Error::TooManyNodes)?;
        let caller = stack.last().copied();
        let at = self.step(caller, depth, callee)?;
        self.stacks.of(thread).push(at);
        Ok(())
    }

    fn count(&mut self, thread: Thread, weight: u64) -> Result<(), Error> {
        let top = self.stacks.of(thread).last().copied();
        self.count_at(top.ok_or(Error::NothingEntered(thread))?, weight);
        Ok(())
    }

    fn leave(&mut self, thread: Thread) -> Result<(), Error> {
        let left = self.stacks.of(thread).pop();
        left.map(drop).ok_or(Error::NothingToLeave(thread))
    }
}
