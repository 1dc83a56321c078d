//! `dacce`: dynamic and adaptive calling context encoding.
//!
//! The graph grows with every new call. If the call's edge has an addition value, the call adds it. Any other call
//! saves the current id:
//!
//! ```text
//! encoded edge          id += En(e) … id -= En(e)
//! edge not encoded yet  push ⟨id, callsite, target⟩; id = maxID + 1 … id = pop().id
//! recursive edge        as an edge not encoded yet, but an entry equal to the top one only counts
//! ```
//!
//! Ids in `[0, maxID]` number paths from a thread's entry. Ids in `[maxID + 1, 2 * maxID + 1]` number sub-paths that
//! begin at the target of the entry on top of the ccStack (Section 3).
//!
//! Contexts are sampled and decoded from time to time, which finds the hot edges. The graph is renumbered if many edges
//! are new, if the hot paths do not add 0, or if the ccStack is used often. Then the hottest caller of each method
//! comes first, and the contexts of all threads are translated (Section 4). A number keeps the timestamp of its
//! dictionary.
//!
//! A thread's entry also pushes if it is called as well and was not known as an entry at the last numbering.
//!
//! A call site with many targets looks up its target in a hash table with one place per hash. A target whose place is
//! taken stays unencoded (Section 3.2, Figure 4). A thread keeps the context in which it was started (Section 5.3).
//! Java has no tail calls (Section 5.2).

mod decoder;
mod dictionary;
mod dynamic_graph;
mod trigger;

use std::time::{Duration, Instant};

use super::thread_table::ThreadTable;
use super::{
    ContextDecodeError, ContextEncoding, EncodedContext, EncodingStatistics, ReEncodingProgress,
};
use dictionary::DacceDictionary;
use dynamic_graph::DynamicCallGraph;
use lucce_callgraph::ProgramThreadId;
use lucce_callgraph::{CallEdge, ContextFrame, MethodId, SiteId};
use trigger::ReEncodingTrigger;

pub use trigger::DacceTuning;

/// See the module's description.
pub struct DacceEncoding {
    graph: DynamicCallGraph,
    /// Indexed by timestamp.
    dictionaries: Vec<DacceDictionary>,
    trigger: ReEncodingTrigger,
    threads: ThreadTable<DacceThreadState>,
    calls: u64,
    samples: u64,
    stack_operations: u64,
    re_encoding_time: Duration,
    /// Contexts that could not be translated; always 0.
    lost: u64,
    progress: Vec<ReEncodingProgress>,
    bits: u32,
}

#[derive(Default)]
struct DacceThreadState {
    /// The innermost frame's method; [`CallEdge::NO_CALLER`] before the first call.
    method: MethodId,
    id: u64,
    stack: Vec<DacceStackEntry>,
    start_context: Option<EncodedContext>,
}

/// An entry of the ccStack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DacceStackEntry {
    id: u64,
    site: SiteId,
    target: MethodId,
    /// How many times the entry is repeated.
    count: u64,
}

impl DacceEncoding {
    /// Ids have at most 63 bits, because sub-paths add `maxID + 1`.
    pub const BITS: u32 = 62;

    #[must_use]
    pub fn new(tuning: DacceTuning) -> DacceEncoding {
        DacceEncoding {
            graph: DynamicCallGraph::default(),
            dictionaries: vec![DacceDictionary::default()],
            trigger: ReEncodingTrigger::new(tuning),
            threads: ThreadTable::default(),
            calls: 0,
            samples: 0,
            stack_operations: 0,
            re_encoding_time: Duration::ZERO,
            lost: 0,
            progress: Vec::new(),
            bits: Self::BITS,
        }
    }

    #[must_use]
    pub fn max_id(&self) -> u64 {
        self.newest_dictionary().max_id()
    }

    /// Returns the current timestamp.
    #[must_use]
    pub fn timestamp(&self) -> usize {
        self.dictionaries.len() - 1
    }

    /// Returns what `edge` adds now; none if it is not encoded.
    #[must_use]
    pub fn addition_value(&self, edge: CallEdge) -> Option<u64> {
        self.newest_dictionary().addition_value(edge)
    }

    /// Returns the thread's current id and its ccStack as (id, callsite, target, count), oldest first.
    #[must_use]
    pub fn thread_state(
        &self,
        thread: ProgramThreadId,
    ) -> (u64, Vec<(u64, SiteId, MethodId, u64)>) {
        let Some(state) = self.threads.get(thread) else {
            return (0, Vec::new());
        };
        let fields = |saved: &DacceStackEntry| (saved.id, saved.site, saved.target, saved.count);
        (state.id, state.stack.iter().map(fields).collect())
    }

