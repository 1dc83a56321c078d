//! Finds the hot routines of a run, and the paths of at most k calls that lead to them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use lucce_callfeed::CallLabels;
use lucce_decoder::{CodeSymbols, SiteId};
use lucce_kcontexts::{
    CallLabel, CallingContextTree, ForestNodeId, KContextError, LabelForest, count_hottest,
};

/// The calls of a run, by call site.
#[derive(Default)]
pub struct SiteCalls {
    pub labels: CallLabels,
    pub tree: CallingContextTree,
}

/// Hot routines and their counts, hottest first.
pub struct HotRoutines {
    pub routines: Vec<(CallLabel, u64)>,
    /// Number of all routines.
    pub routine_count: usize,
    pub total: u64,
}

impl HotRoutines {
    /// Selects the fewest routines that make `percent` of the total.
    pub fn new(calls: &SiteCalls, percent: u32) -> HotRoutines {
        let forest = calls.tree.forest();
        let mut sums: BTreeMap<CallLabel, u64> = BTreeMap::new();
        for node in forest.nodes().filter(|node| forest.count(*node) > 0) {
            let routine = calls.routine_of(forest.label(node));
            let sum = sums.entry(routine).or_default();
            *sum = sum.saturating_add(forest.count(node));
        }
        let total = sums.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let number = count_hottest(sums.values().copied().collect(), percent) as usize;
        let of = sums.len();
        let mut routines: Vec<(CallLabel, u64)> = sums.into_iter().collect();
        routines.sort_by_key(|(routine, count)| (Reverse(*count), *routine));
        routines.truncate(number);
        HotRoutines {
            routines,
            routine_count: of,
            total,
        }
    }
}

impl SiteCalls {
    fn routine_of(&self, call: CallLabel) -> CallLabel {
        self.labels
            .find_call(call)
            .map_or(call, |call| call.routine)
    }
}

/// A k-calling context forest with names: for each routine, a tree of its callers.
pub struct NamedForest {
    pub forest: LabelForest,
    names: Vec<String>,
}

/// The meaning of a node's label.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum PathNode {
    Routine(CallLabel),
    /// A caller and the site that it calls from.
    Caller(CallLabel, SiteId),
}

impl NamedForest {
    /// Builds the forest of these routines. `lines`: callers differ by call site.
    pub fn new(
        calls: &SiteCalls,
        routines: &[(CallLabel, u64)],
        (k, lines): (u32, bool),
        code: &CodeSymbols,
    ) -> Result<NamedForest, KContextError> {
        let wanted: HashSet<CallLabel> = routines.iter().map(|(routine, _)| *routine).collect();
        let wanted = |call| wanted.contains(&calls.routine_of(call));
        let inverse = calls.tree.inverse_of(k, wanted)?;
        let by_call = inverse.forest();
        let mut numbers: HashMap<PathNode, CallLabel> = HashMap::new();
        let mut names = Vec::new();
        let forest = by_call.relabel_nodes(|node| {
            let node = calls.path_node(by_call, node, lines);
            let next = CallLabel(names.len() as u32);
            *numbers.entry(node).or_insert_with(|| {
                names.push(calls.path_node_name(code, node));
                next
            })
        })?;
        Ok(NamedForest { forest, names })
    }

    /// Keeps only paths with at least `percent` of their routine.
    pub fn retain_similar(self, percent: u32) -> Result<NamedForest, KContextError> {
        let forest = self.forest.prune_similar(percent)?;
        let names = self.names;
        Ok(NamedForest { forest, names })
    }

    pub fn node_name(&self, node: ForestNodeId) -> &str {
        let name = self.names.get(self.forest.label(node).0 as usize);
        name.map_or("?", String::as_str)
    }
}

impl SiteCalls {
    fn path_node(&self, by_call: &LabelForest, node: ForestNodeId, lines: bool) -> PathNode {
        let routine = self.routine_of(by_call.label(node));
        let callee = by_call.parent(node).filter(|_| lines);
        let callee = callee.and_then(|callee| self.labels.find_call(by_call.label(callee)));
        match callee {
            None => PathNode::Routine(routine),
            Some(callee) => PathNode::Caller(routine, callee.site),
        }
    }

    fn path_node_name(&self, code: &CodeSymbols, node: PathNode) -> String {
        match node {
            PathNode::Routine(routine) => self.labels.routine_name(code, routine),
            PathNode::Caller(routine, site) => self.labels.frame_name(code, routine, site),
        }
    }
}
