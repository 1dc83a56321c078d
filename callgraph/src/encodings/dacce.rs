//! `dacce`: dynamic and adaptive calling context encoding.
//!
//! The graph grows with every call that is seen first. A call whose edge has an addition value adds
//! it; every other one saves what was there:
//!
//! ```text
//! encoded edge          id += En(e) … id -= En(e)
//! edge not encoded yet  push ⟨id, callsite, target⟩; id = maxID + 1 … id = pop().id
//! recursive edge        as an edge not encoded yet, but an entry equal to the top one only counts
//! ```
//!
//! So ids in `[0, maxID]` are those of paths from a thread's entry, ids in `[maxID + 1, 2 * maxID + 1]`
//! those of sub-paths that begin at the target of the entry on top of the ccStack (Section 3).
//!
//! Now and then a context is collected and decoded, which tells which edges are hot. When many edges
//! are new, or the hot paths are not those that add 0, or the ccStack is used much, the graph is
//! numbered anew, the hottest caller of each method first, and the contexts of all threads are
//! translated (Section 4). A number keeps the timestamp of its dictionary.
//!
//! A thread's entry that is also called, and was not known as an entry when the graph was numbered,
//! pushes too.
//!
//! A call site with many targets looks its target up in a hash table with one place per hash; a
//! target whose place is taken stays unencoded (Section 3.2, Figure 4). A thread keeps the context in
//! which it was started (Section 5.3). Tail calls (Section 5.2) are not known in Java.

mod decoder;
mod dictionary;
mod known;
mod trigger;

use std::time::{Duration, Instant};

use super::threads::Threads;
use super::{Encoding, Number, Progress, Statistics, ThreadId, Undecodable};
use crate::{Edge, Frame, MethodId, SiteId};
use dictionary::Dictionary;
use known::Graph;
use trigger::Trigger;

pub use trigger::Tuning;

/// See the module's description.
pub struct Dacce {
    graph: Graph,
    /// By timestamp.
    dictionaries: Vec<Dictionary>,
    trigger: Trigger,
    threads: Threads<State>,
    calls: u64,
    samples: u64,
    stack_operations: u64,
    re_encoding: Duration,
    /// Contexts that could not be translated: there must be none.
    lost: u64,
    progress: Vec<Progress>,
    bits: u32,
}

#[derive(Default)]
struct State {
    /// The innermost frame's; [`Edge::NOBODY`] before the first.
    method: MethodId,
    id: u64,
    stack: Vec<Saved>,
    started: Option<Number>,
}

/// An entry of the ccStack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Saved {
    id: u64,
    site: SiteId,
    target: MethodId,
    /// How often the entry is repeated.
    count: u64,
}

impl Dacce {
    /// Ids of at most 63 bits, as `maxID + 1` more must fit.
    pub const BITS: u32 = 62;

    #[must_use]
    pub fn new(tuning: Tuning) -> Dacce {
        Dacce {
            graph: Graph::default(),
            dictionaries: vec![Dictionary::default()],
            trigger: Trigger::new(tuning),
            threads: Threads::default(),
            calls: 0,
            samples: 0,
            stack_operations: 0,
            re_encoding: Duration::ZERO,
            lost: 0,
            progress: Vec::new(),
            bits: Self::BITS,
        }
    }

    #[must_use]
    pub fn max_id(&self) -> u64 {
        self.newest().max_id()
    }

    /// The present timestamp.
    #[must_use]
    pub fn timestamp(&self) -> usize {
        self.dictionaries.len() - 1
    }

    /// What `edge` adds now; none: it is not encoded.
    #[must_use]
    pub fn addition(&self, edge: Edge) -> Option<u64> {
        self.newest().addition(edge)
    }

    /// The thread's present id and its ccStack as (id, callsite, target, count), oldest first.
    #[must_use]
    pub fn state(&self, thread: ThreadId) -> (u64, Vec<(u64, SiteId, MethodId, u64)>) {
        let Some(state) = self.threads.get(thread) else {
            return (0, Vec::new());
        };
        let fields = |saved: &Saved| (saved.id, saved.site, saved.target, saved.count);
        (state.id, state.stack.iter().map(fields).collect())
    }

