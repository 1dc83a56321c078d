//! `tracking=paper`: Algorithm 1 of the Lucce paper at every entry of a method, for comparison.
//!
//! All threads share one graph, which is updated under one lock: the paper's atomic block. An update that changes nothing takes
//! no lock; Java code detects this case by itself. It reads these fields, each a u64:
//!
//! ```text
//! block   [updates begun and ended, version of the graph, table, nodes, 0 × 4]
//! node    [lv, inputs]                         of method m at nodes + 16 m
//! table   [shift, mask, 0 × 6] and entries     of edge: site << 24 | callee
//! entry   [edge, inputs, av, 0]                0: empty
//! ```
//!
//! If the count of updates is even, and the same afterwards, the values read in between are consistent. If then lv(p) = v and
//! the edge's entry has the present inputs of its callee, nothing changes, and the callee gets ⟨c + av, version⟩.
//!
//! Versions are kept as long as a frame exists whose context may be needed.

use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use lucce_callgraph::{CallEdge, ContextEncoder, ContextId, GraphJournal, MethodId};
use lucce_encodings::{CallIdVersion, EncodingStatistics, LucceAlgorithm, UpdateObserver};

use crate::memory::address_space;
use crate::memory::counter::increment_counter;
use crate::memory::java_table::{JavaTable, MULTIPLIER};
use crate::memory::locks::WatchedMutex;
use crate::memory::pages::TableWords;
use crate::memory::shared_layout::entry_words;
use lucce_layout::lab_layout::{
    EDGE_ADDITION, EDGE_ENTRY_BITS, EDGE_INPUTS, LOST_CALL, NODE_BITS, NODE_INPUTS, NODE_VERSION,
    PAPER_NODES, PAPER_TABLE, PAPER_UPDATES, PAPER_VERSION,
};

/// The bits of a Java `long` without its sign.
const CALL_BITS: u32 = 63;
/// Minimum number of remembered changes before some are forgotten.
const MIN_REMEMBERED: usize = 1 << 21;
const NODE_WORDS: usize = entry_words(NODE_BITS);
const EDGE_WORDS: usize = entry_words(EDGE_ENTRY_BITS);
const FIRST_ENTRIES: usize = 1024;
// The order of fields in the entries that `AdditionTable::insert` makes.
const _: () = assert!(EDGE_INPUTS == 8 && EDGE_ADDITION == 16);
const _: () = assert!(CallIdVersion::NO_CALL_ID == LOST_CALL.cast_unsigned());

/// The paper's graph, and the copy of it that Java code reads.
pub struct PaperTracking {
    graph: WatchedMutex<PaperGraph>,
    block: Box<PaperBlock>,
    nodes: &'static [AtomicU64],
    /// Frames with a number that did not decode, because their versions were forgotten too early.
    undecoded: AtomicU64,
}

/// Words of the block.
const UPDATES: usize = PAPER_UPDATES / 8;
const VERSION: usize = PAPER_VERSION / 8;
const TABLE: usize = PAPER_TABLE / 8;
const NODES: usize = PAPER_NODES / 8;

#[repr(C, align(64))]
#[derive(Default)]
struct PaperBlock([AtomicU64; 8]);

impl PaperBlock {
    fn store_word(&self, word: usize, value: u64, order: Ordering) {
        if let Some(word) = self.0.get(word) {
            word.store(value, order);
        }
    }

    fn load_word(&self, word: usize) -> u64 {
        // Relaxed: the caller holds the lock, and only its holder writes.
        self.0
            .get(word)
            .map_or(0, |word| word.load(Ordering::Relaxed))
    }
}

struct PaperGraph {
    algorithm: LucceAlgorithm,
    table: AdditionTable,
    /// Number of remembered changes at which some are forgotten.
    forget_at: usize,
}

impl PaperTracking {
    /// `None`: no address space.
    pub fn new() -> Option<PaperTracking> {
        let nodes = address_space::reserve_words(NODE_WORDS << MethodId::BITS)?;
        let (block, table) = (Box::<PaperBlock>::default(), AdditionTable::new());
        // Relaxed: no other thread sees them yet.
        block.store_word(
            NODES,
            nodes.as_ptr().expose_provenance() as u64,
            Ordering::Relaxed,
        );
        block.store_word(TABLE, table.current.table_address(), Ordering::Relaxed);
        let graph = PaperGraph {
            algorithm: LucceAlgorithm::new(CALL_BITS),
            table,
            forget_at: MIN_REMEMBERED,
        };
        Some(PaperTracking {
            graph: WatchedMutex::new(graph),
            block,
            nodes,
            undecoded: AtomicU64::new(0),
        })
    }

