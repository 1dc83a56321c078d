//! `pcce`: precise calling context encoding, Algorithms 1 to 3, for a graph that is known in advance.
//!
//! ```text
//! edge with addition value s     id += s … id -= s
//! back edge, edge that was       push ⟨id, l⟩; id = 0 … id = pop().id
//! left out or is unknown
//! ```
//!
//! Where sub-paths may begin, a dummy edge from a dummy root owns number 0. Decoding ends there: at the thread's entry
//! if the stack is empty, otherwise at the call site on top of it.
//!
//! Successive equal entries are one entry with a count (end of Section 5). If a node would have more contexts than its
//! id has bits, its coldest callers push (Section 7).

use super::thread_table::ThreadTable;
use super::{ContextDecodeError, ContextEncoding, EncodedContext, EncodingStatistics};
use lucce_callgraph::ProgramThreadId;
use lucce_callgraph::numbering::{AcyclicNumbering, NumberingRules, WeightedEdge};
use lucce_callgraph::numbering::{FastMap, SubPathStarts};
use lucce_callgraph::{CallEdge, ContextFrame, MethodId, SiteId};

/// See the module's description.
pub struct PcceEncoding {
    numbering: AcyclicNumbering,
    edges: usize,
    /// "The residence function of l".
    methods: FastMap<SiteId, MethodId>,
    threads: ThreadTable<PcceThreadState>,
    stack_operations: u64,
    unforeseen: u64,
}

#[derive(Default)]
struct PcceThreadState {
    id: u64,
    stack: Vec<PcceStackEntry>,
}

/// An entry of the encoding stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PcceStackEntry {
    id: u64,
    site: SiteId,
    count: u64,
}

impl PcceEncoding {
    /// Width of ids in the paper.
    pub const BITS: u32 = 32;

    /// `edges` have weights from a profile and include entries. If `open`, other calls may happen as well: every node
    /// then reserves a number for sub-paths that begin there.
    #[must_use]
    pub fn new(edges: &[WeightedEdge], bits: u32, open: bool) -> PcceEncoding {
        PcceEncoding {
            numbering: AcyclicNumbering::from_edges(edges, &numbering_rules(bits, open)),
            edges: edges
                .iter()
                .filter(|weighted| !weighted.edge.is_entry())
                .count(),
            methods: residence_map(edges),
            threads: ThreadTable::default(),
            stack_operations: 0,
            unforeseen: 0,
        }
    }

    #[must_use]
    pub fn numbering(&self) -> &AcyclicNumbering {
        &self.numbering
    }

    /// Returns the thread's current id and its encoding stack as (id, call site, repetitions), oldest first.
    #[must_use]
    pub fn thread_state(&self, thread: ProgramThreadId) -> (u64, Vec<(u64, SiteId, u64)>) {
        let Some(state) = self.threads.get(thread) else {
            return (0, Vec::new());
        };
        let stack = state.stack.iter();
        let stack = stack.map(|saved| (saved.id, saved.site, saved.count));
        (state.id, stack.collect())
    }

    /// Algorithm 2, Decode: returns the callers of `method` in its sub-path, innermost first.
    fn decode_sub_path(
        &self,
        method: MethodId,
        id: u64,
        frames: &mut Vec<ContextFrame>,
    ) -> Option<()> {
        let (mut method, mut id) = (method, id);
        while id != 0 || !self.numbering.starts_sub_path(method) {
            let (edge, rest) = self.numbering.find_caller(method, id)?;
            frames.push(edge.caller_frame());
            (method, id) = (edge.caller, rest);
        }
        Some(())
    }
}

/// Returns the rules of both PCCE algorithms.
pub(crate) fn numbering_rules(bits: u32, open: bool) -> NumberingRules {
    let begins = match open {
        true => SubPathStarts::Anywhere,
        false => SubPathStarts::WhereNeeded,
    };
    NumberingRules {
        sub_path_starts: begins,
        ..NumberingRules::for_exact_ids(bits)
    }
}

/// "The residence function of l".
pub(crate) fn residence_map(edges: &[WeightedEdge]) -> FastMap<SiteId, MethodId> {
    let sites = edges.iter().map(|weighted| weighted.edge);
    sites.map(|edge| (edge.site, edge.caller)).collect()
}

