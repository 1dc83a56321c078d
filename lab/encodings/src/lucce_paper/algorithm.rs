//! Update and De of the versioned graph `⟨E, numCC, lv⟩`.

use super::super::{ContextDecodeError, EncodingStatistics};
use super::history::{EXCEEDED, HistoricValue, PaperVersion, ValueHistory};
use lucce_callgraph::numbering::FastMap;
use lucce_callgraph::{CallEdge, MethodId, SiteId};

/// A frame's two local variables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallIdVersion {
    /// [`CallIdVersion::NO_CALL_ID`] if the numbers exceeded the limit.
    pub call_id: u64,
    pub version: PaperVersion,
}

impl CallIdVersion {
    /// The local variables with which a thread's entry is called.
    pub const ROOT: CallIdVersion = CallIdVersion {
        call_id: 0,
        version: 0,
    };
    /// In place of a callId for which no number was left.
    pub const NO_CALL_ID: u64 = EXCEEDED;

    #[must_use]
    pub fn is_lost(self) -> bool {
        self.call_id == CallIdVersion::NO_CALL_ID
    }
}

/// Observes everything that decides whether a later update changes nothing.
///
/// An update changes nothing if lv(p) is the caller's version and the edge was numbered with the current inputs of
/// numCC(n).
pub trait UpdateObserver {
    /// `lv(caller)` is `version`.
    fn on_version_backed_up(&mut self, caller: MethodId, version: PaperVersion);
    /// The summands of numCC(callee) have changed; `inputs` counts the changes.
    fn on_inputs_changed(&mut self, callee: MethodId, inputs: u64);
    /// `av(edge)`, or [`CallIdVersion::NO_CALL_ID`] if it exceeds the limit, and the inputs that it was computed from.
    fn on_edge_numbered(&mut self, edge: CallEdge, inputs: u64, addition: u64);
}

/// Observes nothing.
impl UpdateObserver for () {
    fn on_version_backed_up(&mut self, _: MethodId, _: PaperVersion) {}
    fn on_inputs_changed(&mut self, _: MethodId, _: u64) {}
    fn on_edge_numbered(&mut self, _: CallEdge, _: u64, _: u64) {}
}

/// See the module `lucce_paper`.
pub struct LucceAlgorithm {
    nodes: Vec<PaperNode>,
    index: FastMap<MethodId, NodeIndex>,
    edges: FastMap<CallEdge, NumberedEdge>,
    version: PaperVersion,
    /// Numbers stay below this limit.
    limit: u64,
    log: LogTally,
    repaired: u64,
    /// Number of changes in all histories.
    remembered_changes: usize,
}

/// A node's index in the list.
type NodeIndex = u32;

struct PaperNode {
    method: MethodId,
    incoming: Vec<PaperIncomingEdge>,
    outgoing: Vec<NodeIndex>,
    /// numCC
    counts: ValueHistory,
    /// lv
    callers: ValueHistory,
    /// How often the summands of numCC have changed.
    inputs: u64,
}

/// An edge in its callee's list.
#[derive(Clone, Copy)]
struct PaperIncomingEdge {
    since: PaperVersion,
    caller: NodeIndex,
    site: SiteId,
}

/// The place of an edge, its last computed addition value, and the inputs of that value; 0: not computed yet.
#[derive(Clone, Copy)]
struct NumberedEdge {
    caller: NodeIndex,
    callee: NodeIndex,
    place: u32,
    addition: u64,
    inputs: u64,
}

/// Size of the log: the changes of each kind, and the bytes of their kinds and LEB128 fields.
#[derive(Default)]
struct LogTally {
    edges: u64,
    counts: u64,
    callers: u64,
    bytes: u64,
}

impl LogTally {
    fn add_record(&mut self, fields: &[u64]) {
        let bytes = |field: &u64| u64::from((64 - (field | 1).leading_zeros()).div_ceil(7));
        self.bytes += 1 + fields.iter().map(bytes).sum::<u64>();
    }
}

