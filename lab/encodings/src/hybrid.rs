//! `pcce-hybrid`: PCCE's Algorithm 4, which distinguishes contexts by the depth of the stack if possible.
//!
//! Each node has a set of *implicit contexts*. Their stack offsets all differ, so the offset alone identifies each one.
//! A call extends the implicit contexts of its caller, which may collide with the callee's implicit contexts so far:
//!
//! ```text
//! (a) collision: the call adds s
//! (b) no collision, and all contexts of the caller are implicit: the call needs nothing
//! (c) no collision otherwise: the call adds s if the id is not 0, because an explicit context stays explicit
//! ```
//!
//! In C, the offset is that of the stack pointer. A JVM does not expose it: here every frame counts 1, and the offset
//! is the depth. Offsets are counted from the begin of the sub-path, so a call that pushes also keeps its offset.

use std::collections::BTreeMap;

use super::pcce::{numbering_rules, residence_map};
use super::thread_table::ThreadTable;
use super::{ContextDecodeError, ContextEncoding, EncodedContext, EncodingStatistics};
use lucce_callgraph::ProgramThreadId;
use lucce_callgraph::numbering::FastMap;
use lucce_callgraph::numbering::{AcyclicNumbering, WeightedEdge};
use lucce_callgraph::{CallEdge, ContextFrame, MethodId, SiteId};

/// See the module's description.
pub struct PcceHybridEncoding {
    numbering: AcyclicNumbering,
    /// For each method, the offset of each implicit context and the last edge of the context; none if it begins there.
    implicit: FastMap<MethodId, BTreeMap<u64, Option<CallEdge>>>,
    cases: FastMap<CallEdge, HybridCase>,
    methods: FastMap<SiteId, MethodId>,
    offsets: FastMap<CallEdge, u64>,
    edges: usize,
    threads: ThreadTable<HybridThreadState>,
    stack_operations: u64,
}

/// The paper's cases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HybridCase {
    Explicit,
    Nothing,
    Guarded,
}

#[derive(Default)]
struct HybridThreadState {
    offset: u64,
    id: u64,
    stack: Vec<HybridStackEntry>,
}

#[derive(Clone, Copy)]
struct HybridStackEntry {
    offset: u64,
    id: u64,
    site: SiteId,
}

impl PcceHybridEncoding {
    /// As for [`PcceEncoding`](super::PcceEncoding). Edges that are not in `offsets` move the stack by 1.
    #[must_use]
    pub fn new(
        edges: &[WeightedEdge],
        bits: u32,
        open: bool,
        offsets: FastMap<CallEdge, u64>,
    ) -> PcceHybridEncoding {
        let mut hybrid = PcceHybridEncoding {
            numbering: AcyclicNumbering::from_edges(edges, &numbering_rules(bits, open)),
            implicit: FastMap::default(),
            cases: FastMap::default(),
            methods: residence_map(edges),
            offsets,
            edges: edges
                .iter()
                .filter(|weighted| !weighted.edge.is_entry())
                .count(),
            threads: ThreadTable::default(),
            stack_operations: 0,
        };
        for method in hybrid.topological_order() {
            hybrid.instrument_node(method);
        }
        hybrid
    }

    /// Returns how many edges need instrumentation: adding 0 needs none.
    #[must_use]
    pub fn instrumented_edge_count(&self) -> usize {
        let adds = |edge: &CallEdge| self.numbering.addition_value(*edge) > Some(0);
        let needs =
            |(edge, kind): &(&CallEdge, &HybridCase)| **kind != HybridCase::Nothing && adds(edge);
        self.cases.iter().filter(needs).count()
    }

    /// Returns the stack offsets of a method's implicit contexts, ascending.
    #[must_use]
    pub fn implicit_offsets(&self, method: MethodId) -> Vec<u64> {
        let offsets = self.implicit.get(&method);
        offsets.map_or_else(Vec::new, |offsets| offsets.keys().copied().collect())
    }