    /// Renumbers the graph: all threads are stopped, and their contexts are translated.
    pub fn re_encode(&mut self) {
        let began = Instant::now();
        let next = DacceDictionary::from_graph(&self.graph, self.bits);
        let old = self.dictionaries.last();
        for state in self.threads.iter_mut() {
            if state.method == CallEdge::NO_CALLER {
                continue;
            }
            let frames = old.and_then(|old| state.decode_callers(old, &self.graph));
            self.lost += u64::from(frames.is_none());
            state.encode_callers(&frames.unwrap_or_default(), &next);
        }
        let newest = self.progress.last().map_or(0, |progress| progress.calls);
        self.trigger.finish_re_encoding(self.calls - newest);
        self.progress.push(ReEncodingProgress {
            calls: self.calls,
            samples: self.samples,
            nodes: self.graph.node_count() as u64,
            edges: self.graph.edge_count() as u64,
            max_id: next.max_id(),
        });
        self.dictionaries.push(next);
        self.re_encoding_time += began.elapsed();
    }

    fn newest_dictionary(&self) -> &DacceDictionary {
        match self.dictionaries.last() {
            Some(newest) => newest,
            // There is always one dictionary.
            None => unreachable!(),
        }
    }

    /// Samples the thread's context, as the paper's timer does.
    fn collect_context(&mut self, thread: ProgramThreadId) {
        self.samples += 1;
        let dictionary = self.dictionaries.last();
        let state = self.threads.get_or_create(thread);
        let frames =
            dictionary.and_then(|dictionary| state.decode_callers(dictionary, &self.graph));
        let edges = context_edges(&frames.unwrap_or_default(), state.method);
        edges.iter().for_each(|edge| self.graph.count_sample(*edge));
        let (graph, newest) = (&self.graph, self.newest_dictionary());
        let hot = |edge: &&CallEdge| !newest.is_back(**edge) && graph.is_hottest(**edge);
        let hot: Vec<&CallEdge> = edges.iter().filter(hot).collect();
        let adding = hot.iter().filter(|edge| !newest.is_first(***edge)).count();
        let (hot, known) = (hot.len() as u64, self.graph.edge_count() as u64);
        if self.trigger.record_sample(hot, adding as u64, known) {
            self.re_encode();
        }
    }
}

/// Returns the calls of a context. `frames` are innermost first, without the method that they lead to.
fn context_edges(frames: &[ContextFrame], last: MethodId) -> Vec<CallEdge> {
    let callees = [last]
        .into_iter()
        .chain(frames.iter().map(|frame| frame.method));
    let edge = |(frame, callee): (&ContextFrame, MethodId)| CallEdge {
        site: frame.site,
        caller: frame.method,
        callee,
    };
    frames.iter().zip(callees).map(edge).collect()
}

impl DacceThreadState {
    /// Returns the callers of the innermost frame.
    fn decode_callers(
        &self,
        dictionary: &DacceDictionary,
        graph: &DynamicCallGraph,
    ) -> Option<Vec<ContextFrame>> {
        match self.method {
            CallEdge::NO_CALLER => Some(Vec::new()),
            method => decoder::decode_path(dictionary, graph, method, self.id, self.stack.clone()),
        }
    }

    /// Encodes the context with these callers in the numbers of another dictionary.
    fn encode_callers(&mut self, frames: &[ContextFrame], dictionary: &DacceDictionary) {
        self.start_path(
            frames.last().map_or(self.method, |frame| frame.method),
            dictionary,
        );
        for edge in context_edges(frames, self.method).into_iter().rev() {
            self.apply_call(edge, dictionary);
        }
    }

    /// Enters the thread's first frame.
    fn start_path(&mut self, entry: MethodId, dictionary: &DacceDictionary) {
        self.id = 0;
        self.stack.clear();
        if !dictionary.is_entry(entry) {
            self.push_entry(CallEdge::from_thread_entry(entry), dictionary);
        }
    }

    fn push_entry(&mut self, edge: CallEdge, dictionary: &DacceDictionary) {
        let entry = DacceStackEntry {
            id: self.id,
            site: edge.site,
            target: edge.callee,
            count: 0,
        };
        match self.stack.last_mut() {
            Some(top) if dictionary.is_back(edge) && top.is_repetition_of(&entry) => top.count += 1,
            _ => self.stack.push(entry),
        }
        self.id = dictionary.max_id() + 1;
    }

    /// Applies a call. Returns whether it used the ccStack.
    fn apply_call(&mut self, edge: CallEdge, dictionary: &DacceDictionary) -> bool {
        if let Some(addition) = dictionary.addition_value(edge) {
            self.id += addition;
            return false;
        }
        self.push_entry(edge, dictionary);
        true
    }