    /// The block's address, for Java code.
    pub fn block_address(&self) -> usize {
        std::ptr::from_ref(&*self.block) as usize
    }

    /// The callee's local variables, from the caller's. `add_frame_versions` adds the versions of all present frames; it is called when many
    /// changes are remembered.
    pub fn update_edge(
        &self,
        edge: CallEdge,
        from: CallIdVersion,
        add_frame_versions: impl FnOnce(&mut Vec<u64>),
    ) -> CallIdVersion {
        let mut graph = self.lock();
        let PaperGraph {
            algorithm,
            table,
            forget_at,
        } = &mut *graph;
        let mut shared = JavaGraphWriter {
            block: &self.block,
            nodes: self.nodes,
            table,
        };
        shared.begin_update();
        let to = algorithm.update_call(edge, from, &mut shared);
        shared.end_update(algorithm.version());
        if algorithm.remembered_changes() > *forget_at {
            let mut versions = vec![from.version, to.version];
            add_frame_versions(&mut versions);
            algorithm.forget_versions(&mut versions);
            *forget_at = (2 * algorithm.remembered_changes()).max(MIN_REMEMBERED);
        }
        to
    }

    /// The graph's numbers for a frame's decoded local variables, after the numbers of its callers. The first number belongs to the
    /// callee of the first caller for which `known` has a number.
    pub fn resolve_path<J: GraphJournal>(
        &self,
        method: MethodId,
        pair: CallIdVersion,
        encoder: &ContextEncoder<J>,
        mut known: impl FnMut(MethodId, CallIdVersion) -> ContextId,
    ) -> Vec<ContextId> {
        if pair.is_lost() {
            return Vec::new();
        }
        let mut number = ContextId::UNKNOWN;
        let edges = self
            .lock()
            .algorithm
            .decode_until(method, pair, |caller, pair| {
                number = known(caller, pair);
                number != ContextId::UNKNOWN
            });
        let Ok(edges) = edges else {
            increment_counter(&self.undecoded);
            return Vec::new();
        };
        let mut numbers = Vec::with_capacity(edges.len());
        for edge in edges.iter().rev() {
            number = match edge.is_entry() {
                true => encoder.root_context(edge.callee),
                false => encoder.encode_call(number, edge.site, edge.caller, edge.callee),
            };
            numbers.push(number);
        }
        numbers
    }

    /// Statistics for the end of the log, by name: costs of the scheme. Its log is counted, but not written.
    pub fn collect_stats(&self) -> [(&'static str, u64); 6] {
        let statistics = self.algorithm_statistics();
        let more = |name| statistics.other_counts.iter().find(|(key, _)| *key == name);
        [
            ("paper.versions", more("versions").map_or(0, |more| more.1)),
            ("paper.edges", statistics.edges),
            ("paper.log-bytes", statistics.log_bytes),
            ("paper.repaired", more("repaired").map_or(0, |more| more.1)),
            ("paper.undecoded", self.undecoded_frames()),
            ("paper.memory", statistics.memory_bytes),
        ]
    }

    fn algorithm_statistics(&self) -> EncodingStatistics {
        self.lock().algorithm.collect_statistics()
    }

    fn undecoded_frames(&self) -> u64 {
        self.undecoded.load(Ordering::Relaxed)
    }

    /// After a panic in an update, the count of updates stays odd: Java code then always calls the agent.
    fn lock(&self) -> MutexGuard<'_, PaperGraph> {
        self.graph.lock()
    }
}

/// Writes the data that Java code reads. The caller holds the lock.
struct JavaGraphWriter<'a> {
    block: &'a PaperBlock,
    nodes: &'static [AtomicU64],
    table: &'a mut AdditionTable,
}

impl JavaGraphWriter<'_> {
    fn begin_update(&self) {
        let begun = self.block.load_word(UPDATES) | 1;
        self.block.store_word(UPDATES, begun, Ordering::Relaxed);
        // Release: a thread that sees a store of this update sees the odd count afterwards.
        fence(Ordering::Release);
    }

    fn end_update(&self, version: u64) {
        self.block.store_word(VERSION, version, Ordering::Relaxed);
        let ended = self.block.load_word(UPDATES) + 1;
        // Release: pairs with the acquiring load with which Java code begins.
        self.block.store_word(UPDATES, ended, Ordering::Release);
    }

    fn set_node(&self, method: MethodId, word: usize, value: u64) {
        if let Some(node) = self.nodes.get(NODE_WORDS * method.0 as usize + word) {
            node.store(value, Ordering::Relaxed);
        }
    }
}