    /// Returns the thread's offset and id since its sub-path began, and the number of entries below.
    #[must_use]
    pub fn thread_state(&self, thread: ProgramThreadId) -> (u64, u64, usize) {
        let state = self.threads.get(thread);
        state.map_or((0, 0, 0), |state| {
            (state.offset, state.id, state.stack.len())
        })
    }

    /// Returns callers before callees.
    fn topological_order(&self) -> Vec<MethodId> {
        let mut waiting: FastMap<MethodId, usize> = FastMap::default();
        let mut callees: FastMap<MethodId, Vec<MethodId>> = FastMap::default();
        for (method, node) in &self.numbering.nodes {
            waiting.insert(*method, node.incoming.len());
            for (_, edge) in &node.incoming {
                callees.entry(edge.caller).or_default().push(*method);
            }
        }
        let ready = waiting.iter().filter(|(_, left)| **left == 0);
        let mut order: Vec<MethodId> = ready.map(|(method, _)| *method).collect();
        let mut next = 0;
        while let Some(method) = order.get(next).copied() {
            next += 1;
            for callee in callees.get(&method).into_iter().flatten() {
                if let Some(left) = waiting.get_mut(callee) {
                    *left -= 1;
                    if *left == 0 {
                        order.push(*callee);
                    }
                }
            }
        }
        order
    }

    /// Algorithm 4, the loop over one node's edges.
    fn instrument_node(&mut self, method: MethodId) {
        let Some(node) = self.numbering.nodes.get(&method) else {
            return;
        };
        let mut implicit = BTreeMap::new();
        if node.starts_sub_path {
            implicit.insert(0, None);
        }
        for (_, edge) in &node.incoming {
            let step = self.edge_offset(*edge);
            let none = BTreeMap::new();
            let callers = self.implicit.get(&edge.caller).unwrap_or(&none);
            let extended: Vec<u64> = callers.keys().map(|offset| offset + step).collect();
            let conflict = extended.iter().any(|offset| implicit.contains_key(offset));
            let all = callers.len() as u64 == self.numbering.context_count(edge.caller);
            let kind = match (conflict, all) {
                (true, _) => HybridCase::Explicit,
                (false, true) => HybridCase::Nothing,
                (false, false) => HybridCase::Guarded,
            };
            if kind != HybridCase::Explicit {
                implicit.extend(extended.into_iter().map(|offset| (offset, Some(*edge))));
            }
            self.cases.insert(*edge, kind);
        }
        self.implicit.insert(method, implicit);
    }

    fn edge_offset(&self, edge: CallEdge) -> u64 {
        self.offsets.get(&edge).copied().unwrap_or(1)
    }

    fn decode_sub_path(
        &self,
        method: MethodId,
        (mut offset, mut id): (u64, u64),
        frames: &mut Vec<ContextFrame>,
    ) -> Option<()> {
        let mut method = method;
        while id != 0 {
            let (edge, rest) = self.numbering.find_caller(method, id)?;
            frames.push(edge.caller_frame());
            (method, id) = (edge.caller, rest);
            offset = offset.checked_sub(self.edge_offset(edge))?;
        }
        loop {
            let last = match self.implicit.get(&method) {
                Some(contexts) => *contexts.get(&offset)?,
                None => None,
            };
            let Some(edge) = last else {
                return (offset == 0).then_some(());
            };
            frames.push(edge.caller_frame());
            method = edge.caller;
            offset = offset.checked_sub(self.edge_offset(edge))?;
        }
    }
}

