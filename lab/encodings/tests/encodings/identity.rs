//! decode ∘ encode is the identity, for every encoding that decodes, on random programs with
//! recursion, polymorphism, exceptions and threads; and no two contexts have the same number.

use std::collections::HashMap;

use super::feed::*;
use lucce_callgraph::numbering::*;
use lucce_callgraph::*;
use lucce_encodings::*;
use proptest::prelude::*;

/// Numbers decode to their plain stacks when they are given, and still do at the end.
fn check<E: ContextEncoding>(encoding: E, acts: &[(usize, Act)], may_lose: bool) -> Feed<E> {
    let mut feed = Feed::new(encoding);
    let numbers = run(&mut feed, acts);
    let mut meanings: HashMap<&EncodedContext, &Vec<ContextFrame>> = HashMap::new();
    for (number, plain) in &numbers {
        match feed.encoding.decode_context(number) {
            Err(ContextDecodeError::Lost) if may_lose => continue,
            decoded => assert_eq!(decoded.as_ref(), Ok(plain), "{number:?}"),
        }
        assert_eq!(*meanings.entry(number).or_insert(plain), plain);
    }
    feed
}

const LAYOUTS: [ContextLayout; 3] = [
    ContextLayout::DEFAULT,
    ContextLayout::new(12, 20, 8),
    ContextLayout::new(12, 8, 16),
];

fn layouts() -> impl Strategy<Value = ContextLayout> {
    prop::sample::select(LAYOUTS.to_vec())
}

