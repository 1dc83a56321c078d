//! Numbers for all contexts of an acyclic graph (PCCE, Algorithm 1), from a graph that may have
//! cycles and too many contexts.
//!
//! A depth-first walk from the thread entries finds the back edges; the rest is acyclic. In
//! topological order, each node then owns `[0, numCC)`:
//!
//! ```text
//! [ begin | caller 1 | caller 2 | … | slack ]
//!   1 wide, if sub-paths may begin here     each as wide as the caller's numCC
//! ```
//!
//! Where the sum would exceed the limit, the coldest callers are left out (PCCE, Section 7,
//! "selective reduction"), and sub-paths begin here instead.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::{Edge, Layout, MethodId, Policy};

/// An edge and how often it was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    pub edge: Edge,
    pub weight: u64,
}

/// What a numbering may choose.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Callers in the order of their weight, so that the hottest adds least. Otherwise in the order
    /// in which edges are given.
    pub hot_first: bool,
    /// Where a number is kept for sub-paths that begin there.
    pub begins: Begins,
    /// No node has more numbers than this.
    pub limit: u64,
    /// EVENT's limit: no callee needs its range.
    pub event_limit: u64,
    /// Every node gets this much more than it needs.
    pub growth_percent: u32,
    /// And this much more.
    pub slack: u64,
}

/// Where number 0 means "the sub-path begins here".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begins {
    /// At threads' entries only.
    Entries,
    /// And where back edges and left-out ones lead to.
    Needed,
    Anywhere,
}

impl Rules {
    /// As PCCE's paper has it, for ids of `bits` bits.
    #[must_use]
    pub fn exact(bits: u32) -> Rules {
        let limit = 1u64.checked_shl(bits).unwrap_or(u64::MAX);
        Rules {
            hot_first: false,
            begins: Begins::Needed,
            limit,
            event_limit: limit,
            growth_percent: 0,
            slack: 0,
        }
    }

    /// For a base version of the versioned graph.
    #[must_use]
    pub fn planned(layout: Layout, policy: &Policy) -> Rules {
        let limit = 1u64.checked_shl(policy.plan_bits).unwrap_or(u64::MAX);
        Rules {
            hot_first: true,
            begins: Begins::Anywhere,
            limit: limit.min(layout.calls()),
            event_limit: layout.calls(),
            growth_percent: 0,
            slack: 0,
        }
    }

    /// Rules that leave room for callers that are not known yet.
    pub(crate) fn with_room(layout: Layout, policy: &Policy) -> Rules {
        Rules {
            growth_percent: policy.growth_percent,
            slack: policy.slack,
            ..Self::planned(layout, policy)
        }
    }
}

/// A node's numbers and who has which.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// Of the whole node, slack included.
    pub count: u64,
    /// Behind the last caller.
    pub end: u64,
    /// Number 0 means "the sub-path begins here".
    pub begins: bool,
    /// Addition values and their edges, ascending.
    pub incoming: Vec<(u64, Edge)>,
}

/// The result: which edges add what.
#[derive(Clone, Debug, Default)]
pub struct Numbering {
    pub additions: FastMap<Edge, u64>,
    pub nodes: FastMap<MethodId, Numbers>,
    /// Edges that close a cycle.
    pub back: HashSet<Edge>,
    /// Edges that were left out because a node had too many contexts.
    pub reduced: HashSet<Edge>,
}

impl Numbering {
    #[must_use]
    pub fn of(edges: &[Known], rules: &Rules) -> Numbering {
        let graph = Shape::of(edges, rules.hot_first);
        let mut numbering = Numbering {
            back: graph.back.clone(),
            ..Numbering::default()
        };
        for method in &graph.order {
            numbering.add(*method, &graph, rules);
        }
        numbering
    }

    /// What `edge` adds; none: it was not numbered.
    #[must_use]
    pub fn addition(&self, edge: Edge) -> Option<u64> {
        self.additions.get(&edge).copied()
    }

    /// How many contexts a method has; one that is not known has the one that begins there.
    #[must_use]
    pub fn count(&self, method: MethodId) -> u64 {
        self.nodes.get(&method).map_or(1, |node| node.count)
    }

    /// The largest number that a context can have.
    #[must_use]
    pub fn max_id(&self) -> u64 {
        let counts = self.nodes.values().map(|node| node.count);
        counts.max().unwrap_or(1).saturating_sub(1)
    }

    /// Whether a sub-path that ends at `method` with number 0 begins there.
    #[must_use]
    pub fn begins(&self, method: MethodId) -> bool {
        self.nodes.get(&method).is_none_or(|node| node.begins)
    }

    /// PCCE's Algorithm 2, one step: the edge whose range holds `id`, and the caller's number.
    #[must_use]
    pub fn caller(&self, method: MethodId, id: u64) -> Option<(Edge, u64)> {
        let incoming = &self.nodes.get(&method)?.incoming;
        let behind = incoming.partition_point(|(addition, _)| *addition <= id);
        let (addition, edge) = *incoming.get(behind.checked_sub(1)?)?;
        let rest = id - addition;
        (rest < self.count(edge.caller)).then_some((edge, rest))
    }

