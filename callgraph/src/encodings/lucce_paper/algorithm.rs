//! Update and De: the versioned graph `⟨E, numCC, lv⟩`.

use super::super::{Statistics, Undecodable};
use super::history::{EXCEEDED, History, Then, Version};
use crate::numbering::FastMap;
use crate::{Edge, MethodId, SiteId};

/// A frame's two local variables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// [`Pair::LOST`] where the numbers exceeded the limit.
    pub call: u64,
    pub version: Version,
}

impl Pair {
    /// What a thread's entry is called with.
    pub const ROOT: Pair = Pair {
        call: 0,
        version: 0,
    };
    /// In place of a callId that there was no number for.
    pub const LOST: u64 = EXCEEDED;

    #[must_use]
    pub fn is_lost(self) -> bool {
        self.call == Pair::LOST
    }
}

/// Is told of everything that decides whether a later update changes nothing: that is so if lv(p) is the
/// caller's version and the edge was numbered with the inputs that numCC(n) has now.
pub trait Watch {
    /// `lv(caller)` is `version`.
    fn backed_up(&mut self, caller: MethodId, version: Version);
    /// What numCC(callee) is the sum of has changed; `inputs` counts that.
    fn changed(&mut self, callee: MethodId, inputs: u64);
    /// `av(edge)`, [`Pair::LOST`] if it exceeds the limit, and the inputs it is of.
    fn numbered(&mut self, edge: Edge, inputs: u64, addition: u64);
}

/// Nothing is watched.
impl Watch for () {
    fn backed_up(&mut self, _: MethodId, _: Version) {}
    fn changed(&mut self, _: MethodId, _: u64) {}
    fn numbered(&mut self, _: Edge, _: u64, _: u64) {}
}

/// See the module above.
pub struct Algorithm {
    nodes: Vec<Node>,
    index: FastMap<MethodId, Index>,
    edges: FastMap<Edge, Known>,
    version: Version,
    /// Numbers stay below.
    limit: u64,
    log: Log,
    repaired: u64,
    /// Changes in all histories.
    remembered: usize,
}

/// A node's place in the list.
type Index = u32;

struct Node {
    method: MethodId,
    incoming: Vec<Incoming>,
    outgoing: Vec<Index>,
    /// numCC
    counts: History,
    /// lv
    callers: History,
    /// How often what numCC is the sum of has changed.
    inputs: u64,
}

/// An edge, in its callee's list.
#[derive(Clone, Copy)]
struct Incoming {
    since: Version,
    caller: Index,
    site: SiteId,
}

/// Where an edge is, the addition value that was computed last, and of which inputs; 0: none yet.
#[derive(Clone, Copy)]
struct Known {
    caller: Index,
    callee: Index,
    place: u32,
    addition: u64,
    inputs: u64,
}

/// What was logged: a kind, and the fields of the change as LEB128 numbers.
#[derive(Default)]
struct Log {
    edges: u64,
    counts: u64,
    callers: u64,
    bytes: u64,
}

impl Log {
    fn add(&mut self, fields: &[u64]) {
        let bytes = |field: &u64| u64::from((64 - (field | 1).leading_zeros()).div_ceil(7));
        self.bytes += 1 + fields.iter().map(bytes).sum::<u64>();
    }
}

impl Algorithm {
    /// Numbers below 2 to the power of `bits`, at most 63: what a Java `long` holds.
    #[must_use]
    pub fn new(bits: u32) -> Algorithm {
        let mut algorithm = Algorithm {
            nodes: Vec::new(),
            index: FastMap::default(),
            edges: FastMap::default(),
            version: 0,
            limit: 1 << bits.min(63),
            log: Log::default(),
            repaired: 0,
            // The root's own count.
            remembered: 1,
        };
        let root = algorithm.intern(Edge::NOBODY);
        if let Some(root) = algorithm.node_mut(root) {
            root.counts.set(0, 1);
        }
        algorithm
    }

    /// Algorithm 1: the callee's local variables from the caller's.
    pub fn update(&mut self, edge: Edge, from: Pair, watch: &mut impl Watch) -> Pair {
        let known = self.edges.get(&edge).copied();
        let caller = known.map_or_else(|| self.intern(edge.caller), |known| known.caller);
        self.back_up(caller, from.version, watch);
        let known = known.unwrap_or_else(|| self.add(edge, caller, watch));
        let inputs = self.node(known.callee).map_or(0, |node| node.inputs);
        let (addition, version) = match known.inputs == inputs {
            // Nothing that this number depends upon has changed since.
            true => (known.addition, self.version),
            false => self.renumber(edge, known, inputs, watch),
        };
        let call = plus(from.call, addition, self.limit - 1);
        Pair { call, version }
    }