impl LucceAlgorithm {
    /// Numbers are below 2 to the power of `bits`, at most 63: the range of a Java `long`.
    #[must_use]
    pub fn new(bits: u32) -> LucceAlgorithm {
        let mut algorithm = LucceAlgorithm {
            nodes: Vec::new(),
            index: FastMap::default(),
            edges: FastMap::default(),
            version: 0,
            limit: 1 << bits.min(63),
            log: LogTally::default(),
            repaired: 0,
            // The root's own count.
            remembered_changes: 1,
        };
        let root = algorithm.intern_method(CallEdge::NO_CALLER);
        if let Some(root) = algorithm.node_mut(root) {
            root.counts.push_value(0, 1);
        }
        algorithm
    }

    /// Algorithm 1: returns the callee's local variables for the caller's.
    pub fn update_call(
        &mut self,
        edge: CallEdge,
        from: CallIdVersion,
        watch: &mut impl UpdateObserver,
    ) -> CallIdVersion {
        let numbered = self.edges.get(&edge).copied();
        let caller = numbered.map_or_else(
            || self.intern_method(edge.caller),
            |numbered| numbered.caller,
        );
        self.back_up(caller, from.version, watch);
        let numbered = numbered.unwrap_or_else(|| self.add_edge(edge, caller, watch));
        let inputs = self
            .find_node(numbered.callee)
            .map_or(0, |node| node.inputs);
        let (addition, version) = match numbered.inputs == inputs {
            // Nothing that this number depends on has changed since.
            true => (numbered.addition, self.version),
            false => self.renumber_callee(edge, numbered, inputs, watch),
        };
        let call = bounded_sum(from.call_id, addition, self.limit - 1);
        CallIdVersion {
            call_id: call,
            version,
        }
    }

    /// `lv(p) ← v`
    fn back_up(
        &mut self,
        caller: NodeIndex,
        version: PaperVersion,
        watch: &mut impl UpdateObserver,
    ) {
        let now = self.version + 1;
        let Some(node) = self.node_mut(caller) else {
            return;
        };
        if node.callers.latest_value() != Some(version) {
            node.callers.push_value(now, version);
            let method = node.method;
            self.version = now;
            self.remembered_changes += 1;
            self.log.callers += 1;
            self.log.add_record(&[u64::from(method.0), version]);
            watch.on_version_backed_up(method, version);
        }
    }

    /// `E ← E ∪ {e}`
    fn add_edge(
        &mut self,
        edge: CallEdge,
        caller: NodeIndex,
        watch: &mut impl UpdateObserver,
    ) -> NumberedEdge {
        let callee = self.intern_method(edge.callee);
        self.version += 1;
        let since = self.version;
        self.log.edges += 1;
        self.log
            .add_record(&[edge.site.0, edge.callee.0].map(u64::from));
        if let Some(node) = self.node_mut(caller)
            && !node.outgoing.contains(&callee)
        {
            node.outgoing.push(callee);
        }
        let mut place = 0;
        if let Some(node) = self.node_mut(callee) {
            place = node.incoming.len() as u32;
            node.incoming.push(PaperIncomingEdge {
                since,
                caller,
                site: edge.site,
            });
        }
        self.inputs_changed(callee, watch);
        NumberedEdge {
            caller,
            callee,
            place,
            addition: 0,
            inputs: 0,
        }
    }

    /// `numCC(n) ← Σ …`; returns `av(e)` and its version.
    fn renumber_callee(
        &mut self,
        edge: CallEdge,
        numbered: NumberedEdge,
        inputs: u64,
        watch: &mut impl UpdateObserver,
    ) -> (u64, PaperVersion) {
        let before = self.version;
        let (addition, sum) = self.sum_incoming(numbered);
        self.set_count(numbered.callee, sum, watch);
        let numbered = NumberedEdge {
            addition,
            inputs,
            ..numbered
        };
        self.edges.insert(edge, numbered);
        watch.on_edge_numbered(edge, inputs, addition);
        if self.version == before || self.sum_incoming(numbered).0 == addition {
            return (addition, self.version);
        }
        self.repaired += 1;
        (addition, before)
    }

