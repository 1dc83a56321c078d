//! `lucce-paper`: Algorithm 1 of the Lucce paper, to the letter.
//!
//! The graph is `⟨E, numCC, lv⟩`. When `p` calls `n` at `l`, with `⟨c, v⟩` in `p`'s local variables:
//!
//! ```text
//! lv(p)    ← v                              back up the caller's version
//! E        ← E ∪ {⟨p, n, l⟩}
//! numCC(n) ← Σ numCC(caller) over n's edges
//! n gets ⟨c + av(e), v'⟩                    v' the graph's version now
//! ```
//!
//! Every `←` that changes something makes a new version of the whole graph and is logged. All
//! versions are kept: every value has its history. A thread's entry is called by the root node, which
//! has one context.
//!
//! The paper takes `av(e)` of the updated graph, `v'`. That fails, against its Theorem 1, if `n` calls
//! itself at several sites: then numCC(n) is a summand of `av(e)`, its update moves the range just
//! computed, and `c + av(e)` may exceed numCC(n). There, and only there, `n` gets the version before
//! numCC(n) changed, with `av(e)` of that version; how often that happened is counted.
//!
//! The paper does not say how wide numbers are; Java's `long` is the limit here. What exceeds it is
//! lost, with all contexts below.

use super::threads::Threads;
use super::{Encoding, Number, Statistics, ThreadId, Undecodable};
use crate::numbering::FastMap;
use crate::{Edge, Frame, MethodId};

type Version = u64;

/// See the module's description.
pub struct LuccePaper {
    nodes: FastMap<MethodId, Node>,
    /// A node's edges and where in its list each is.
    edges: FastMap<Edge, Known>,
    version: Version,
    /// The version of the last change of E or numCC: addition values are of that time.
    numbered: Version,
    /// Numbers stay below.
    limit: u128,
    /// Of each frame; `None`: lost.
    threads: Threads<Vec<Option<Pair>>>,
    log: Log,
    repaired: u64,
    lost: u64,
}

/// A frame's two local variables.
#[derive(Clone, Copy)]
struct Pair {
    call: u64,
    version: Version,
}

#[derive(Default)]
struct Node {
    incoming: Vec<(Version, Edge)>,
    counts: Vec<(Version, Count)>,
    callers: Vec<(Version, Version)>,
}

/// numCC: `None` if it exceeds the limit.
type Count = Option<u64>;

/// The addition value that was computed last, and when.
#[derive(Clone, Copy)]
struct Known {
    addition: Count,
    at: Version,
}

/// What was logged: a kind, and the fields of the change as LEB128 numbers.
#[derive(Default)]
struct Log {
    edges: u64,
    counts: u64,
    callers: u64,
    bytes: u64,
}

impl LuccePaper {
    /// Numbers below 2 to the power of `bits`, at most 64. The paper's implementation has 63.
    #[must_use]
    pub fn new(bits: u32) -> LuccePaper {
        let root = Node {
            counts: vec![(0, Some(1))],
            ..Node::default()
        };
        LuccePaper {
            nodes: FastMap::from_iter([(Edge::NOBODY, root)]),
            edges: FastMap::default(),
            version: 0,
            numbered: 0,
            limit: 1 << bits.min(64),
            threads: Threads::default(),
            log: Log::default(),
            repaired: 0,
            lost: 0,
        }
    }

    /// Algorithm 1.
    fn update(&mut self, edge: Edge, from: Pair) -> Option<Pair> {
        self.back_up(edge.caller, from.version);
        let known = self
            .edges
            .get(&edge)
            .filter(|known| known.at == self.numbered);
        let (addition, version) = match known {
            // Nothing that numbers depend upon has changed since.
            Some(known) => (known.addition, self.version),
            None => self.renumber(edge),
        };
        let call = from.call.checked_add(addition?)?;
        let fits = u128::from(call) < self.limit;
        fits.then_some(Pair { call, version })
    }

    /// `lv(p) ← v`
    fn back_up(&mut self, caller: MethodId, version: Version) {
        let node = self.nodes.entry(caller).or_default();
        if node.callers.last().is_none_or(|(_, last)| *last != version) {
            self.version += 1;
            node.callers.push((self.version, version));
            self.log.callers += 1;
            self.log.add(&[u64::from(caller.0), version]);
        }
    }

    /// `E ← E ∪ {e}`, `numCC(n) ← Σ …`; `av(e)` and the version that it is of.
    fn renumber(&mut self, edge: Edge) -> (Count, Version) {
        self.add(edge);
        let (at, before) = (self.numbered, self.version);
        let (addition, sum) = self.sums(edge);
        self.set_count(edge.callee, sum);
        let (updated, _) = self.sums(edge);
        self.edges.insert(edge, Known { addition, at });
        if updated == addition {
            return (addition, self.version);
        }
        self.repaired += 1;
        (addition, before)
    }

    fn add(&mut self, edge: Edge) {
        if self.edges.contains_key(&edge) {
            return;
        }
        self.version += 1;
        self.numbered = self.version;
        let node = self.nodes.entry(edge.callee).or_default();
        node.incoming.push((self.version, edge));
        self.log.edges += 1;
        self.log.add(&[edge.site.0, edge.callee.0].map(u64::from));
    }

