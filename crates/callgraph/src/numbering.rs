//! Numbers all contexts of an acyclic graph (PCCE, Algorithm 1), made from a graph that may have cycles and too many
//! contexts.
//!
//! A depth-first walk from the thread entries finds the back edges; the rest is acyclic. In topological order, each
//! node gets `[0, numCC)`:
//!
//! ```text
//! [ begin | caller 1 | caller 2 | … | slack ]
//!   1 wide, if sub-paths may begin here     each as wide as the caller's numCC
//! ```
//!
//! If the sum would exceed the limit, the coldest callers are left out (PCCE, Section 7, "selective reduction"), and
//! sub-paths begin here instead.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::{CallEdge, ContextLayout, EncodingPolicy, MethodId};

/// An edge with the number of its calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WeightedEdge {
    pub edge: CallEdge,
    pub weight: u64,
}

/// The options of a numbering.
#[derive(Clone, Copy, Debug)]
pub struct NumberingRules {
    /// Orders callers by weight, so that the hottest caller adds least. Else callers stay in the order of the edges.
    pub hot_first: bool,
    /// Where a number is reserved for sub-paths that begin there.
    pub sub_path_starts: SubPathStarts,
    /// The largest number of contexts of a node.
    pub limit: u64,
    /// The limit of EVENT: no callee needs its range.
    pub event_limit: u64,
    /// Every node gets this percentage more than it needs.
    pub growth_percent: u32,
    /// And this many numbers more.
    pub slack: u64,
}

/// The nodes in which number 0 means "the sub-path begins here".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubPathStarts {
    /// Only at threads' entries.
    Entries,
    /// Also at the targets of back edges and of edges that were left out.
    WhereNeeded,
    Anywhere,
}

impl NumberingRules {
    /// The rules of PCCE's paper, for ids of `bits` bits.
    #[must_use]
    pub fn for_exact_ids(bits: u32) -> NumberingRules {
        let limit = 1u64.checked_shl(bits).unwrap_or(u64::MAX);
        NumberingRules {
            hot_first: false,
            sub_path_starts: SubPathStarts::WhereNeeded,
            limit,
            event_limit: limit,
            growth_percent: 0,
            slack: 0,
        }
    }

    /// The rules for a base version of the versioned graph.
    #[must_use]
    pub fn for_base_version(layout: ContextLayout, policy: &EncodingPolicy) -> NumberingRules {
        let limit = 1u64.checked_shl(policy.plan_bits).unwrap_or(u64::MAX);
        NumberingRules {
            hot_first: true,
            sub_path_starts: SubPathStarts::Anywhere,
            limit: limit.min(layout.call_id_count()),
            event_limit: layout.call_id_count(),
            growth_percent: 0,
            slack: 0,
        }
    }

    /// Rules that leave room for unknown callers.
    pub(crate) fn with_room(layout: ContextLayout, policy: &EncodingPolicy) -> NumberingRules {
        NumberingRules {
            growth_percent: policy.growth_percent,
            slack: policy.slack,
            ..Self::for_base_version(layout, policy)
        }
    }
}

/// A node's numbers and their owners.
#[derive(Clone, Debug, Default)]
pub struct NodeNumbering {
    /// Count of all numbers of the node, slack included.
    pub count: u64,
    /// The end of the last caller's numbers.
    pub end: u64,
    /// Number 0 means "the sub-path begins here".
    pub starts_sub_path: bool,
    /// Addition values and their edges, ascending.
    pub incoming: Vec<(u64, CallEdge)>,
}

/// The result: the addition value of each edge.
#[derive(Clone, Debug, Default)]
pub struct AcyclicNumbering {
    pub additions: FastMap<CallEdge, u64>,
    pub nodes: FastMap<MethodId, NodeNumbering>,
    /// Edges that close a cycle.
    pub back_edges: HashSet<CallEdge>,
    /// Edges that were left out because a node had too many contexts.
    pub reduced_edges: HashSet<CallEdge>,
}