    /// `lv(p) ← v`
    fn back_up(&mut self, caller: Index, version: Version, watch: &mut impl Watch) {
        let now = self.version + 1;
        let Some(node) = self.node_mut(caller) else {
            return;
        };
        if node.callers.now() != Some(version) {
            node.callers.set(now, version);
            let method = node.method;
            self.version = now;
            self.remembered += 1;
            self.log.callers += 1;
            self.log.add(&[u64::from(method.0), version]);
            watch.backed_up(method, version);
        }
    }

    /// `E ← E ∪ {e}`
    fn add(&mut self, edge: Edge, caller: Index, watch: &mut impl Watch) -> Known {
        let callee = self.intern(edge.callee);
        self.version += 1;
        let since = self.version;
        self.log.edges += 1;
        self.log.add(&[edge.site.0, edge.callee.0].map(u64::from));
        if let Some(node) = self.node_mut(caller)
            && !node.outgoing.contains(&callee)
        {
            node.outgoing.push(callee);
        }
        let mut place = 0;
        if let Some(node) = self.node_mut(callee) {
            place = node.incoming.len() as u32;
            node.incoming.push(Incoming {
                since,
                caller,
                site: edge.site,
            });
        }
        self.inputs_changed(callee, watch);
        Known {
            caller,
            callee,
            place,
            addition: 0,
            inputs: 0,
        }
    }

    /// `numCC(n) ← Σ …`; `av(e)` and the version that it is of.
    fn renumber(
        &mut self,
        edge: Edge,
        known: Known,
        inputs: u64,
        watch: &mut impl Watch,
    ) -> (u64, Version) {
        let before = self.version;
        let (addition, sum) = self.sums(known);
        self.set_count(known.callee, sum, watch);
        let known = Known {
            addition,
            inputs,
            ..known
        };
        self.edges.insert(edge, known);
        watch.numbered(edge, inputs, addition);
        if self.version == before || self.sums(known).0 == addition {
            return (addition, self.version);
        }
        self.repaired += 1;
        (addition, before)
    }

    /// What the edges before this one count together, and what all do.
    fn sums(&self, edge: Known) -> (u64, u64) {
        let (mut addition, mut sum) = (EXCEEDED, 0);
        let incoming = self.node(edge.callee).map_or(&[][..], |n| &n.incoming);
        for (place, other) in incoming.iter().enumerate() {
            if place == edge.place as usize {
                addition = sum;
            }
            let count = self.node(other.caller).and_then(|n| n.counts.now());
            sum = plus(sum, count.unwrap_or(EXCEEDED), self.limit);
        }
        (addition, sum)
    }

    fn set_count(&mut self, callee: Index, count: u64, watch: &mut impl Watch) {
        let now = self.version + 1;
        let Some(node) = self.node_mut(callee) else {
            return;
        };
        if node.counts.now() == Some(count) {
            return;
        }
        node.counts.set(now, count);
        let (method, outgoing) = (node.method, std::mem::take(&mut node.outgoing));
        self.version = now;
        self.remembered += 1;
        self.log.counts += 1;
        self.log.add(&[u64::from(method.0), count]);
        for target in &outgoing {
            self.inputs_changed(*target, watch);
        }
        if let Some(node) = self.node_mut(callee) {
            node.outgoing = outgoing;
        }
    }

    fn inputs_changed(&mut self, node: Index, watch: &mut impl Watch) {
        if let Some(node) = self.node_mut(node) {
            node.inputs += 1;
            watch.changed(node.method, node.inputs);
        }
    }

    /// `De(n, ⟨c, v⟩)`: the edges to `method`, innermost first; the last one is a thread's entry.
    ///
    /// # Errors
    /// There was no number, the graph has no such context, or what it was then is forgotten.
    pub fn decode(&self, method: MethodId, pair: Pair) -> Result<Vec<Edge>, Undecodable> {
        self.decode_until(method, pair, |_, _| false)
    }