impl UpdateObserver for JavaGraphWriter<'_> {
    fn on_version_backed_up(&mut self, caller: MethodId, version: u64) {
        self.set_node(caller, NODE_VERSION / 8, version);
    }

    fn on_inputs_changed(&mut self, callee: MethodId, inputs: u64) {
        self.set_node(callee, NODE_INPUTS / 8, inputs);
    }

    fn on_edge_numbered(&mut self, edge: CallEdge, inputs: u64, addition: u64) {
        self.table.insert(edge_key(edge), [inputs, addition]);
        let table = self.table.current.table_address();
        // Release: pairs with the Acquire in LucceRtComparison.enterCallee(), which may read it in the middle of this change.
        self.block.store_word(TABLE, table, Ordering::Release);
    }
}

fn edge_key(edge: CallEdge) -> u64 {
    u64::from(edge.site.0) << MethodId::BITS | u64::from(edge.callee.0)
}

/// Addition values of edges. Outgrown tables stay for readers that hold their addresses.
struct AdditionTable {
    current: JavaTable<EDGE_WORDS, FIRST_ENTRIES>,
    outgrown: Vec<TableWords>,
}

impl AdditionTable {
    /// The table exists from the start: Java code reads it before it calls the agent.
    fn new() -> AdditionTable {
        AdditionTable {
            current: JavaTable::with_first_table(),
            outgrown: Vec::new(),
        }
    }

    fn insert(&mut self, place: u64, [inputs, addition]: [u64; 2]) {
        let hash = |[place, ..]: &[u64; EDGE_WORDS]| place.wrapping_mul(MULTIPLIER);
        let is = |[known, ..]: &[u64; EDGE_WORDS]| *known == place;
        let outgrown = self
            .current
            .insert_entry([place, inputs, addition, 0], hash, is);
        self.outgrown.extend(outgrown);
    }
}

#[cfg(test)]
mod paper_tracking_tests {
    use lucce_callgraph::{ContextLayout, EncodingPolicy, SiteId};

    use super::*;