    /// What the edges before `edge` count together, and what all do.
    fn sums(&self, edge: Edge) -> (Count, Count) {
        let (mut addition, mut sum) = (None, Some(0u64));
        let incoming = self
            .nodes
            .get(&edge.callee)
            .map_or(&[][..], |node| &node.incoming);
        for (_, other) in incoming {
            if *other == edge {
                addition = sum;
            }
            let count = self.nodes.get(&other.caller).and_then(Node::count);
            let next = sum
                .zip(count)
                .and_then(|(sum, count)| sum.checked_add(count));
            sum = next.filter(|sum| u128::from(*sum) <= self.limit);
        }
        (addition, sum)
    }

    fn set_count(&mut self, method: MethodId, count: Count) {
        let node = self.nodes.entry(method).or_default();
        if node.counts.last().is_none_or(|(_, last)| *last != count) {
            self.version += 1;
            self.numbered = self.version;
            node.counts.push((self.version, count));
            self.log.counts += 1;
            self.log
                .add(&[u64::from(method.0), count.unwrap_or(u64::MAX)]);
        }
    }

    /// `prev(n, c, v)`: the edge with the largest addition value not above `c`, and that value.
    fn previous(&self, method: MethodId, call: u64, version: Version) -> Option<(Edge, u64)> {
        let node = self.nodes.get(&method)?;
        let (mut found, mut sum) = (None, 0u64);
        for (_, edge) in node
            .incoming
            .iter()
            .take_while(|(since, _)| *since <= version)
        {
            if sum > call {
                break;
            }
            found = Some((*edge, sum));
            let count = self.nodes.get(&edge.caller)?.count_at(version);
            match sum.checked_add(count.unwrap_or(u64::MAX)) {
                Some(next) => sum = next,
                None => break,
            }
        }
        found
    }

    fn memory(&self) -> u64 {
        let node = |node: &Node| {
            node.incoming.len() * size_of::<(Version, Edge)>()
                + node.counts.len() * size_of::<(Version, Count)>()
                + node.callers.len() * size_of::<(Version, Version)>()
        };
        let nodes = self.nodes.len() * size_of::<(MethodId, Node)>();
        let edges = self.edges.len() * size_of::<(Edge, Known)>();
        (nodes + edges + self.nodes.values().map(node).sum::<usize>()) as u64
    }
}

impl Node {
    fn count(&self) -> Count {
        self.counts.last().and_then(|(_, count)| *count)
    }

    fn count_at(&self, version: Version) -> Count {
        at(&self.counts, version).and_then(|count| *count)
    }
}

/// What a history says of a version.
fn at<T>(history: &[(Version, T)], version: Version) -> Option<&T> {
    let behind = history.partition_point(|(since, _)| *since <= version);
    let (_, value) = history.get(behind.checked_sub(1)?)?;
    Some(value)
}

impl Log {
    fn add(&mut self, fields: &[u64]) {
        let bytes = |field: &u64| u64::from((64 - (field | 1).leading_zeros()).div_ceil(7));
        self.bytes += 1 + fields.iter().map(bytes).sum::<u64>();
    }
}

impl Encoding for LuccePaper {
    fn name(&self) -> &'static str {
        "lucce-paper"
    }

    fn start(&mut self, thread: ThreadId, _: Option<(ThreadId, Frame)>) {
        self.threads.at(thread).clear();
    }

    fn enter(&mut self, thread: ThreadId, edge: Edge) {
        let root = Pair {
            call: 0,
            version: 0,
        };
        let from = match edge.is_entry() {
            true => Some(root),
            false => self.threads.at(thread).last().copied().flatten(),
        };
        let to = from.and_then(|from| self.update(edge, from));
        self.threads.at(thread).push(to);
    }

    /// Execution resumes with the caller's own local variables.
    fn leave(&mut self, thread: ThreadId, _: Edge) {
        self.threads.at(thread).pop();
    }

    fn current(&mut self, thread: ThreadId, place: Frame) -> Number {
        let pair = self.threads.at(thread).last().copied().flatten();
        self.lost += u64::from(pair.is_none());
        Number {
            place,
            id: pair.map_or(0, |pair| pair.call),
            beside: pair.iter().map(|pair| pair.version).collect(),
        }
    }

    /// `De(n, ⟨c, v⟩)`
    fn decode(&self, number: &Number) -> Result<Vec<Frame>, Undecodable> {
        let &[mut version] = number.beside.as_slice() else {
            return Err(Undecodable::Lost);
        };
        let (mut method, mut call) = (number.place.method, number.id);
        let mut frames = vec![number.place];
        loop {
            let previous = self.previous(method, call, version);
            let (edge, addition) = previous.ok_or(Undecodable::Unknown)?;
            if edge.is_entry() {
                return Ok(frames);
            }
            frames.push(edge.place());
            let caller = self.nodes.get(&edge.caller).ok_or(Undecodable::Unknown)?;
            method = edge.caller;
            call -= addition;
            version = *at(&caller.callers, version).ok_or(Undecodable::Unknown)?;
        }
    }

    fn statistics(&self) -> Statistics {
        let counts = self.nodes.values().filter_map(Node::count);
        Statistics {
            nodes: self.nodes.len() as u64 - 1,
            edges: self.edges.len() as u64,
            max_id: counts.max().unwrap_or(1).saturating_sub(1),
            memory: self.memory(),
            log_bytes: self.log.bytes,
            lost: self.lost,
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
}