/// As much as fits these short programs: renumbering happens all the time.
fn adaptive() -> impl Strategy<Value = EncodingPolicy> {
    (1..20u64, 0..4u32, 0..100u32, 2..30u32, 1..=100u32).prop_map(
        |(adapt_after, unroll, growth_percent, max_node_bits, epoch_percent)| EncodingPolicy {
            adapt_after,
            unroll,
            growth_percent,
            max_node_bits,
            epoch_percent,
            ..EncodingPolicy::ADAPTIVE
        },
    )
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn plan(edges: &[WeightedEdge], bits: u32) -> AcyclicNumbering {
    AcyclicNumbering::from_edges(
        edges,
        &NumberingRules {
            sub_path_starts: SubPathStarts::Anywhere,
            ..NumberingRules::for_exact_ids(bits)
        },
    )
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn lucce(layout in layouts(), acts in acts()) {
        check(VersionedEncoding::new("lucce", layout, EncodingPolicy::LUCCE), &acts, true);
        check(VersionedEncoding::new("cct", layout, EncodingPolicy::CCT), &acts, true);
    }

    #[test]
    fn lucce_loses_nothing_in_its_own_layout(acts in acts()) {
        check(VersionedEncoding::new("lucce", ContextLayout::DEFAULT, EncodingPolicy::LUCCE), &acts, false);
    }

    #[test]
    fn adaptive_renumbers_and_stays_right(
        layout in layouts(), policy in adaptive(), acts in acts(),
    ) {
        check(VersionedEncoding::new("adaptive", layout, policy), &acts, true);
    }

    #[test]
    fn static_with_the_whole_graph_or_a_part(
        acts in acts(), bits in 3..30u32, keep in 0.0..=1.0f64,
    ) {
        let edges = edges_of(&acts);
        let part = &edges[..(edges.len() as f64 * keep) as usize];
        let plan = plan(part, bits);
        check(VersionedEncoding::with_numbering_plan("static", ContextLayout::DEFAULT, EncodingPolicy::STATIC, plan), &acts, false);
    }

    #[test]
    fn lucce_paper(acts in acts()) {
        check(LuccePaperEncoding::new(64), &acts, true);
    }

    #[test]
    fn lucce_paper_forgets_only_what_nobody_asks_for(acts in acts(), every in 1..40usize) {
        let paper = Forgetful {
            paper: LuccePaperEncoding::new(63),
            every,
            calls: 0,
            decoded: Vec::new(),
        };
        let mut feed = Feed::new(paper);
        let numbers = run(&mut feed, &acts);
        prop_assert_eq!(numbers.len(), feed.encoding.decoded.len());
        for ((number, plain), then) in numbers.iter().zip(&feed.encoding.decoded) {
            match then {
                Err(ContextDecodeError::Lost) => assert!(number.extra_numbers.is_empty()),
                decoded => assert_eq!(decoded.as_ref(), Ok(plain)),
            }
            // Its frame may have ended.
            match feed.encoding.decode_context(number) {
                Err(ContextDecodeError::Lost) => {}
                decoded => assert_eq!(decoded.as_ref(), Ok(plain)),
            }
        }
    }

    #[test]
    fn pcce_with_the_whole_graph(acts in acts(), bits in 1..40u32) {
        check(PcceEncoding::new(&edges_of(&acts), bits, false), &acts, false);
    }

    #[test]
    fn pcce_with_a_part_of_the_graph(
        acts in acts(), bits in 1..40u32, keep in 0.0..=1.0f64,
    ) {
        let edges = edges_of(&acts);
        let part = &edges[..(edges.len() as f64 * keep) as usize];
        check(PcceEncoding::new(part, bits, true), &acts, false);
    }

    #[test]
    fn pcce_hybrid(
        acts in acts(), bits in 1..40u32, keep in 0.0..=1.0f64, widths in any::<[u8; 7]>(),
    ) {
        let edges = edges_of(&acts);
        // Frames of different sizes, as in C.
        let width = |weighted: &WeightedEdge| {
            let width = widths[weighted.edge.caller.0 as usize % 7];
            (weighted.edge, u64::from(width % 4) + 1)
        };
        let widths: FastMap<CallEdge, u64> = edges.iter().map(width).collect();
        check(PcceHybridEncoding::new(&edges, bits, false, widths.clone()), &acts, false);
        let part = &edges[..(edges.len() as f64 * keep) as usize];
        check(PcceHybridEncoding::new(part, bits, true, widths), &acts, false);
    }

    #[test]
    fn dacce(acts in acts(), sample in 1..50u64, new_edges in 1..10u64, percent in 0..30u64) {
        let tuning = DacceTuning { sample_interval: sample, new_edges, stack_percent: percent, hot_percent: percent };
        let feed = check(DacceEncoding::new(tuning), &acts, false);
        feed.check_starts();
        prop_assert_eq!(feed.encoding.collect_statistics().unnumbered, 0);
    }

    #[test]
    fn pcc_never_decodes_and_counts_its_collisions(acts in acts(), bits in 1..12u32) {
        let mut feed = Feed::new(PccEncoding::new(bits));
        let numbers = run(&mut feed, &acts);
        let (mut values, mut plains) = (HashMap::new(), HashMap::new());
        for (number, plain) in &numbers {
            prop_assert_eq!(feed.encoding.decode_context(number), Err(ContextDecodeError::Probabilistic));
            // The same context has the same value.
            prop_assert_eq!(*plains.entry(plain).or_insert(number.id), number.id);
            values.insert(number.id, ());
        }
        let collisions = (plains.len() - values.len()) as u64;
        prop_assert_eq!(feed.encoding.collect_statistics().collisions, collisions);
    }

    /// Whatever is decoded, there is an answer.
    #[test]
    fn numbers_of_others_are_refused_or_decode_to_something(
        acts in acts(), numbers in prop::collection::vec(any::<Garbage>(), 20),
    ) {
        let edges = edges_of(&acts);
        let sampled = DacceTuning { sample_interval: 5, ..DacceTuning::DEFAULT };
        whatever(VersionedEncoding::new("lucce", ContextLayout::DEFAULT, EncodingPolicy::LUCCE), &acts, &numbers);
        whatever(LuccePaperEncoding::new(64), &acts, &numbers);
        whatever(PcceEncoding::new(&edges, 32, false), &acts, &numbers);
        whatever(PcceHybridEncoding::new(&edges, 32, false, FastMap::default()), &acts, &numbers);
        whatever(DacceEncoding::new(sampled), &acts, &numbers);
        whatever(PccEncoding::new(32), &acts, &numbers);
    }

    /// Adaptation ends: a program whose contexts stay the same soon logs nothing more.
    #[test]
    fn adaptive_becomes_quiet(policy in adaptive(), acts in acts()) {
        let mut feed = Feed::new(VersionedEncoding::new("adaptive", ContextLayout::DEFAULT, policy));
        run(&mut feed, &acts);
        let mut logged = vec![feed.encoding.collect_statistics().log_bytes];
        for _ in 0..40 {
            for thread in 0..feed.stacks.len() {
                feed.unwind(thread, usize::MAX);
            }
            let calls: Vec<_> = acts.iter().filter(|(_, act)| !matches!(act, Act::Start)).copied().collect();
            again(&mut feed, &calls);
            logged.push(feed.encoding.collect_statistics().log_bytes);
        }
        prop_assert_eq!(logged[39], logged[40], "{:?}", logged);
    }
}

type Garbage = (u64, u32, [u16; 9]);

fn whatever<E: ContextEncoding>(encoding: E, acts: &[(usize, Act)], numbers: &[Garbage]) {
    let mut feed = Feed::new(encoding);
    run(&mut feed, acts);
    for (id, method, beside) in numbers {
        for length in 0..=9 {
            let place = ContextFrame {
                site: SiteId(1),
                method: MethodId(method % 9),
            };
            let beside = beside[..length].iter().map(|word| u64::from(word % 32));
            let beside = beside.collect();
            let id = id % 64;
            let _ = feed.encoding.decode_context(&EncodedContext {
                frame: place,
                id,
                extra_numbers: beside,
            });
        }
    }
}

fn again(feed: &mut Feed<VersionedEncoding>, acts: &[(usize, Act)]) {
    let site = |method: MethodId, site: u32| SiteId(method.0 * 3 + site + 1);
    for &(thread, act) in acts {
        let thread = thread % feed.stacks.len();
        let top = feed.stacks[thread].last().map(|edge| edge.callee);
        match (act, top) {
            (Act::Call { callee, .. }, None) => {
                feed.enter(thread, CallEdge::from_thread_entry(MethodId(callee)))
            }
            (Act::Call { site: at, callee }, Some(caller)) => {
                let (site, callee) = (site(caller, at), MethodId(callee));
                feed.enter(
                    thread,
                    CallEdge {
                        site,
                        caller,
                        callee,
                    },
                );
            }
            (Act::Return, _) => feed.leave(thread),
            (Act::Throw { frames }, _) => feed.unwind(thread, frames),
            (Act::Event { site: at }, Some(method)) => {
                feed.number(thread, site(method, at));
            }
            _ => {}
        }
    }
}

/// Renumbering while other threads encode: every number of every thread decodes.
#[test]
fn adaptive_stops_no_thread() {
    let policy = EncodingPolicy {
        adapt_after: 20,
        max_node_bits: 6,
        ..EncodingPolicy::ADAPTIVE
    };
    let encoder = ContextEncoder::new(ContextLayout::DEFAULT, policy, Vec::new());
    let numbers: Vec<Vec<_>> = std::thread::scope(|scope| {
        let run = |seed: u64| {
            let encoder = &encoder;
            scope.spawn(move || wander(encoder, seed))
        };
        let running: Vec<_> = (1..5).map(run).collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(encoder.collect_stats().re_encodings > 2);
    let mut log = VersionedGraph::new(encoder.layout());
    for change in encoder.with_journal(|changes| changes.clone()) {
        log.apply_change(change).unwrap();
    }
    for (number, plain) in numbers.into_iter().flatten() {
        assert_eq!(
            log.decode_context(number, MethodId::EVENT).as_ref(),
            Ok(&plain)
        );
    }
}

/// Calls and returns by a linear congruence; every call is followed by an event.
fn wander(
    encoder: &ContextEncoder<Vec<GraphChange>>,
    seed: u64,
) -> Vec<(ContextId, Vec<ContextFrame>)> {
    let mut state = seed;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let first = MethodId(1 + draw(9) as u32);
    let mut stack = vec![(encoder.root_context(first), first, SiteId::NONE)];
    let mut numbers = Vec::new();
    for _ in 0..5_000 {
        let depth = stack.len();
        if depth > 1 && (depth > 25 || draw(2) == 0) {
            stack.pop();
            continue;
        }
        let callee = MethodId(1 + draw(9) as u32);
        let (ctx, caller, place) = stack.last_mut().unwrap();
        *place = SiteId(caller.0 * 4 + draw(3) as u32);
        let next = encoder.encode_call(*ctx, *place, *caller, callee);
        stack.push((next, callee, SiteId(callee.0 * 4)));
        let number = encoder.encode_event(next, SiteId(callee.0 * 4), callee);
        assert_ne!(number, ContextId::UNKNOWN);
        let frame = |(_, method, site): &(ContextId, MethodId, SiteId)| ContextFrame {
            site: *site,
            method: *method,
        };
        numbers.push((number, stack.iter().rev().map(frame).collect()));
    }
    numbers
}

/// Decodes each number at once, and forgets in between what no frame can ask for.
struct Forgetful {
    paper: LuccePaperEncoding,
    every: usize,
    calls: usize,
    decoded: Vec<Result<Vec<ContextFrame>, ContextDecodeError>>,
}

impl ContextEncoding for Forgetful {
    fn name(&self) -> &'static str {
        self.paper.name()
    }

    fn start_thread(
        &mut self,
        thread: ProgramThreadId,
        parent: Option<(ProgramThreadId, ContextFrame)>,
    ) {
        self.paper.start_thread(thread, parent);
    }

    fn enter_call(&mut self, thread: ProgramThreadId, edge: CallEdge) {
        self.paper.enter_call(thread, edge);
        self.calls += 1;
        if self.calls.is_multiple_of(self.every) {
            let before = self.paper.remembered_changes();
            self.paper.forget_ended_frames();
            assert!(self.paper.remembered_changes() <= before);
        }
    }

    fn leave_call(&mut self, thread: ProgramThreadId, edge: CallEdge) {
        self.paper.leave_call(thread, edge);
    }

    fn current_context(&mut self, thread: ProgramThreadId, place: ContextFrame) -> EncodedContext {
        let number = self.paper.current_context(thread, place);
        self.decoded.push(self.paper.decode_context(&number));
        number
    }

    fn decode_context(
        &self,
        number: &EncodedContext,
    ) -> Result<Vec<ContextFrame>, ContextDecodeError> {
        self.paper.decode_context(number)
    }

    fn collect_statistics(&self) -> EncodingStatistics {
        self.paper.collect_statistics()
    }
}