    /// As the helper class does it. `None`: the graph may change.
    #[allow(unsafe_code, reason = "words by their addresses")]
    fn unchanged(
        paper: &PaperTracking,
        edge: CallEdge,
        from: CallIdVersion,
    ) -> Option<CallIdVersion> {
        let word = |at: u64| {
            let at = std::ptr::with_exposed_provenance_mut(at as usize);
            // SAFETY: an address that the block, or the table, says.
            unsafe { AtomicU64::from_ptr(at) }.load(Ordering::Relaxed)
        };
        let block = paper.block_address() as u64;
        let [updates, version, table, nodes] = [0, 8, 16, 24].map(|offset| word(block + offset));
        assert_eq!(updates % 2, 0);
        if word(nodes + 16 * u64::from(edge.caller.0)) != from.version {
            return None;
        }
        let inputs = word(nodes + 16 * u64::from(edge.callee.0) + 8);
        let place = edge_key(edge);
        let mut slot = place.wrapping_mul(MULTIPLIER) >> word(table);
        loop {
            let entry = table + 64 + 32 * (slot & word(table + 8));
            match word(entry) {
                0 => return None,
                found if found != place => slot += 1,
                _ if word(entry + 8) != inputs => return None,
                _ => {
                    let call = from.call_id as i64;
                    let addition = word(entry + 16) as i64;
                    let sum = call.wrapping_add(addition);
                    let lost = (call | addition | sum) < 0;
                    let call = if lost {
                        CallIdVersion::NO_CALL_ID
                    } else {
                        sum as u64
                    };
                    return Some(CallIdVersion {
                        call_id: call,
                        version,
                    });
                }
            }
        }
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u32) -> u32 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            ((self.0 >> 33) % u64::from(bound)) as u32
        }
    }

    /// A stack of frames: edge and local variables, outermost first.
    type Stack = Vec<(CallEdge, CallIdVersion)>;

    /// Random calls and returns of three threads; `next` chooses the callee. Returns the number of updates that Java code would have
    /// made by itself.
    fn run(
        paper: &PaperTracking,
        next: impl Fn(&mut Random, u32) -> u32,
        mut each: impl FnMut(&Stack),
    ) -> u32 {
        let mut random = Random(1);
        let (mut stacks, mut quick) = (vec![Stack::new(); 3], 0);
        for _ in 0..30_000 {
            let stack = &mut stacks[random.below(3) as usize];
            let returns = [0, 0, 1, 2][random.below(4) as usize];
            let left = stack.len().saturating_sub(returns);
            stack.truncate(if left > 40 { 0 } else { left });
            let (edge, from) = match stack.last() {
                None => (
                    CallEdge::from_thread_entry(MethodId(1)),
                    CallIdVersion::ROOT,
                ),
                Some((frame, pair)) => (call(&mut random, frame.callee, &next), *pair),
            };
            let expected = unchanged(paper, edge, from);
            let before = paper.lock().algorithm.version();
            let to = paper.update_edge(edge, from, |_| panic!("not so many"));
            if let Some(expected) = expected {
                quick += 1;
                assert_eq!(expected, to);
                assert_eq!(paper.lock().algorithm.version(), before);
            }
            stack.push((edge, to));
            each(stack);
        }
        quick
    }

    fn call(
        random: &mut Random,
        caller: MethodId,
        next: impl Fn(&mut Random, u32) -> u32,
    ) -> CallEdge {
        CallEdge {
            site: SiteId(caller.0 * 2 + random.below(2)),
            caller,
            callee: MethodId(next(random, caller.0)),
        }
    }

    #[test]
    fn what_java_code_finds_unchanged_the_algorithm_leaves_unchanged() {
        let paper = PaperTracking::new().unwrap();
        // Calls go to higher methods only: no recursion, so numbers settle.
        let next = |random: &mut Random, caller| caller + 1 + random.below(40);
        let quick = run(&paper, next, |_| {});
        assert!(quick > 1000, "{quick}");
        let edges = paper.algorithm_statistics().edges;
        assert!(edges as usize > FIRST_ENTRIES, "{edges}");
    }

    #[test]
    fn local_variables_decode_to_the_graphs_number_of_the_path() {
        let paper = PaperTracking::new().unwrap();
        let encoder =
            ContextEncoder::new(ContextLayout::DEFAULT, EncodingPolicy::LUCCE, Vec::new());
        let next = |random: &mut Random, caller| (caller + 300 + random.below(12)) % 400 + 1;
        let mut decoded = 0;
        run(&paper, next, |stack| {
            let (edge, pair) = stack.last().unwrap();
            let nobody = |_, _| ContextId::UNKNOWN;
            let whole = paper.resolve_path(edge.callee, *pair, &encoder, nobody);
            assert_eq!(whole.len(), if pair.is_lost() { 0 } else { stack.len() });
            if let Some(&number) = whole.last() {
                // From the caller's number it is one step.
                let below = stack.len().checked_sub(2).map(|below| stack[below]);
                let caller = |method, pair| match below {
                    Some((frame, locals)) if (frame.callee, locals) == (method, pair) => {
                        whole[whole.len() - 2]
                    }
                    _ => panic!("not the caller"),
                };
                let one = paper.resolve_path(edge.callee, *pair, &encoder, caller);
                assert_eq!(one, [number]);
                let mut frames = encoder.decode_context(number, edge.callee).unwrap();
                frames.reverse();
                let plain = stack[1..].iter().map(|(edge, _)| edge.caller_frame());
                assert!(frames.into_iter().eq(plain));
                decoded += 1;
            }
        });
        assert!(decoded > 1000, "{decoded}");
    }

    #[test]
    fn numbers_that_no_long_holds_are_lost_and_stay_so() {
        let paper = PaperTracking::new().unwrap();
        let edge = |caller, callee| CallEdge {
            site: SiteId(caller * 10 + callee),
            caller: MethodId(caller),
            callee: MethodId(callee),
        };
        let mut pair = paper.update_edge(
            CallEdge::from_thread_entry(MethodId(1)),
            CallIdVersion::ROOT,
            |_| {},
        );
        let mut at = 1;
        for step in 0..2000 {
            let to = 1 + (at + step) % 3;
            pair = paper.update_edge(edge(at, to), pair, |_| {});
            at = to;
        }
        assert!(pair.is_lost());
        let next = edge(at, 4);
        assert!(paper.update_edge(next, pair, |_| {}).is_lost());
        assert!(unchanged(&paper, next, pair).is_some_and(CallIdVersion::is_lost));
        let encoder =
            ContextEncoder::new(ContextLayout::DEFAULT, EncodingPolicy::LUCCE, Vec::new());
        let nobody = |_, _| ContextId::UNKNOWN;
        let numbers = paper.resolve_path(MethodId(at), pair, &encoder, nobody);
        assert!(numbers.is_empty());
    }
}