    /// The context down to the first caller of whom `known` says, by method and local variables, that its
    /// context is known.
    ///
    /// # Errors
    /// As [`Algorithm::decode`].
    pub fn decode_until(
        &self,
        method: MethodId,
        pair: Pair,
        mut known: impl FnMut(MethodId, Pair) -> bool,
    ) -> Result<Vec<Edge>, Undecodable> {
        if pair.is_lost() {
            return Err(Undecodable::Lost);
        }
        let unknown = Undecodable::Unknown;
        let (mut at, mut pair) = (*self.index.get(&method).ok_or(unknown)?, pair);
        let mut edges = Vec::new();
        loop {
            let callee = self.node(at).ok_or(unknown)?;
            let (found, addition) = self.previous(callee, pair)?;
            let caller = self.node(found.caller).ok_or(unknown)?;
            let edge = Edge {
                site: found.site,
                caller: caller.method,
                callee: callee.method,
            };
            edges.push(edge);
            if edge.is_entry() {
                return Ok(edges);
            }
            let version = match caller.callers.at(pair.version) {
                // Backed up before: so this ends.
                Then::Value(version) if version < pair.version => version,
                Then::Forgotten => return Err(Undecodable::Lost),
                _ => return Err(unknown),
            };
            at = found.caller;
            pair = Pair {
                call: pair.call - addition,
                version,
            };
            if known(edge.caller, pair) {
                return Ok(edges);
            }
        }
    }

    /// `prev(n, c, v)`: the edge with the largest addition value not above `c`, and that value.
    fn previous(&self, callee: &Node, pair: Pair) -> Result<(Incoming, u64), Undecodable> {
        let (mut found, mut sum) = (Err(Undecodable::Unknown), 0);
        let incoming = callee.incoming.iter();
        for edge in incoming.take_while(|edge| edge.since <= pair.version) {
            if sum > pair.call {
                break;
            }
            found = Ok((*edge, sum));
            let caller = self.node(edge.caller).ok_or(Undecodable::Unknown)?;
            sum = match caller.counts.at(pair.version) {
                Then::Value(count) => sum.saturating_add(count),
                Then::Unset => break,
                Then::Forgotten => return Err(Undecodable::Lost),
            };
        }
        found
    }

    /// Forgets what the graph was in versions that are not asked for: others than those in `asked` and
    /// those from now on. [`Algorithm::decode`] says of them that they are lost.
    pub fn forget(&mut self, asked: &mut Vec<Version>) {
        asked.sort_unstable();
        asked.dedup();
        for node in &mut self.nodes {
            node.counts.forget(asked, self.version);
            node.callers.forget(asked, self.version);
        }
        let of = |node: &Node| node.counts.len() + node.callers.len();
        self.remembered = self.nodes.iter().map(of).sum();
    }

    /// Changes that have been remembered, and not forgotten.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.remembered
    }

    /// The graph's version now.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let counts = self.nodes.iter().filter_map(|node| node.counts.now());
        let largest = counts.filter(|count| *count != EXCEEDED).max();
        Statistics {
            nodes: self.nodes.len() as u64 - 1,
            edges: self.edges.len() as u64,
            max_id: largest.unwrap_or(1).saturating_sub(1),
            memory: self.memory(),
            log_bytes: self.log.bytes,
            more: vec![
                ("versions", self.version),
                ("edges logged", self.log.edges),
                ("numCC logged", self.log.counts),
                ("lv logged", self.log.callers),
                ("repaired", self.repaired),
            ],
            ..Statistics::default()
        }
    }

    fn memory(&self) -> u64 {
        let node = |node: &Node| {
            size_of::<(MethodId, Index)>()
                + size_of::<Node>()
                + node.incoming.len() * size_of::<Incoming>()
                + node.outgoing.len() * size_of::<Index>()
                + (node.counts.len() + node.callers.len()) * size_of::<(Version, u64)>()
        };
        let edges = self.edges.len() * size_of::<(Edge, Known)>();
        (edges + self.nodes.iter().map(node).sum::<usize>()) as u64
    }

    fn intern(&mut self, method: MethodId) -> Index {
        let next = self.nodes.len() as Index;
        let index = *self.index.entry(method).or_insert(next);
        if index == next {
            self.nodes.push(Node {
                method,
                incoming: Vec::new(),
                outgoing: Vec::new(),
                counts: History::default(),
                callers: History::default(),
                inputs: 0,
            });
        }
        index
    }

    fn node(&self, index: Index) -> Option<&Node> {
        self.nodes.get(index as usize)
    }

    fn node_mut(&mut self, index: Index) -> Option<&mut Node> {
        self.nodes.get_mut(index as usize)
    }
}

/// [`EXCEEDED`] if a summand is, or if the sum is above `most`.
fn plus(a: u64, b: u64, most: u64) -> u64 {
    let sum = a.checked_add(b).filter(|sum| *sum <= most);
    sum.unwrap_or(EXCEEDED)
}