    /// Numbers the graph anew: all threads are stopped, their contexts translated.
    pub fn re_encode(&mut self) {
        let began = Instant::now();
        let next = Dictionary::of(&self.graph, self.bits);
        let old = self.dictionaries.last();
        for state in self.threads.iter_mut() {
            if state.method == Edge::NOBODY {
                continue;
            }
            let frames = old.and_then(|old| state.decode(old, &self.graph));
            self.lost += u64::from(frames.is_none());
            state.encode(&frames.unwrap_or_default(), &next);
        }
        let newest = self.progress.last().map_or(0, |progress| progress.calls);
        self.trigger.done(self.calls - newest);
        self.progress.push(Progress {
            calls: self.calls,
            samples: self.samples,
            nodes: self.graph.nodes() as u64,
            edges: self.graph.edges() as u64,
            max_id: next.max_id(),
        });
        self.dictionaries.push(next);
        self.re_encoding += began.elapsed();
    }

    fn newest(&self) -> &Dictionary {
        match self.dictionaries.last() {
            Some(newest) => newest,
            // There is one from the start.
            None => unreachable!(),
        }
    }

    /// Collects the thread's context, as the paper's timer does.
    fn sample(&mut self, thread: ThreadId) {
        self.samples += 1;
        let dictionary = self.dictionaries.last();
        let state = self.threads.at(thread);
        let frames = dictionary.and_then(|dictionary| state.decode(dictionary, &self.graph));
        let edges = edges(&frames.unwrap_or_default(), state.method);
        edges.iter().for_each(|edge| self.graph.warm(*edge));
        let (graph, newest) = (&self.graph, self.newest());
        let hot = |edge: &&Edge| !newest.is_back(**edge) && graph.is_hottest(**edge);
        let hot: Vec<&Edge> = edges.iter().filter(hot).collect();
        let adding = hot.iter().filter(|edge| !newest.is_first(***edge)).count();
        let (hot, known) = (hot.len() as u64, self.graph.edges() as u64);
        if self.trigger.sampled(hot, adding as u64, known) {
            self.re_encode();
        }
    }
}

/// The calls of a context: `frames` innermost first, without the method that they lead to.
fn edges(frames: &[Frame], last: MethodId) -> Vec<Edge> {
    let callees = [last]
        .into_iter()
        .chain(frames.iter().map(|frame| frame.method));
    let edge = |(frame, callee): (&Frame, MethodId)| Edge {
        site: frame.site,
        caller: frame.method,
        callee,
    };
    frames.iter().zip(callees).map(edge).collect()
}

impl State {
    /// The callers of the innermost frame.
    fn decode(&self, dictionary: &Dictionary, graph: &Graph) -> Option<Vec<Frame>> {
        match self.method {
            Edge::NOBODY => Some(Vec::new()),
            method => decoder::decode(dictionary, graph, method, self.id, self.stack.clone()),
        }
    }

    /// The context with these callers, in the numbers of another dictionary.
    fn encode(&mut self, frames: &[Frame], dictionary: &Dictionary) {
        self.begin(
            frames.last().map_or(self.method, |frame| frame.method),
            dictionary,
        );
        for edge in edges(frames, self.method).into_iter().rev() {
            self.call(edge, dictionary);
        }
    }

    /// The thread's first frame.
    fn begin(&mut self, entry: MethodId, dictionary: &Dictionary) {
        self.id = 0;
        self.stack.clear();
        if !dictionary.is_entry(entry) {
            self.push(Edge::entry(entry), dictionary);
        }
    }

    fn push(&mut self, edge: Edge, dictionary: &Dictionary) {
        let entry = Saved {
            id: self.id,
            site: edge.site,
            target: edge.callee,
            count: 0,
        };
        match self.stack.last_mut() {
            Some(top) if dictionary.is_back(edge) && top.repeats(&entry) => top.count += 1,
            _ => self.stack.push(entry),
        }
        self.id = dictionary.max_id() + 1;
    }

    /// Whether the ccStack was used.
    fn call(&mut self, edge: Edge, dictionary: &Dictionary) -> bool {
        if let Some(addition) = dictionary.addition(edge) {
            self.id += addition;
            return false;
        }
        self.push(edge, dictionary);
        true
    }

    fn back(&mut self, edge: Edge, dictionary: &Dictionary) -> bool {
        if let Some(addition) = dictionary.addition(edge) {
            self.id -= addition;
            return false;
        }
        match self.stack.last_mut() {
            Some(top) if top.count > 0 => {
                self.id = top.id;
                top.count -= 1;
            }
            _ => self.id = self.stack.pop().map_or(0, |saved| saved.id),
        }
        true
    }
}

