//! `pcce-hybrid`: PCCE's Algorithm 4, which lets the stack's depth tell contexts apart where it can.
//!
//! Each node has a set of *implicit contexts*: those whose stack offsets all differ, so that the
//! offset alone tells which it is. A call whose caller's implicit contexts, made longer by the call,
//! do not collide with those of the callee so far
//!
//! ```text
//! (b) needs nothing, if all contexts of the caller are implicit
//! (c) adds s only if the id is not 0, because an explicit context stays explicit
//! (a) adds s, if they do collide
//! ```
//!
//! In C the offset is that of the stack pointer. A JVM does not tell it: there every frame counts 1,
//! and the offset is the depth. Offsets are counted from where the sub-path begins, so a call that
//! pushes keeps its offset too.

use std::collections::BTreeMap;

use super::pcce::{residence, rules};
use super::threads::Threads;
use super::{Encoding, Known, Number, Numbering, Statistics, ThreadId, Undecodable};
use crate::numbering::FastMap;
use crate::{Edge, Frame, MethodId, SiteId};

/// See the module's description.
pub struct Hybrid {
    numbering: Numbering,
    /// Offset of each implicit context and the edge that it ends with; none where it begins.
    implicit: FastMap<MethodId, BTreeMap<u64, Option<Edge>>>,
    kinds: FastMap<Edge, Case>,
    methods: FastMap<SiteId, MethodId>,
    offsets: FastMap<Edge, u64>,
    edges: usize,
    threads: Threads<State>,
    stack_operations: u64,
}

/// The paper's cases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Case {
    Explicit,
    Nothing,
    Guarded,
}

#[derive(Default)]
struct State {
    offset: u64,
    id: u64,
    stack: Vec<Saved>,
}

#[derive(Clone, Copy)]
struct Saved {
    offset: u64,
    id: u64,
    site: SiteId,
}

impl Hybrid {
    /// As for [`Pcce`](super::Pcce); an edge that is not in `offsets` moves the stack by 1.
    #[must_use]
    pub fn new(edges: &[Known], bits: u32, open: bool, offsets: FastMap<Edge, u64>) -> Hybrid {
        let mut hybrid = Hybrid {
            numbering: Numbering::of(edges, &rules(bits, open)),
            implicit: FastMap::default(),
            kinds: FastMap::default(),
            methods: residence(edges),
            offsets,
            edges: edges.iter().filter(|known| !known.edge.is_entry()).count(),
            threads: Threads::default(),
            stack_operations: 0,
        };
        for method in hybrid.topological() {
            hybrid.instrument(method);
        }
        hybrid
    }

    /// How many edges need code of their own: adding 0 needs none.
    #[must_use]
    pub fn instrumented(&self) -> usize {
        let adds = |edge: &Edge| self.numbering.addition(*edge) > Some(0);
        let needs = |(edge, kind): &(&Edge, &Case)| **kind != Case::Nothing && adds(edge);
        self.kinds.iter().filter(needs).count()
    }

    /// The stack offsets of a method's implicit contexts, ascending.
    #[must_use]
    pub fn implicit(&self, method: MethodId) -> Vec<u64> {
        let offsets = self.implicit.get(&method);
        offsets.map_or_else(Vec::new, |offsets| offsets.keys().copied().collect())
    }

    /// The thread's offset and id since its sub-path began, and how many entries lie below.
    #[must_use]
    pub fn state(&self, thread: ThreadId) -> (u64, u64, usize) {
        let state = self.threads.get(thread);
        state.map_or((0, 0, 0), |state| {
            (state.offset, state.id, state.stack.len())
        })
    }