    /// Returns the sums over the edges before this one, and over all edges.
    fn sum_incoming(&self, edge: NumberedEdge) -> (u64, u64) {
        let (mut addition, mut sum) = (EXCEEDED, 0);
        let incoming = self.find_node(edge.callee).map_or(&[][..], |n| &n.incoming);
        for (place, other) in incoming.iter().enumerate() {
            if place == edge.place as usize {
                addition = sum;
            }
            let count = self
                .find_node(other.caller)
                .and_then(|n| n.counts.latest_value());
            sum = bounded_sum(sum, count.unwrap_or(EXCEEDED), self.limit);
        }
        (addition, sum)
    }

    fn set_count(&mut self, callee: NodeIndex, count: u64, watch: &mut impl UpdateObserver) {
        let now = self.version + 1;
        let Some(node) = self.node_mut(callee) else {
            return;
        };
        if node.counts.latest_value() == Some(count) {
            return;
        }
        node.counts.push_value(now, count);
        let (method, outgoing) = (node.method, std::mem::take(&mut node.outgoing));
        self.version = now;
        self.remembered_changes += 1;
        self.log.counts += 1;
        self.log.add_record(&[u64::from(method.0), count]);
        for target in &outgoing {
            self.inputs_changed(*target, watch);
        }
        if let Some(node) = self.node_mut(callee) {
            node.outgoing = outgoing;
        }
    }

    fn inputs_changed(&mut self, node: NodeIndex, watch: &mut impl UpdateObserver) {
        if let Some(node) = self.node_mut(node) {
            node.inputs += 1;
            watch.on_inputs_changed(node.method, node.inputs);
        }
    }

    /// `De(n, ⟨c, v⟩)`: returns the edges to `method`, innermost first; the last one is a thread's entry.
    ///
    /// # Errors
    /// There was no number, the graph has no such context, or its state at that version is forgotten.
    pub fn decode_context(
        &self,
        method: MethodId,
        pair: CallIdVersion,
    ) -> Result<Vec<CallEdge>, ContextDecodeError> {
        self.decode_until(method, pair, |_, _| false)
    }

    /// Decodes down to the first caller whose context is `known`, by method and local variables.
    ///
    /// # Errors
    /// As [`LucceAlgorithm::decode_context`].
    pub fn decode_until(
        &self,
        method: MethodId,
        pair: CallIdVersion,
        mut known: impl FnMut(MethodId, CallIdVersion) -> bool,
    ) -> Result<Vec<CallEdge>, ContextDecodeError> {
        if pair.is_lost() {
            return Err(ContextDecodeError::Lost);
        }
        let unknown = ContextDecodeError::Unknown;
        let (mut at, mut pair) = (*self.index.get(&method).ok_or(unknown)?, pair);
        let mut edges = Vec::new();
        loop {
            let callee = self.find_node(at).ok_or(unknown)?;
            let (previous, addition) = self.previous_edge(callee, pair)?;
            let caller = self.find_node(previous.caller).ok_or(unknown)?;
            let edge = CallEdge {
                site: previous.site,
                caller: caller.method,
                callee: callee.method,
            };
            edges.push(edge);
            if edge.is_entry() {
                return Ok(edges);
            }
            let version = match caller.callers.value_at(pair.version) {
                // That version was backed up earlier, so the loop ends.
                HistoricValue::Value(version) if version < pair.version => version,
                HistoricValue::Forgotten => return Err(ContextDecodeError::Lost),
                _ => return Err(unknown),
            };
            at = previous.caller;
            pair = CallIdVersion {
                call_id: pair.call_id - addition,
                version,
            };
            if known(edge.caller, pair) {
                return Ok(edges);
            }
        }
    }

