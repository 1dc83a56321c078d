//! When the graph is numbered anew, and from what (the policy `adaptive`, after DACCE).
//!
//! Every interned context is a call that no range had room for. When many were interned since the
//! numbers were decided last, all known edges are numbered anew, those that were learned most often
//! first, and a fresh base version gets these numbers. How many are "many" doubles each time, so the
//! number of renumberings grows with the logarithm of that of contexts.

use std::time::Duration;

use crate::numbering::{AcyclicNumbering, FastMap, NumberingRules, WeightedEdge};
use crate::{CallEdge, ContextLayout, EncodingPolicy};

/// What is known of calls, and the counts since the last renumbering.
#[derive(Default)]
pub(crate) struct AdaptiveReEncoding {
    edges: Vec<WeightedEdge>,
    index: FastMap<CallEdge, usize>,
    interned: u64,
    /// Renumber after so many; 0: never.
    threshold: u64,
    pub(crate) re_encodings: u64,
    pub(crate) duration: Duration,
}

impl AdaptiveReEncoding {
    pub(crate) fn new(policy: &EncodingPolicy) -> AdaptiveReEncoding {
        AdaptiveReEncoding {
            threshold: policy.adapt_after,
            ..AdaptiveReEncoding::default()
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.threshold > 0
    }

    /// A call was learned.
    pub(crate) fn count_edge(&mut self, edge: CallEdge) {
        if !self.is_on() {
            return;
        }
        let at = *self.index.entry(edge).or_insert(self.edges.len());
        match self.edges.get_mut(at) {
            Some(known) => known.weight += 1,
            None => self.edges.push(WeightedEdge { edge, weight: 1 }),
        }
    }

    /// A context was interned: whether it is time.
    pub(crate) fn count_interned(&mut self) -> bool {
        self.interned += 1;
        self.is_on() && self.interned >= self.threshold
    }

    pub(crate) fn build_numbering(
        &self,
        layout: ContextLayout,
        policy: &EncodingPolicy,
    ) -> AcyclicNumbering {
        AcyclicNumbering::from_edges(&self.edges, &NumberingRules::with_room(layout, policy))
    }

    pub(crate) fn finish_re_encoding(&mut self, took: Duration) {
        self.interned = 0;
        self.threshold = self.threshold.saturating_mul(2);
        self.re_encodings += 1;
        self.duration += took;
    }

    /// There are no versions left.
    pub(crate) fn give_up(&mut self) {
        *self = AdaptiveReEncoding {
            re_encodings: self.re_encodings,
            duration: self.duration,
            ..AdaptiveReEncoding::default()
        };
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.edges.len() * (size_of::<WeightedEdge>() + size_of::<(CallEdge, usize)>())
    }
}