    /// Callers before callees.
    fn topological(&self) -> Vec<MethodId> {
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
    fn instrument(&mut self, method: MethodId) {
        let Some(node) = self.numbering.nodes.get(&method) else {
            return;
        };
        let mut implicit = BTreeMap::new();
        if node.begins {
            implicit.insert(0, None);
        }
        for (_, edge) in &node.incoming {
            let step = self.step(*edge);
            let none = BTreeMap::new();
            let callers = self.implicit.get(&edge.caller).unwrap_or(&none);
            let extended: Vec<u64> = callers.keys().map(|offset| offset + step).collect();
            let conflict = extended.iter().any(|offset| implicit.contains_key(offset));
            let all = callers.len() as u64 == self.numbering.count(edge.caller);
            let kind = match (conflict, all) {
                (true, _) => Case::Explicit,
                (false, true) => Case::Nothing,
                (false, false) => Case::Guarded,
            };
            if kind != Case::Explicit {
                implicit.extend(extended.into_iter().map(|offset| (offset, Some(*edge))));
            }
            self.kinds.insert(*edge, kind);
        }
        self.implicit.insert(method, implicit);
    }

    fn step(&self, edge: Edge) -> u64 {
        self.offsets.get(&edge).copied().unwrap_or(1)
    }

    fn sub_path(
        &self,
        method: MethodId,
        (mut offset, mut id): (u64, u64),
        frames: &mut Vec<Frame>,
    ) -> Option<()> {
        let mut method = method;
        while id != 0 {
            let (edge, rest) = self.numbering.caller(method, id)?;
            frames.push(edge.place());
            (method, id) = (edge.caller, rest);
            offset = offset.checked_sub(self.step(edge))?;
        }
        loop {
            let last = match self.implicit.get(&method) {
                Some(contexts) => *contexts.get(&offset)?,
                None => None,
            };
            let Some(edge) = last else {
                return (offset == 0).then_some(());
            };
            frames.push(edge.place());
            method = edge.caller;
            offset = offset.checked_sub(self.step(edge))?;
        }
    }
}

impl Encoding for Hybrid {
    fn name(&self) -> &'static str {
        "pcce-hybrid"
    }

    fn start(&mut self, thread: ThreadId, _: Option<(ThreadId, Frame)>) {
        self.threads.start(thread);
    }

    fn enter(&mut self, thread: ThreadId, edge: Edge) {
        let step = self.step(edge);
        let Some(state) = self.threads.calling(thread, edge) else {
            return;
        };
        let Some(addition) = self.numbering.addition(edge) else {
            state.stack.push(Saved {
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
        match self.kinds.get(&edge) {
            Some(Case::Nothing) => {}
            Some(Case::Guarded) if state.id == 0 => {}
            _ => state.id += addition,
        }
    }

    fn leave(&mut self, thread: ThreadId, edge: Edge) {
        let step = self.step(edge);
        let Some(state) = self.threads.calling(thread, edge) else {
            return;
        };
        let Some(addition) = self.numbering.addition(edge) else {
            if let Some(saved) = state.stack.pop() {
                (state.offset, state.id) = (saved.offset, saved.id);
            }
            self.stack_operations += 1;
            return;
        };
        state.offset -= step;
        match self.kinds.get(&edge) {
            Some(Case::Nothing) => {}
            // The call did not add either: an addition is never 0 behind an implicit context.
            Some(Case::Guarded) if state.id == 0 => {}
            _ => state.id -= addition,
        }
    }

    fn current(&mut self, thread: ThreadId, place: Frame) -> Number {
        let State { offset, id, stack } = self.threads.at(thread);
        let fields = |saved: &Saved| [saved.offset, saved.id, u64::from(saved.site.0)];
        let beside = [*offset].into_iter().chain(stack.iter().flat_map(fields));
        Number {
            place,
            id: *id,
            beside: beside.collect(),
        }
    }

    fn depth(&self, thread: ThreadId) -> usize {
        self.threads
            .get(thread)
            .map_or(0, |state| state.stack.len())
    }

    fn decode(&self, number: &Number) -> Result<Vec<Frame>, Undecodable> {
        let (offset, stack) = number.beside.split_first().ok_or(Undecodable::Unknown)?;
        let mut frames = vec![number.place];
        let decoded = self.sub_path(number.place.method, (*offset, number.id), &mut frames);
        decoded.ok_or(Undecodable::Unknown)?;
        for saved in stack.rchunks(3) {
            let &[offset, id, site] = saved else {
                return Err(Undecodable::Unknown);
            };
            let site = SiteId(u32::try_from(site).map_err(|_| Undecodable::Unknown)?);
            let method = *self.methods.get(&site).ok_or(Undecodable::Unknown)?;
            frames.push(Frame { site, method });
            let decoded = self.sub_path(method, (offset, id), &mut frames);
            decoded.ok_or(Undecodable::Unknown)?;
        }
        Ok(frames)
    }

    fn statistics(&self) -> Statistics {
        let contexts: usize = self.implicit.values().map(BTreeMap::len).sum();
        let implicit = contexts * size_of::<(u64, Option<Edge>)>();
        let kinds = self.kinds.len() * size_of::<(Edge, Case)>();
        let instrumented = self.instrumented() as u64;
        Statistics {
            nodes: self.numbering.nodes.len() as u64,
            edges: self.edges as u64,
            max_id: self.numbering.max_id(),
            memory: (self.numbering.memory() + implicit + kinds) as u64,
            stack_operations: self.stack_operations,
            more: vec![
                ("edges with code", instrumented),
                ("implicit contexts", contexts as u64),
            ],
            ..Statistics::default()
        }
    }
}
