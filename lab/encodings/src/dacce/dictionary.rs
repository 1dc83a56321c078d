//! The data that decodes ids of one timestamp: `En(e)`, `numCC(n)` and `maxID`.

use std::collections::HashMap;

use super::dynamic_graph::DynamicCallGraph;
use lucce_callgraph::numbering::{AcyclicNumbering, FastMap, NumberingRules, SubPathStarts};
use lucce_callgraph::{CallEdge, MethodId, SiteId};

/// A call site with more targets than this uses a hash table.
const COMPARED: usize = 8;
/// The largest hash table of a call site.
const MAX_PLACES: usize = 1 << 12;

/// See the module's description. The default is the dictionary of an empty graph.
#[derive(Default)]
pub struct DacceDictionary {
    numbering: AcyclicNumbering,
    max_id: u64,
    hashed_sites: usize,
}

impl DacceDictionary {
    /// Numbers all known edges except the recursive ones, hottest first.
    pub fn from_graph(graph: &DynamicCallGraph, bits: u32) -> DacceDictionary {
        let rules = NumberingRules {
            hot_first: true,
            // Ids of sub-paths that begin elsewhere are above maxID.
            sub_path_starts: SubPathStarts::Entries,
            ..NumberingRules::for_exact_ids(bits)
        };
        let mut edges = graph.weighted_edges().to_vec();
        let hashed = hash_targets(&mut edges);
        let numbering = AcyclicNumbering::from_edges(&edges, &rules);
        DacceDictionary {
            max_id: numbering.max_id(),
            numbering,
            hashed_sites: hashed,
        }
    }

    pub fn max_id(&self) -> u64 {
        self.max_id
    }

    pub fn addition_value(&self, edge: CallEdge) -> Option<u64> {
        self.numbering.addition_value(edge)
    }

    pub fn find_caller(&self, method: MethodId, id: u64) -> Option<(CallEdge, u64)> {
        self.numbering.find_caller(method, id)
    }

    /// Whether id 0 of a path from a thread's entry means that the path begins here.
    pub fn is_entry(&self, method: MethodId) -> bool {
        self.numbering.starts_sub_path(method)
    }

    pub fn is_back(&self, edge: CallEdge) -> bool {
        self.numbering.back_edges.contains(&edge)
    }

    /// Whether no other caller has a smaller addition value.
    pub fn is_first(&self, edge: CallEdge) -> bool {
        let node = self.numbering.nodes.get(&edge.callee);
        let first = node.and_then(|node| node.incoming.first());
        first.is_some_and(|(_, first)| *first == edge)
    }

    pub fn back_edge_count(&self) -> usize {
        self.numbering.back_edges.len()
    }

    /// Returns the number of call sites that use a hash table.
    pub fn hashed_site_count(&self) -> usize {
        self.hashed_sites
    }

    pub fn memory_bytes(&self) -> usize {
        self.numbering.memory_bytes()
    }
}

/// Removes targets whose place in the call site's table is taken. Returns the number of sites with a table.
fn hash_targets(edges: &mut Vec<lucce_callgraph::numbering::WeightedEdge>) -> usize {
    let mut sites: FastMap<SiteId, Vec<MethodId>> = FastMap::default();
    for weighted in edges.iter().filter(|weighted| !weighted.edge.is_entry()) {
        sites
            .entry(weighted.edge.site)
            .or_default()
            .push(weighted.edge.callee);
    }
    sites.retain(|_, targets| targets.len() > COMPARED);
    let tables: FastMap<SiteId, HashMap<usize, MethodId>> = sites
        .iter()
        .map(|(site, targets)| (*site, build_table(targets)))
        .collect();
    edges.retain(|weighted| {
        let table = tables
            .get(&weighted.edge.site)
            .filter(|_| !weighted.edge.is_entry());
        table.is_none_or(|table| table.values().any(|target| *target == weighted.edge.callee))
    });
    tables.len()
}

/// Returns the smallest table without collisions, or the largest allowed table.
fn build_table(targets: &[MethodId]) -> HashMap<usize, MethodId> {
    let mut places = (targets.len() * 2).next_power_of_two();
    loop {
        let mut table = HashMap::new();
        for target in targets {
            table.entry(table_index(*target, places)).or_insert(*target);
        }
        if table.len() == targets.len() || places >= MAX_PLACES {
            return table;
        }
        places *= 2;
    }
}

fn table_index(target: MethodId, places: usize) -> usize {
    (u64::from(target.0).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize & (places - 1)
}
