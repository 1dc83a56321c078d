//! `pcce`: precise calling context encoding, Algorithms 1 to 3, of a graph that is known in advance.
//!
//! ```text
//! edge with addition value s     id += s … id -= s
//! back edge, edge that was       push ⟨id, l⟩; id = 0 … id = pop().id
//! left out or is not known
//! ```
//!
//! Where sub-paths may begin, a dummy edge from a dummy root owns number 0, so decoding ends there:
//! at the thread's entry if the stack is empty, otherwise at the call site on top of it.
//!
//! Equal entries that follow each other are one entry with a count (end of Section 5). Where a node
//! would have more contexts than its id has bits, its coldest callers push (Section 7).

use super::threads::Threads;
use super::{Encoding, Known, Number, Numbering, Rules, Statistics, ThreadId, Undecodable};
use crate::numbering::{Begins, FastMap};
use crate::{Edge, Frame, MethodId, SiteId};

/// See the module's description.
pub struct Pcce {
    numbering: Numbering,
    edges: usize,
    /// "The residence function of l".
    methods: FastMap<SiteId, MethodId>,
    threads: Threads<State>,
    stack_operations: u64,
    unforeseen: u64,
}

#[derive(Default)]
struct State {
    id: u64,
    stack: Vec<Saved>,
}

/// An entry of the encoding stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Saved {
    id: u64,
    site: SiteId,
    count: u64,
}

impl Pcce {
    /// The paper's ids.
    pub const BITS: u32 = 32;

    /// `edges` with their weights in a profile, entries among them. Other calls than these may
    /// happen if `open`: every node then keeps a number for sub-paths that begin there.
    #[must_use]
    pub fn new(edges: &[Known], bits: u32, open: bool) -> Pcce {
        Pcce {
            numbering: Numbering::of(edges, &rules(bits, open)),
            edges: edges.iter().filter(|known| !known.edge.is_entry()).count(),
            methods: residence(edges),
            threads: Threads::default(),
            stack_operations: 0,
            unforeseen: 0,
        }
    }

    #[must_use]
    pub fn numbering(&self) -> &Numbering {
        &self.numbering
    }

    /// The thread's present id and its encoding stack as (id, call site, repetitions), oldest first.
    #[must_use]
    pub fn state(&self, thread: ThreadId) -> (u64, Vec<(u64, SiteId, u64)>) {
        let Some(state) = self.threads.get(thread) else {
            return (0, Vec::new());
        };
        let stack = state.stack.iter();
        let stack = stack.map(|saved| (saved.id, saved.site, saved.count));
        (state.id, stack.collect())
    }

    /// Algorithm 2, Decode: the callers of `method`, innermost first, as far as its sub-path goes.
    fn sub_path(&self, method: MethodId, id: u64, frames: &mut Vec<Frame>) -> Option<()> {
        let (mut method, mut id) = (method, id);
        while id != 0 || !self.numbering.begins(method) {
            let (edge, rest) = self.numbering.caller(method, id)?;
            frames.push(edge.place());
            (method, id) = (edge.caller, rest);
        }
        Some(())
    }
}

/// Both algorithms number alike.
pub(super) fn rules(bits: u32, open: bool) -> Rules {
    let begins = match open {
        true => Begins::Anywhere,
        false => Begins::Needed,
    };
    Rules {
        begins,
        ..Rules::exact(bits)
    }
}

/// "The residence function of l".
pub(super) fn residence(edges: &[Known]) -> FastMap<SiteId, MethodId> {
    let sites = edges.iter().map(|known| known.edge);
    sites.map(|edge| (edge.site, edge.caller)).collect()
}

impl State {
    fn push(&mut self, site: SiteId) {
        match self.stack.last_mut() {
            Some(top) if (top.id, top.site) == (self.id, site) => top.count += 1,
            _ => self.stack.push(Saved {
                id: self.id,
                site,
                count: 1,
            }),
        }
        self.id = 0;
    }

    fn pop(&mut self) {
        if let Some(top) = self.stack.last_mut() {
            self.id = top.id;
            top.count -= 1;
        }
        self.stack.pop_if(|top| top.count == 0);
    }
}

impl Encoding for Pcce {
    fn name(&self) -> &'static str {
        "pcce"
    }

    fn start(&mut self, thread: ThreadId, _: Option<(ThreadId, Frame)>) {
        self.threads.start(thread);
    }

    fn enter(&mut self, thread: ThreadId, edge: Edge) {
        let Some(state) = self.threads.calling(thread, edge) else {
            return;
        };
        match self.numbering.addition(edge) {
            Some(addition) => state.id += addition,
            None => {
                state.push(edge.site);
                self.stack_operations += 1;
                if self.methods.insert(edge.site, edge.caller).is_none() {
                    self.unforeseen += 1;
                }
            }
        }
    }

    fn leave(&mut self, thread: ThreadId, edge: Edge) {
        let Some(state) = self.threads.calling(thread, edge) else {
            return;
        };
        match self.numbering.addition(edge) {
            Some(addition) => state.id -= addition,
            None => {
                state.pop();
                self.stack_operations += 1;
            }
        }
    }

    fn current(&mut self, thread: ThreadId, place: Frame) -> Number {
        let State { id, stack } = self.threads.at(thread);
        let fields = |saved: &Saved| [saved.id, u64::from(saved.site.0), saved.count];
        Number {
            place,
            id: *id,
            beside: stack.iter().flat_map(fields).collect(),
        }
    }

    fn depth(&self, thread: ThreadId) -> usize {
        self.threads
            .get(thread)
            .map_or(0, |state| state.stack.len())
    }

    /// Algorithm 3, DecodeStack.
    fn decode(&self, number: &Number) -> Result<Vec<Frame>, Undecodable> {
        let mut frames = vec![number.place];
        let decoded = self.sub_path(number.place.method, number.id, &mut frames);
        decoded.ok_or(Undecodable::Unknown)?;
        for saved in number.beside.rchunks(3) {
            let &[id, site, count] = saved else {
                return Err(Undecodable::Unknown);
            };
            let site = SiteId(u32::try_from(site).map_err(|_| Undecodable::Unknown)?);
            let method = *self.methods.get(&site).ok_or(Undecodable::Unknown)?;
            for _ in 0..count {
                frames.push(Frame { site, method });
                let decoded = self.sub_path(method, id, &mut frames);
                decoded.ok_or(Undecodable::Unknown)?;
            }
        }
        Ok(frames)
    }

    fn statistics(&self) -> Statistics {
        let reduced: std::collections::HashSet<_> = self
            .numbering
            .reduced
            .iter()
            .map(|edge| edge.callee)
            .collect();
        let sites = self.methods.len() * size_of::<(SiteId, MethodId)>();
        Statistics {
            nodes: self.numbering.nodes.len() as u64,
            edges: self.edges as u64,
            max_id: self.numbering.max_id(),
            memory: (self.numbering.memory() + sites) as u64,
            stack_operations: self.stack_operations,
            more: vec![
                ("back edges", self.numbering.back.len() as u64),
                ("reduced nodes", reduced.len() as u64),
                ("unforeseen sites", self.unforeseen),
            ],
            ..Statistics::default()
        }
    }
}
