//! The call graph seen so far, and how often its edges occurred in sampled contexts.

use lucce_callgraph::numbering::FastMap;
use lucce_callgraph::numbering::WeightedEdge;
use lucce_callgraph::{CallEdge, MethodId, SiteId};

/// Edges in the order of their first call.
#[derive(Default)]
pub struct DynamicCallGraph {
    weighted_edges: Vec<WeightedEdge>,
    index: FastMap<CallEdge, usize>,
    /// The function of a call site.
    callers: FastMap<SiteId, MethodId>,
    /// The hottest call of each method.
    hottest: FastMap<MethodId, (CallEdge, u64)>,
    entries: usize,
}

impl DynamicCallGraph {
    /// Adds an edge. Returns whether it is new.
    pub fn record_edge(&mut self, edge: CallEdge) -> bool {
        if self.index.contains_key(&edge) {
            return false;
        }
        self.index.insert(edge, self.weighted_edges.len());
        self.weighted_edges.push(WeightedEdge { edge, weight: 0 });
        self.hottest.entry(edge.callee).or_insert((edge, 0));
        self.entries += usize::from(edge.is_entry());
        if !edge.is_entry() {
            self.callers.insert(edge.site, edge.caller);
        }
        true
    }

    /// Counts an edge of a sampled context.
    pub fn count_sample(&mut self, edge: CallEdge) {
        let known = self
            .index
            .get(&edge)
            .and_then(|at| self.weighted_edges.get_mut(*at));
        let Some(known) = known else { return };
        known.weight += 1;
        let hottest = self.hottest.entry(edge.callee).or_insert((edge, 0));
        if known.weight > hottest.1 || hottest.0 == edge {
            *hottest = (edge, known.weight);
        }
    }

    pub fn is_hottest(&self, edge: CallEdge) -> bool {
        let hottest = self.hottest.get(&edge.callee);
        hottest.is_some_and(|(hottest, _)| *hottest == edge)
    }

    pub fn weighted_edges(&self) -> &[WeightedEdge] {
        &self.weighted_edges
    }

    pub fn caller_of_site(&self, site: SiteId) -> Option<MethodId> {
        self.callers.get(&site).copied()
    }

    pub fn node_count(&self) -> usize {
        self.hottest.len()
    }

    pub fn edge_count(&self) -> usize {
        self.weighted_edges.len() - self.entries
    }

    pub fn memory_bytes(&self) -> usize {
        self.weighted_edges.len() * (size_of::<WeightedEdge>() + size_of::<(CallEdge, usize)>())
            + self.callers.len() * size_of::<(SiteId, MethodId)>()
            + self.hottest.len() * size_of::<(MethodId, CallEdge, u64)>()
    }
}