impl AcyclicNumbering {
    /// Numbers the contexts of a graph that consists of these edges.
    #[must_use]
    pub fn from_edges(edges: &[WeightedEdge], rules: &NumberingRules) -> AcyclicNumbering {
        let graph = AcyclicGraph::from_edges(edges, rules.hot_first);
        let mut numbering = AcyclicNumbering {
            back_edges: graph.back_edges.clone(),
            ..AcyclicNumbering::default()
        };
        for method in &graph.order {
            numbering.number_method(*method, &graph, rules);
        }
        numbering
    }

    /// Returns what `edge` adds; none: it was not numbered.
    #[must_use]
    pub fn addition_value(&self, edge: CallEdge) -> Option<u64> {
        self.additions.get(&edge).copied()
    }

    /// Returns how many contexts a method has; an unknown method has one, which begins there.
    #[must_use]
    pub fn context_count(&self, method: MethodId) -> u64 {
        self.nodes.get(&method).map_or(1, |node| node.count)
    }

    /// Returns the largest number that a context can have.
    #[must_use]
    pub fn max_id(&self) -> u64 {
        let counts = self.nodes.values().map(|node| node.count);
        counts.max().unwrap_or(1).saturating_sub(1)
    }

    /// Whether a sub-path that ends at `method` with number 0 begins there.
    #[must_use]
    pub fn starts_sub_path(&self, method: MethodId) -> bool {
        self.nodes
            .get(&method)
            .is_none_or(|node| node.starts_sub_path)
    }

    /// PCCE's Algorithm 2, one step: returns the edge whose range holds `id`, and the caller's number.
    #[must_use]
    pub fn find_caller(&self, method: MethodId, id: u64) -> Option<(CallEdge, u64)> {
        let incoming = &self.nodes.get(&method)?.incoming;
        let behind = incoming.partition_point(|(addition, _)| *addition <= id);
        let (addition, edge) = *incoming.get(behind.checked_sub(1)?)?;
        let rest = id - addition;
        (rest < self.context_count(edge.caller)).then_some((edge, rest))
    }

    /// Returns an estimate in bytes of the parts that grow.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let node = size_of::<(MethodId, NodeNumbering)>();
        let edge = 2 * size_of::<(CallEdge, u64)>();
        let left_out = self.back_edges.len() + self.reduced_edges.len();
        self.nodes.len() * node + self.additions.len() * edge + left_out * size_of::<CallEdge>()
    }

    /// Numbers a method; its callers were numbered before.
    fn number_method(&mut self, method: MethodId, graph: &AcyclicGraph, rules: &NumberingRules) {
        let incoming = graph.incoming_edges(method);
        let limit = match method {
            MethodId::EVENT => rules.event_limit,
            _ => rules.limit,
        };
        let may_begin = match rules.sub_path_starts {
            SubPathStarts::Entries => graph.entries.contains(&method),
            SubPathStarts::WhereNeeded => {
                graph.entries.contains(&method) || graph.targets.contains(&method)
            }
            SubPathStarts::Anywhere => true,
        };
        let left_out = self.choose_left_out(incoming, limit, may_begin);
        let begins = may_begin
            || rules.sub_path_starts == SubPathStarts::WhereNeeded && !left_out.is_empty();
        let mut node = NodeNumbering {
            end: u64::from(begins),
            starts_sub_path: begins,
            ..NodeNumbering::default()
        };
        for weighted in incoming
            .iter()
            .filter(|weighted| !left_out.contains(&weighted.edge))
        {
            node.incoming.push((node.end, weighted.edge));
            self.additions.insert(weighted.edge, node.end);
            node.end += self.context_count(weighted.edge.caller);
        }
        node.count = rules.grow_capacity(node.end, limit);
        self.reduced_edges.extend(left_out);
        self.nodes.insert(method, node);
    }

    /// Returns the coldest callers that do not fit.
    fn choose_left_out(
        &self,
        incoming: &[WeightedEdge],
        limit: u64,
        begins: bool,
    ) -> HashSet<CallEdge> {
        let count = |weighted: &WeightedEdge| u128::from(self.context_count(weighted.edge.caller));
        let all: u128 = incoming.iter().map(count).sum();
        if all + u128::from(begins) <= u128::from(limit) {
            return HashSet::new();
        }
        let mut hot: Vec<&WeightedEdge> = incoming.iter().collect();
        hot.sort_by_key(|weighted| std::cmp::Reverse(weighted.weight));
        let mut left = u128::from(limit.saturating_sub(1));
        hot.retain(|weighted| match left.checked_sub(count(weighted)) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
        hot.into_iter().map(|weighted| weighted.edge).collect()
    }
}