    /// An estimate that counts what grows.
    #[must_use]
    pub fn memory(&self) -> usize {
        let node = size_of::<(MethodId, Numbers)>();
        let edge = 2 * size_of::<(Edge, u64)>();
        let left_out = self.back.len() + self.reduced.len();
        self.nodes.len() * node + self.additions.len() * edge + left_out * size_of::<Edge>()
    }

    /// Callers of `method` were numbered before.
    fn add(&mut self, method: MethodId, graph: &Shape, rules: &Rules) {
        let incoming = graph.incoming(method);
        let limit = match method {
            MethodId::EVENT => rules.event_limit,
            _ => rules.limit,
        };
        let may_begin = match rules.begins {
            Begins::Entries => graph.entries.contains(&method),
            Begins::Needed => graph.entries.contains(&method) || graph.targets.contains(&method),
            Begins::Anywhere => true,
        };
        let left_out = self.left_out(incoming, limit, may_begin);
        let begins = may_begin || rules.begins == Begins::Needed && !left_out.is_empty();
        let mut node = Numbers {
            end: u64::from(begins),
            begins,
            ..Numbers::default()
        };
        for known in incoming
            .iter()
            .filter(|known| !left_out.contains(&known.edge))
        {
            node.incoming.push((node.end, known.edge));
            self.additions.insert(known.edge, node.end);
            node.end += self.count(known.edge.caller);
        }
        node.count = rules.grown(node.end, limit);
        self.reduced.extend(left_out);
        self.nodes.insert(method, node);
    }

    /// The coldest callers that do not fit.
    fn left_out(&self, incoming: &[Known], limit: u64, begins: bool) -> HashSet<Edge> {
        let count = |known: &Known| u128::from(self.count(known.edge.caller));
        let all: u128 = incoming.iter().map(count).sum();
        if all + u128::from(begins) <= u128::from(limit) {
            return HashSet::new();
        }
        let mut hot: Vec<&Known> = incoming.iter().collect();
        hot.sort_by_key(|known| std::cmp::Reverse(known.weight));
        let mut left = u128::from(limit.saturating_sub(1));
        hot.retain(|known| match left.checked_sub(count(known)) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
        hot.into_iter().map(|known| known.edge).collect()
    }
}

impl Rules {
    fn grown(&self, end: u64, limit: u64) -> u64 {
        let grown = u128::from(end) * u128::from(100 + self.growth_percent) / 100;
        let grown = u64::try_from(grown + u128::from(self.slack)).unwrap_or(u64::MAX);
        grown.min(limit).max(end).max(1)
    }
}

/// The graph without its cycles.
struct Shape {
    /// Callers before callees.
    order: Vec<MethodId>,
    /// Without back edges and entries.
    incoming: HashMap<MethodId, Vec<Known>>,
    back: HashSet<Edge>,
    entries: HashSet<MethodId>,
    /// Of back edges.
    targets: HashSet<MethodId>,
}

impl Shape {
    fn of(edges: &[Known], hot_first: bool) -> Shape {
        let mut given = edges.to_vec();
        if hot_first {
            given.sort_by_key(|known| std::cmp::Reverse(known.weight));
        }
        let mut outgoing: HashMap<MethodId, Vec<Edge>> = HashMap::new();
        for Known { edge, .. } in given.iter().filter(|known| !known.edge.is_entry()) {
            outgoing.entry(edge.caller).or_default().push(*edge);
        }
        let mut walk = Walk {
            outgoing,
            marks: HashMap::new(),
            done: Vec::new(),
            back: HashSet::new(),
        };
        let entries = given.iter().filter(|known| known.edge.is_entry());
        let entries: Vec<MethodId> = entries.map(|known| known.edge.callee).collect();
        entries.iter().for_each(|entry| walk.from(*entry));
        // What no entry reaches: callers that are known from elsewhere.
        given.iter().for_each(|known| walk.from(known.edge.caller));
        walk.done.reverse();
        let mut shape = Shape {
            order: walk.done,
            incoming: HashMap::new(),
            entries: entries.into_iter().collect(),
            targets: HashSet::new(),
            back: walk.back,
        };
        for known in given.iter().filter(|known| !known.edge.is_entry()) {
            if shape.back.contains(&known.edge) {
                shape.targets.insert(known.edge.callee);
            } else {
                let callers = shape.incoming.entry(known.edge.callee);
                callers.or_default().push(*known);
            }
        }
        shape
    }

    fn incoming(&self, method: MethodId) -> &[Known] {
        self.incoming.get(&method).map_or(&[], Vec::as_slice)
    }
}

/// Depth first, without the program's own stack.
struct Walk {
    outgoing: HashMap<MethodId, Vec<Edge>>,
    /// `true` while a node's callees are walked.
    marks: HashMap<MethodId, bool>,
    /// Callees before callers.
    done: Vec<MethodId>,
    back: HashSet<Edge>,
}

impl Walk {
    fn from(&mut self, start: MethodId) {
        if start == Edge::NOBODY || self.marks.contains_key(&start) {
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
                    self.back.insert(edge);
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