impl Saved {
    fn repeats(&self, entry: &Saved) -> bool {
        (self.id, self.site, self.target) == (entry.id, entry.site, entry.target)
    }
}

impl Encoding for Dacce {
    fn name(&self) -> &'static str {
        "dacce"
    }

    fn start(&mut self, thread: ThreadId, parent: Option<(ThreadId, Frame)>) {
        let started = parent.map(|(parent, place)| self.current(parent, place));
        *self.threads.at(thread) = State {
            started,
            ..State::default()
        };
    }

    fn enter(&mut self, thread: ThreadId, edge: Edge) {
        self.calls += 1;
        let is_new = self.graph.meet(edge);
        let (state, Some(newest)) = (self.threads.at(thread), self.dictionaries.last()) else {
            return;
        };
        state.method = edge.callee;
        let mut used = false;
        if edge.is_entry() {
            state.begin(edge.callee, newest);
        } else {
            used = state.call(edge, newest);
            self.stack_operations += u64::from(used);
        }
        let avoidable = used && !newest.is_back(edge);
        if self.trigger.called(is_new, avoidable) {
            self.sample(thread);
        }
    }

    fn leave(&mut self, thread: ThreadId, edge: Edge) {
        let (state, Some(newest)) = (self.threads.at(thread), self.dictionaries.last()) else {
            return;
        };
        state.method = edge.caller;
        if !edge.is_entry() {
            self.stack_operations += u64::from(state.back(edge, newest));
        }
    }

    fn current(&mut self, thread: ThreadId, place: Frame) -> Number {
        let stamp = self.timestamp() as u64;
        let state = self.threads.at(thread);
        let fields = |saved: &Saved| {
            let (site, target) = (saved.site.0.into(), saved.target.0.into());
            [saved.id, site, target, saved.count]
        };
        let stack = state.stack.iter().flat_map(fields);
        Number {
            place,
            id: state.id,
            beside: [stamp].into_iter().chain(stack).collect(),
        }
    }

    fn depth(&self, thread: ThreadId) -> usize {
        self.threads
            .get(thread)
            .map_or(0, |state| state.stack.len())
    }

    fn decode(&self, number: &Number) -> Result<Vec<Frame>, Undecodable> {
        let unknown = Undecodable::Unknown;
        let (stamp, stack) = number.beside.split_first().ok_or(unknown)?;
        let dictionary = usize::try_from(*stamp).ok();
        let dictionary = dictionary.and_then(|stamp| self.dictionaries.get(stamp));
        let stack = stack.chunks(4).map(saved).collect::<Option<Vec<Saved>>>();
        let (dictionary, stack) = dictionary.zip(stack).ok_or(unknown)?;
        let method = number.place.method;
        let callers = decoder::decode(dictionary, &self.graph, method, number.id, stack);
        let mut frames = vec![number.place];
        frames.extend(callers.ok_or(unknown)?);
        Ok(frames)
    }

    fn started(&self, thread: ThreadId) -> Option<&Number> {
        self.threads.get(thread)?.started.as_ref()
    }

    fn statistics(&self) -> Statistics {
        let dictionaries: usize = self.dictionaries.iter().map(Dictionary::memory).sum();
        let newest = self.newest();
        Statistics {
            nodes: self.graph.nodes() as u64,
            edges: self.graph.edges() as u64,
            max_id: newest.max_id(),
            memory: (dictionaries + self.graph.memory()) as u64,
            log_bytes: dictionaries as u64,
            stack_operations: self.stack_operations,
            lost: self.lost,
            re_encodings: self.timestamp() as u64,
            re_encoding: self.re_encoding,
            progress: self.progress.clone(),
            more: vec![
                ("samples", self.samples),
                ("back edges", newest.back_edges() as u64),
                ("hashed sites", newest.hashed() as u64),
            ],
            ..Statistics::default()
        }
    }
}

fn saved(fields: &[u64]) -> Option<Saved> {
    let &[id, site, target, count] = fields else {
        return None;
    };
    Some(Saved {
        id,
        site: SiteId(u32::try_from(site).ok()?),
        target: MethodId(u32::try_from(target).ok()?),
        count,
    })
}