impl ContextEncoding for PcceHybridEncoding {
    fn name(&self) -> &'static str {
        "pcce-hybrid"
    }

    fn start_thread(
        &mut self,
        thread: ProgramThreadId,
        _: Option<(ProgramThreadId, ContextFrame)>,
    ) {
        self.threads.reset_thread(thread);
    }

    fn enter_call(&mut self, thread: ProgramThreadId, edge: CallEdge) {
        let step = self.edge_offset(edge);
        let Some(state) = self.threads.get_for_call(thread, edge) else {
            return;
        };
        let Some(addition) = self.numbering.addition_value(edge) else {
            state.stack.push(HybridStackEntry {
                offset: state.offset,
                id: state.id,
                site: edge.site,
            });
            (state.offset, state.id) = (0, 0);
            self.methods.insert(edge.site, edge.caller);
            self.stack_operations += 1;
            return;
        };
        state.offset += step;
        match self.cases.get(&edge) {
            Some(HybridCase::Nothing) => {}
            Some(HybridCase::Guarded) if state.id == 0 => {}
            _ => state.id += addition,
        }
    }

    fn leave_call(&mut self, thread: ProgramThreadId, edge: CallEdge) {
        let step = self.edge_offset(edge);
        let Some(state) = self.threads.get_for_call(thread, edge) else {
            return;
        };
        let Some(addition) = self.numbering.addition_value(edge) else {
            if let Some(saved) = state.stack.pop() {
                (state.offset, state.id) = (saved.offset, saved.id);
            }
            self.stack_operations += 1;
            return;
        };
        state.offset -= step;
        match self.cases.get(&edge) {
            Some(HybridCase::Nothing) => {}
            // The call did not add either: behind an implicit context, an addition value is never 0.
            Some(HybridCase::Guarded) if state.id == 0 => {}
            _ => state.id -= addition,
        }
    }

    fn current_context(&mut self, thread: ProgramThreadId, place: ContextFrame) -> EncodedContext {
        let HybridThreadState { offset, id, stack } = self.threads.get_or_create(thread);
        let fields = |saved: &HybridStackEntry| [saved.offset, saved.id, u64::from(saved.site.0)];
        let beside = [*offset].into_iter().chain(stack.iter().flat_map(fields));
        EncodedContext {
            frame: place,
            id: *id,
            extra_numbers: beside.collect(),
        }
    }

    fn stack_depth(&self, thread: ProgramThreadId) -> usize {
        self.threads
            .get(thread)
            .map_or(0, |state| state.stack.len())
    }

    fn decode_context(
        &self,
        number: &EncodedContext,
    ) -> Result<Vec<ContextFrame>, ContextDecodeError> {
        let (offset, stack) = number
            .extra_numbers
            .split_first()
            .ok_or(ContextDecodeError::Unknown)?;
        let mut frames = vec![number.frame];
        let decoded = self.decode_sub_path(number.frame.method, (*offset, number.id), &mut frames);
        decoded.ok_or(ContextDecodeError::Unknown)?;
        for saved in stack.rchunks(3) {
            let &[offset, id, site] = saved else {
                return Err(ContextDecodeError::Unknown);
            };
            let site = SiteId(u32::try_from(site).map_err(|_| ContextDecodeError::Unknown)?);
            let method = *self.methods.get(&site).ok_or(ContextDecodeError::Unknown)?;
            frames.push(ContextFrame { site, method });
            let decoded = self.decode_sub_path(method, (offset, id), &mut frames);
            decoded.ok_or(ContextDecodeError::Unknown)?;
        }
        Ok(frames)
    }

    fn collect_statistics(&self) -> EncodingStatistics {
        let contexts: usize = self.implicit.values().map(BTreeMap::len).sum();
        let implicit = contexts * size_of::<(u64, Option<CallEdge>)>();
        let kinds = self.cases.len() * size_of::<(CallEdge, HybridCase)>();
        let instrumented = self.instrumented_edge_count() as u64;
        EncodingStatistics {
            nodes: self.numbering.nodes.len() as u64,
            edges: self.edges as u64,
            max_id: self.numbering.max_id(),
            memory_bytes: (self.numbering.memory_bytes() + implicit + kinds) as u64,
            stack_operations: self.stack_operations,
            other_counts: vec![
                ("edges with code", instrumented),
                ("implicit contexts", contexts as u64),
            ],
            ..EncodingStatistics::default()
        }
    }
}
