//! The call graph as far as it was seen, and how often its edges were met in collected contexts.

use crate::encodings::Known;
use crate::numbering::FastMap;
use crate::{Edge, MethodId, SiteId};

/// Edges in the order in which they were seen first.
#[derive(Default)]
pub struct Graph {
    known: Vec<Known>,
    index: FastMap<Edge, usize>,
    /// The function that a call site lies in.
    callers: FastMap<SiteId, MethodId>,
    /// The hottest call of each method.
    hottest: FastMap<MethodId, (Edge, u64)>,
    entries: usize,
}

impl Graph {
    /// Whether the edge is new.
    pub fn meet(&mut self, edge: Edge) -> bool {
        if self.index.contains_key(&edge) {
            return false;
        }
        self.index.insert(edge, self.known.len());
        self.known.push(Known { edge, weight: 0 });
        self.hottest.entry(edge.callee).or_insert((edge, 0));
        self.entries += usize::from(edge.is_entry());
        if !edge.is_entry() {
            self.callers.insert(edge.site, edge.caller);
        }
        true
    }

    /// A collected context goes through the edge.
    pub fn warm(&mut self, edge: Edge) {
        let known = self.index.get(&edge).and_then(|at| self.known.get_mut(*at));
        let Some(known) = known else { return };
        known.weight += 1;
        let hottest = self.hottest.entry(edge.callee).or_insert((edge, 0));
        if known.weight > hottest.1 || hottest.0 == edge {
            *hottest = (edge, known.weight);
        }
    }

    pub fn is_hottest(&self, edge: Edge) -> bool {
        let hottest = self.hottest.get(&edge.callee);
        hottest.is_some_and(|(hottest, _)| *hottest == edge)
    }

    pub fn known(&self) -> &[Known] {
        &self.known
    }

    pub fn caller(&self, site: SiteId) -> Option<MethodId> {
        self.callers.get(&site).copied()
    }

    pub fn nodes(&self) -> usize {
        self.hottest.len()
    }

    pub fn edges(&self) -> usize {
        self.known.len() - self.entries
    }

    pub fn memory(&self) -> usize {
        self.known.len() * (size_of::<Known>() + size_of::<(Edge, usize)>())
            + self.callers.len() * size_of::<(SiteId, MethodId)>()
            + self.hottest.len() * size_of::<(MethodId, Edge, u64)>()
    }
}