    fn undo_call(&mut self, edge: CallEdge, dictionary: &DacceDictionary) -> bool {
        if let Some(addition) = dictionary.addition_value(edge) {
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

impl DacceStackEntry {
    fn is_repetition_of(&self, entry: &DacceStackEntry) -> bool {
        (self.id, self.site, self.target) == (entry.id, entry.site, entry.target)
    }
}

impl ContextEncoding for DacceEncoding {
    fn name(&self) -> &'static str {
        "dacce"
    }

    fn start_thread(
        &mut self,
        thread: ProgramThreadId,
        parent: Option<(ProgramThreadId, ContextFrame)>,
    ) {
        let started = parent.map(|(parent, place)| self.current_context(parent, place));
        *self.threads.get_or_create(thread) = DacceThreadState {
            start_context: started,
            ..DacceThreadState::default()
        };
    }

    fn enter_call(&mut self, thread: ProgramThreadId, edge: CallEdge) {
        self.calls += 1;
        let is_new = self.graph.record_edge(edge);
        let (state, Some(newest)) = (self.threads.get_or_create(thread), self.dictionaries.last())
        else {
            return;
        };
        state.method = edge.callee;
        let mut used = false;
        if edge.is_entry() {
            state.start_path(edge.callee, newest);
        } else {
            used = state.apply_call(edge, newest);
            self.stack_operations += u64::from(used);
        }
        let avoidable = used && !newest.is_back(edge);
        if self.trigger.record_call(is_new, avoidable) {
            self.collect_context(thread);
        }
    }

    fn leave_call(&mut self, thread: ProgramThreadId, edge: CallEdge) {
        let (state, Some(newest)) = (self.threads.get_or_create(thread), self.dictionaries.last())
        else {
            return;
        };
        state.method = edge.caller;
        if !edge.is_entry() {
            self.stack_operations += u64::from(state.undo_call(edge, newest));
        }
    }

    fn current_context(&mut self, thread: ProgramThreadId, place: ContextFrame) -> EncodedContext {
        let stamp = self.timestamp() as u64;
        let state = self.threads.get_or_create(thread);
        let fields = |saved: &DacceStackEntry| {
            let (site, target) = (saved.site.0.into(), saved.target.0.into());
            [saved.id, site, target, saved.count]
        };
        let stack = state.stack.iter().flat_map(fields);
        EncodedContext {
            frame: place,
            id: state.id,
            extra_numbers: [stamp].into_iter().chain(stack).collect(),
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
        let unknown = ContextDecodeError::Unknown;
        let (stamp, stack) = number.extra_numbers.split_first().ok_or(unknown)?;
        let dictionary = usize::try_from(*stamp).ok();
        let dictionary = dictionary.and_then(|stamp| self.dictionaries.get(stamp));
        let stack = stack
            .chunks(4)
            .map(parse_stack_entry)
            .collect::<Option<Vec<DacceStackEntry>>>();
        let (dictionary, stack) = dictionary.zip(stack).ok_or(unknown)?;
        let method = number.frame.method;
        let callers = decoder::decode_path(dictionary, &self.graph, method, number.id, stack);
        let mut frames = vec![number.frame];
        frames.extend(callers.ok_or(unknown)?);
        Ok(frames)
    }

    fn start_context(&self, thread: ProgramThreadId) -> Option<&EncodedContext> {
        self.threads.get(thread)?.start_context.as_ref()
    }

    fn collect_statistics(&self) -> EncodingStatistics {
        let dictionaries: usize = self
            .dictionaries
            .iter()
            .map(DacceDictionary::memory_bytes)
            .sum();
        let newest = self.newest_dictionary();
        EncodingStatistics {
            nodes: self.graph.node_count() as u64,
            edges: self.graph.edge_count() as u64,
            max_id: newest.max_id(),
            memory_bytes: (dictionaries + self.graph.memory_bytes()) as u64,
            log_bytes: dictionaries as u64,
            stack_operations: self.stack_operations,
            unnumbered: self.lost,
            re_encodings: self.timestamp() as u64,
            re_encoding_time: self.re_encoding_time,
            progress: self.progress.clone(),
            other_counts: vec![
                ("samples", self.samples),
                ("back edges", newest.back_edge_count() as u64),
                ("hashed sites", newest.hashed_site_count() as u64),
            ],
            ..EncodingStatistics::default()
        }
    }
}

fn parse_stack_entry(fields: &[u64]) -> Option<DacceStackEntry> {
    let &[id, site, target, count] = fields else {
        return None;
    };
    Some(DacceStackEntry {
        id,
        site: SiteId(u32::try_from(site).ok()?),
        target: MethodId(u32::try_from(target).ok()?),
        count,
    })
}
