//! The hot routines of a run and the paths of at most k calls that lead to them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use lucce_decoder::{Code, Labels, SiteId};
use lucce_kcontexts::{CallingContextTree, Error, Forest, Label, NodeId, hot};

/// A run's calls, by call site.
#[derive(Default)]
pub struct Calls {
    pub labels: Labels,
    pub tree: CallingContextTree,
}

/// Routines and how often, the hottest first.
pub struct Hot {
    pub routines: Vec<(Label, u64)>,
    /// How many there are, cold ones too.
    pub of: usize,
    pub total: u64,
}

impl Hot {
    /// The fewest that make `percent` together.
    pub fn new(calls: &Calls, percent: u32) -> Hot {
        let forest = calls.tree.forest();
        let mut sums: BTreeMap<Label, u64> = BTreeMap::new();
        for node in forest.nodes().filter(|node| forest.count(*node) > 0) {
            let routine = calls.routine(forest.label(node));
            let sum = sums.entry(routine).or_default();
            *sum = sum.saturating_add(forest.count(node));
        }
        let total = sums.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let number = hot(sums.values().copied().collect(), percent) as usize;
        let of = sums.len();
        let mut routines: Vec<(Label, u64)> = sums.into_iter().collect();
        routines.sort_by_key(|(routine, count)| (Reverse(*count), *routine));
        routines.truncate(number);
        Hot {
            routines,
            of,
            total,
        }
    }
}

impl Calls {
    fn routine(&self, call: Label) -> Label {
        self.labels.called(call).map_or(call, |call| call.routine)
    }
}

/// A k-CCF with names: a tree for each routine, of its callers and theirs.
pub struct Paths {
    pub forest: Forest,
    names: Vec<String>,
}

/// What nodes with one label are.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    Routine(Label),
    /// A caller, by the site that it calls from.
    Caller(Label, SiteId),
}

impl Paths {
    /// Of these routines. `lines`: callers are told apart by the site that they call from.
    pub fn new(
        calls: &Calls,
        routines: &[(Label, u64)],
        (k, lines): (u32, bool),
        code: &Code,
    ) -> Result<Paths, Error> {
        let wanted: HashSet<Label> = routines.iter().map(|(routine, _)| *routine).collect();
        let wanted = |call| wanted.contains(&calls.routine(call));
        let inverse = calls.tree.inverse_of(k, wanted)?;
        let by_call = inverse.forest();
        let mut numbers: HashMap<Node, Label> = HashMap::new();
        let mut names = Vec::new();
        let forest = by_call.relabelled(|node| {
            let node = calls.node(by_call, node, lines);
            let next = Label(names.len() as u32);
            *numbers.entry(node).or_insert_with(|| {
                names.push(calls.name(code, node));
                next
            })
        })?;
        Ok(Paths { forest, names })
    }

    /// Of each routine only what makes at least `percent` of it.
    pub fn similar(self, percent: u32) -> Result<Paths, Error> {
        let forest = self.forest.similar(percent)?;
        let names = self.names;
        Ok(Paths { forest, names })
    }

    pub fn name(&self, node: NodeId) -> &str {
        let name = self.names.get(self.forest.label(node).0 as usize);
        name.map_or("?", String::as_str)
    }
}

impl Calls {
    fn node(&self, by_call: &Forest, node: NodeId, lines: bool) -> Node {
        let routine = self.routine(by_call.label(node));
        let callee = by_call.parent(node).filter(|_| lines);
        let callee = callee.and_then(|callee| self.labels.called(by_call.label(callee)));
        match callee {
            None => Node::Routine(routine),
            Some(callee) => Node::Caller(routine, callee.site),
        }
    }

    fn name(&self, code: &Code, node: Node) -> String {
        match node {
            Node::Routine(routine) => self.labels.routine_name(code, routine),
            Node::Caller(routine, site) => self.labels.frame_name(code, routine, site),
        }
    }
}