    /// `prev(n, c, v)`: returns the edge with the largest addition value not above `c`, and that value.
    fn previous_edge(
        &self,
        callee: &PaperNode,
        pair: CallIdVersion,
    ) -> Result<(PaperIncomingEdge, u64), ContextDecodeError> {
        let (mut found, mut sum) = (Err(ContextDecodeError::Unknown), 0);
        let incoming = callee.incoming.iter();
        for edge in incoming.take_while(|edge| edge.since <= pair.version) {
            if sum > pair.call_id {
                break;
            }
            found = Ok((*edge, sum));
            let caller = self
                .find_node(edge.caller)
                .ok_or(ContextDecodeError::Unknown)?;
            sum = match caller.counts.value_at(pair.version) {
                HistoricValue::Value(count) => sum.saturating_add(count),
                HistoricValue::Unset => break,
                HistoricValue::Forgotten => return Err(ContextDecodeError::Lost),
            };
        }
        found
    }

    /// Forgets the graph's state in all versions except those in `kept` and those from now on.
    ///
    /// [`LucceAlgorithm::decode_context`] then returns an error for the forgotten versions.
    pub fn forget_versions(&mut self, kept: &mut Vec<PaperVersion>) {
        kept.sort_unstable();
        kept.dedup();
        for node in &mut self.nodes {
            node.counts.forget_versions(kept, self.version);
            node.callers.forget_versions(kept, self.version);
        }
        let of = |node: &PaperNode| node.counts.len() + node.callers.len();
        self.remembered_changes = self.nodes.iter().map(of).sum();
    }

    /// Returns the number of changes that are remembered.
    #[must_use]
    pub fn remembered_changes(&self) -> usize {
        self.remembered_changes
    }

    /// Returns the graph's current version.
    #[must_use]
    pub fn version(&self) -> PaperVersion {
        self.version
    }

    #[must_use]
    pub fn collect_statistics(&self) -> EncodingStatistics {
        let counts = self
            .nodes
            .iter()
            .filter_map(|node| node.counts.latest_value());
        let largest = counts.filter(|count| *count != EXCEEDED).max();
        EncodingStatistics {
            nodes: self.nodes.len() as u64 - 1,
            edges: self.edges.len() as u64,
            max_id: largest.unwrap_or(1).saturating_sub(1),
            memory_bytes: self.memory_bytes(),
            log_bytes: self.log.bytes,
            other_counts: vec![
                ("versions", self.version),
                ("edges logged", self.log.edges),
                ("numCC logged", self.log.counts),
                ("lv logged", self.log.callers),
                ("repaired", self.repaired),
            ],
            ..EncodingStatistics::default()
        }
    }

    fn memory_bytes(&self) -> u64 {
        let node = |node: &PaperNode| {
            size_of::<(MethodId, NodeIndex)>()
                + size_of::<PaperNode>()
                + node.incoming.len() * size_of::<PaperIncomingEdge>()
                + node.outgoing.len() * size_of::<NodeIndex>()
                + (node.counts.len() + node.callers.len()) * size_of::<(PaperVersion, u64)>()
        };
        let edges = self.edges.len() * size_of::<(CallEdge, NumberedEdge)>();
        (edges + self.nodes.iter().map(node).sum::<usize>()) as u64
    }

    fn intern_method(&mut self, method: MethodId) -> NodeIndex {
        let next = self.nodes.len() as NodeIndex;
        let index = *self.index.entry(method).or_insert(next);
        if index == next {
            self.nodes.push(PaperNode {
                method,
                incoming: Vec::new(),
                outgoing: Vec::new(),
                counts: ValueHistory::default(),
                callers: ValueHistory::default(),
                inputs: 0,
            });
        }
        index
    }

    fn find_node(&self, index: NodeIndex) -> Option<&PaperNode> {
        self.nodes.get(index as usize)
    }

    fn node_mut(&mut self, index: NodeIndex) -> Option<&mut PaperNode> {
        self.nodes.get_mut(index as usize)
    }
}

/// Returns the sum, or [`EXCEEDED`] if a summand is `EXCEEDED` or the sum is above `most`.
fn bounded_sum(a: u64, b: u64, most: u64) -> u64 {
    let sum = a.checked_add(b).filter(|sum| *sum <= most);
    sum.unwrap_or(EXCEEDED)
}