impl PcceThreadState {
    fn push_site(&mut self, site: SiteId) {
        match self.stack.last_mut() {
            Some(top) if (top.id, top.site) == (self.id, site) => top.count += 1,
            _ => self.stack.push(PcceStackEntry {
                id: self.id,
                site,
                count: 1,
            }),
        }
        self.id = 0;
    }

    fn pop_entry(&mut self) {
        if let Some(top) = self.stack.last_mut() {
            self.id = top.id;
            top.count -= 1;
        }
        self.stack.pop_if(|top| top.count == 0);
    }
}

impl ContextEncoding for PcceEncoding {
    fn name(&self) -> &'static str {
        "pcce"
    }

    fn start_thread(
        &mut self,
        thread: ProgramThreadId,
        _: Option<(ProgramThreadId, ContextFrame)>,
    ) {
        self.threads.reset_thread(thread);
    }

    fn enter_call(&mut self, thread: ProgramThreadId, edge: CallEdge) {
        let Some(state) = self.threads.get_for_call(thread, edge) else {
            return;
        };
        match self.numbering.addition_value(edge) {
            Some(addition) => state.id += addition,
            None => {
                state.push_site(edge.site);
                self.stack_operations += 1;
                if self.methods.insert(edge.site, edge.caller).is_none() {
                    self.unforeseen += 1;
                }
            }
        }
    }

    fn leave_call(&mut self, thread: ProgramThreadId, edge: CallEdge) {
        let Some(state) = self.threads.get_for_call(thread, edge) else {
            return;
        };
        match self.numbering.addition_value(edge) {
            Some(addition) => state.id -= addition,
            None => {
                state.pop_entry();
                self.stack_operations += 1;
            }
        }
    }

    fn current_context(&mut self, thread: ProgramThreadId, place: ContextFrame) -> EncodedContext {
        let PcceThreadState { id, stack } = self.threads.get_or_create(thread);
        let fields = |saved: &PcceStackEntry| [saved.id, u64::from(saved.site.0), saved.count];
        EncodedContext {
            frame: place,
            id: *id,
            extra_numbers: stack.iter().flat_map(fields).collect(),
        }
    }

    fn stack_depth(&self, thread: ProgramThreadId) -> usize {
        self.threads
            .get(thread)
            .map_or(0, |state| state.stack.len())
    }

    /// Algorithm 3, DecodeStack.
    fn decode_context(
        &self,
        number: &EncodedContext,
    ) -> Result<Vec<ContextFrame>, ContextDecodeError> {
        let mut frames = vec![number.frame];
        let decoded = self.decode_sub_path(number.frame.method, number.id, &mut frames);
        decoded.ok_or(ContextDecodeError::Unknown)?;
        for saved in number.extra_numbers.rchunks(3) {
            let &[id, site, count] = saved else {
                return Err(ContextDecodeError::Unknown);
            };
            let site = SiteId(u32::try_from(site).map_err(|_| ContextDecodeError::Unknown)?);
            let method = *self.methods.get(&site).ok_or(ContextDecodeError::Unknown)?;
            for _ in 0..count {
                frames.push(ContextFrame { site, method });
                let decoded = self.decode_sub_path(method, id, &mut frames);
                decoded.ok_or(ContextDecodeError::Unknown)?;
            }
        }
        Ok(frames)
    }

    fn collect_statistics(&self) -> EncodingStatistics {
        let reduced: std::collections::HashSet<_> = self
            .numbering
            .reduced_edges
            .iter()
            .map(|edge| edge.callee)
            .collect();
        let sites = self.methods.len() * size_of::<(SiteId, MethodId)>();
        EncodingStatistics {
            nodes: self.numbering.nodes.len() as u64,
            edges: self.edges as u64,
            max_id: self.numbering.max_id(),
            memory_bytes: (self.numbering.memory_bytes() + sites) as u64,
            stack_operations: self.stack_operations,
            other_counts: vec![
                ("back edges", self.numbering.back_edges.len() as u64),
                ("reduced nodes", reduced.len() as u64),
                ("unforeseen sites", self.unforeseen),
            ],
            ..EncodingStatistics::default()
        }
    }
}
