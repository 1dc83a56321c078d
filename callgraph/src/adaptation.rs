//! When the graph is numbered anew, and from what (the policy `adaptive`, after DACCE).
//!
//! Every interned context is a call that no range had room for. When many were interned since the
//! numbers were decided last, all known edges are numbered anew, those that were learned most often
//! first, and a fresh base version gets these numbers. How many are "many" doubles each time, so the
//! number of renumberings grows with the logarithm of that of contexts.

use std::time::Duration;

use crate::numbering::{FastMap, Known, Numbering, Rules};
use crate::{Edge, Layout, Policy};

/// What is known of calls, and the counts since the last renumbering.
#[derive(Default)]
pub(crate) struct Adaptation {
    known: Vec<Known>,
    index: FastMap<Edge, usize>,
    interned: u64,
    /// Renumber after so many; 0: never.
    after: u64,
    pub(crate) done: u64,
    pub(crate) took: Duration,
}

impl Adaptation {
    pub(crate) fn new(policy: &Policy) -> Adaptation {
        Adaptation {
            after: policy.adapt_after,
            ..Adaptation::default()
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.after > 0
    }

    /// A call was learned.
    pub(crate) fn met(&mut self, edge: Edge) {
        if !self.is_on() {
            return;
        }
        let at = *self.index.entry(edge).or_insert(self.known.len());
        match self.known.get_mut(at) {
            Some(known) => known.weight += 1,
            None => self.known.push(Known { edge, weight: 1 }),
        }
    }

    /// A context was interned: whether it is time.
    pub(crate) fn interned(&mut self) -> bool {
        self.interned += 1;
        self.is_on() && self.interned >= self.after
    }

    pub(crate) fn numbering(&self, layout: Layout, policy: &Policy) -> Numbering {
        Numbering::of(&self.known, &Rules::with_room(layout, policy))
    }

    pub(crate) fn adapted(&mut self, took: Duration) {
        self.interned = 0;
        self.after = self.after.saturating_mul(2);
        self.done += 1;
        self.took += took;
    }

    /// There are no versions left.
    pub(crate) fn give_up(&mut self) {
        *self = Adaptation {
            done: self.done,
            took: self.took,
            ..Adaptation::default()
        };
    }

    pub(crate) fn memory(&self) -> usize {
        self.known.len() * (size_of::<Known>() + size_of::<(Edge, usize)>())
    }
}
