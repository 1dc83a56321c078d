//! Decides when the graph is renumbered, and from which edges (the policy `adaptive`, after DACCE).
//!
//! Every interned context is a call for which no range had room. When many contexts were interned since the last
//! numbering, all known edges are renumbered, the most frequently learned edges first. A fresh base version gets these
//! numbers. The threshold doubles each time, so the number of renumberings grows with the logarithm of the number
//! of contexts.

use std::time::Duration;

use crate::numbering::{AcyclicNumbering, FastMap, NumberingRules, WeightedEdge};
use crate::{CallEdge, ContextLayout, EncodingPolicy};

/// The known edges, and the counts since the last renumbering.
#[derive(Default)]
pub(crate) struct AdaptiveReEncoding {
    edges: Vec<WeightedEdge>,
    index: FastMap<CallEdge, usize>,
    interned: u64,
    /// Renumber after this many interned contexts; 0: never.
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

    /// Counts a learned call.
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

    /// Counts an interned context. Returns whether to renumber.
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

    /// Stops renumbering, because no versions are left.
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