impl NumberingRules {
    fn grow_capacity(&self, end: u64, limit: u64) -> u64 {
        let grown = u128::from(end) * u128::from(100 + self.growth_percent) / 100;
        let grown = u64::try_from(grown + u128::from(self.slack)).unwrap_or(u64::MAX);
        grown.min(limit).max(end).max(1)
    }
}

/// The graph without its cycles.
struct AcyclicGraph {
    /// Callers before callees.
    order: Vec<MethodId>,
    /// Edges by callee, without back edges and entries.
    incoming: HashMap<MethodId, Vec<WeightedEdge>>,
    back_edges: HashSet<CallEdge>,
    entries: HashSet<MethodId>,
    /// Targets of back edges.
    targets: HashSet<MethodId>,
}

impl AcyclicGraph {
    fn from_edges(edges: &[WeightedEdge], hot_first: bool) -> AcyclicGraph {
        let mut given = edges.to_vec();
        if hot_first {
            given.sort_by_key(|weighted| std::cmp::Reverse(weighted.weight));
        }
        let mut outgoing: HashMap<MethodId, Vec<CallEdge>> = HashMap::new();
        for WeightedEdge { edge, .. } in given.iter().filter(|weighted| !weighted.edge.is_entry()) {
            outgoing.entry(edge.caller).or_default().push(*edge);
        }
        let mut walk = DepthFirstWalk {
            outgoing,
            marks: HashMap::new(),
            done: Vec::new(),
            back_edges: HashSet::new(),
        };
        let entries = given.iter().filter(|weighted| weighted.edge.is_entry());
        let entries: Vec<MethodId> = entries.map(|weighted| weighted.edge.callee).collect();
        entries.iter().for_each(|entry| walk.walk_from(*entry));
        // Methods that no entry reaches: callers known from elsewhere.
        given
            .iter()
            .for_each(|weighted| walk.walk_from(weighted.edge.caller));
        walk.done.reverse();
        let mut graph = AcyclicGraph {
            order: walk.done,
            incoming: HashMap::new(),
            entries: entries.into_iter().collect(),
            targets: HashSet::new(),
            back_edges: walk.back_edges,
        };
        for weighted in given.iter().filter(|weighted| !weighted.edge.is_entry()) {
            if graph.back_edges.contains(&weighted.edge) {
                graph.targets.insert(weighted.edge.callee);
            } else {
                let callers = graph.incoming.entry(weighted.edge.callee);
                callers.or_default().push(*weighted);
            }
        }
        graph
    }

    fn incoming_edges(&self, method: MethodId) -> &[WeightedEdge] {
        self.incoming.get(&method).map_or(&[], Vec::as_slice)
    }
}

/// A depth-first walk without recursion.
struct DepthFirstWalk {
    outgoing: HashMap<MethodId, Vec<CallEdge>>,
    /// `true` while a node's callees are walked.
    marks: HashMap<MethodId, bool>,
    /// Callees before callers.
    done: Vec<MethodId>,
    back_edges: HashSet<CallEdge>,
}

impl DepthFirstWalk {
    fn walk_from(&mut self, start: MethodId) {
        if start == CallEdge::NO_CALLER || self.marks.contains_key(&start) {
            return;
        }
        self.marks.insert(start, true);
        let mut path = vec![(start, 0)];
        while let Some((method, next)) = path.last_mut() {
            let edge = self.outgoing.get(method).and_then(|edges| edges.get(*next));
            let Some(&edge) = edge else {
                self.marks.insert(*method, false);
                self.done.push(*method);
                path.pop();
                continue;
            };
            *next += 1;
            match self.marks.get(&edge.callee) {
                Some(true) => {
                    self.back_edges.insert(edge);
                }
                Some(false) => {}
                None => {
                    self.marks.insert(edge.callee, true);
                    path.push((edge.callee, 0));
                }
            }
        }
    }
}

/// Ids are small numbers: one multiplication spreads them.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// See [`FastMap`].
#[derive(Clone, Copy, Debug, Default)]
pub struct FastHasher(u64);

impl Hasher for FastHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(29) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
