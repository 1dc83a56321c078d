//! decode ∘ encode is the identity, for every encoding that decodes, on random programs with
//! recursion, polymorphism, exceptions and threads; and no two contexts have the same number.

use std::collections::HashMap;

use super::feed::*;
use lucce_callgraph::encodings::*;
use lucce_callgraph::*;
use proptest::prelude::*;

/// Numbers decode to their plain stacks when they are given, and still do at the end.
fn check<E: Encoding>(encoding: E, acts: &[(usize, Act)], may_lose: bool) -> Feed<E> {
    let mut feed = Feed::new(encoding);
    let numbers = run(&mut feed, acts);
    let mut meanings: HashMap<&Number, &Vec<Frame>> = HashMap::new();
    for (number, plain) in &numbers {
        match feed.encoding.decode(number) {
            Err(Undecodable::Lost) if may_lose => continue,
            decoded => assert_eq!(decoded.as_ref(), Ok(plain), "{number:?}"),
        }
        assert_eq!(*meanings.entry(number).or_insert(plain), plain);
    }
    feed
}

const LAYOUTS: [Layout; 3] = [
    Layout::DEFAULT,
    Layout::new(12, 20, 8),
    Layout::new(12, 8, 16),
];

fn layouts() -> impl Strategy<Value = Layout> {
    prop::sample::select(LAYOUTS.to_vec())
}

/// As much as fits these short programs: renumbering happens all the time.
fn adaptive() -> impl Strategy<Value = Policy> {
    (1..20u64, 0..4u32, 0..100u32, 2..30u32, 1..=100u32).prop_map(
        |(adapt_after, unroll, growth_percent, max_node_bits, epoch_percent)| Policy {
            adapt_after,
            unroll,
            growth_percent,
            max_node_bits,
            epoch_percent,
            ..Policy::ADAPTIVE
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

fn plan(edges: &[Known], bits: u32) -> Numbering {
    Numbering::of(
        edges,
        &Rules {
            begins: Begins::Anywhere,
            ..Rules::exact(bits)
        },
    )
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn lucce(layout in layouts(), acts in acts()) {
        check(Versioned::new("lucce", layout, Policy::LUCCE), &acts, true);
        check(Versioned::new("cct", layout, Policy::CCT), &acts, true);
    }

    #[test]
    fn lucce_loses_nothing_in_its_own_layout(acts in acts()) {
        check(Versioned::new("lucce", Layout::DEFAULT, Policy::LUCCE), &acts, false);
    }

    #[test]
    fn adaptive_renumbers_and_stays_right(
        layout in layouts(), policy in adaptive(), acts in acts(),
    ) {
        check(Versioned::new("adaptive", layout, policy), &acts, true);
    }

    #[test]
    fn static_with_the_whole_graph_or_a_part(
        acts in acts(), bits in 3..30u32, keep in 0.0..=1.0f64,
    ) {
        let edges = edges_of(&acts);
        let part = &edges[..(edges.len() as f64 * keep) as usize];
        let plan = plan(part, bits);
        check(Versioned::planned("static", Layout::DEFAULT, Policy::STATIC, plan), &acts, false);
    }

    #[test]
    fn lucce_paper(acts in acts()) {
        check(LuccePaper::new(64), &acts, true);
    }

    #[test]
    fn lucce_paper_forgets_only_what_nobody_asks_for(acts in acts(), every in 1..40usize) {
        let paper = Forgetful {
            paper: LuccePaper::new(63),
            every,
            calls: 0,
            decoded: Vec::new(),
        };
        let mut feed = Feed::new(paper);
        let numbers = run(&mut feed, &acts);
        prop_assert_eq!(numbers.len(), feed.encoding.decoded.len());
        for ((number, plain), then) in numbers.iter().zip(&feed.encoding.decoded) {
            match then {
                Err(Undecodable::Lost) => assert!(number.beside.is_empty()),
                decoded => assert_eq!(decoded.as_ref(), Ok(plain)),
            }
            // Its frame may have ended.
            match feed.encoding.decode(number) {
                Err(Undecodable::Lost) => {}
                decoded => assert_eq!(decoded.as_ref(), Ok(plain)),
            }
        }
    }

    #[test]
    fn pcce_with_the_whole_graph(acts in acts(), bits in 1..40u32) {
        check(Pcce::new(&edges_of(&acts), bits, false), &acts, false);
    }

    #[test]
    fn pcce_with_a_part_of_the_graph(
        acts in acts(), bits in 1..40u32, keep in 0.0..=1.0f64,
    ) {
        let edges = edges_of(&acts);
        let part = &edges[..(edges.len() as f64 * keep) as usize];
        check(Pcce::new(part, bits, true), &acts, false);
    }

    #[test]
    fn pcce_hybrid(
        acts in acts(), bits in 1..40u32, keep in 0.0..=1.0f64, widths in any::<[u8; 7]>(),
    ) {
        let edges = edges_of(&acts);
        // Frames of different sizes, as in C.
        let width = |known: &Known| {
            let width = widths[known.edge.caller.0 as usize % 7];
            (known.edge, u64::from(width % 4) + 1)
        };
        let widths: FastMap<Edge, u64> = edges.iter().map(width).collect();
        check(Hybrid::new(&edges, bits, false, widths.clone()), &acts, false);
        let part = &edges[..(edges.len() as f64 * keep) as usize];
        check(Hybrid::new(part, bits, true, widths), &acts, false);
    }

    #[test]
    fn dacce(acts in acts(), sample in 1..50u64, new_edges in 1..10u64, percent in 0..30u64) {
        let tuning = Tuning { sample, new_edges, stack_percent: percent, hot_percent: percent };
        let feed = check(Dacce::new(tuning), &acts, false);
        feed.check_starts();
        prop_assert_eq!(feed.encoding.statistics().lost, 0);
    }

    #[test]
    fn pcc_never_decodes_and_counts_its_collisions(acts in acts(), bits in 1..12u32) {
        let mut feed = Feed::new(Pcc::new(bits));
        let numbers = run(&mut feed, &acts);
        let (mut values, mut plains) = (HashMap::new(), HashMap::new());
        for (number, plain) in &numbers {
            prop_assert_eq!(feed.encoding.decode(number), Err(Undecodable::Probabilistic));
            // The same context has the same value.
            prop_assert_eq!(*plains.entry(plain).or_insert(number.id), number.id);
            values.insert(number.id, ());
        }
        let collisions = (plains.len() - values.len()) as u64;
        prop_assert_eq!(feed.encoding.statistics().collisions, collisions);
    }

    /// Whatever is decoded, there is an answer.
    #[test]
    fn numbers_of_others_are_refused_or_decode_to_something(
        acts in acts(), numbers in prop::collection::vec(any::<Garbage>(), 20),
    ) {
        let edges = edges_of(&acts);
        let sampled = Tuning { sample: 5, ..Tuning::DEFAULT };
        whatever(Versioned::new("lucce", Layout::DEFAULT, Policy::LUCCE), &acts, &numbers);
        whatever(LuccePaper::new(64), &acts, &numbers);
        whatever(Pcce::new(&edges, 32, false), &acts, &numbers);
        whatever(Hybrid::new(&edges, 32, false, FastMap::default()), &acts, &numbers);
        whatever(Dacce::new(sampled), &acts, &numbers);
        whatever(Pcc::new(32), &acts, &numbers);
    }

    /// Adaptation ends: a program whose contexts stay the same soon logs nothing more.
    #[test]
    fn adaptive_becomes_quiet(policy in adaptive(), acts in acts()) {
        let mut feed = Feed::new(Versioned::new("adaptive", Layout::DEFAULT, policy));
        run(&mut feed, &acts);
        let mut logged = vec![feed.encoding.statistics().log_bytes];
        for _ in 0..40 {
            for thread in 0..feed.stacks.len() {
                feed.unwind(thread, usize::MAX);
            }
            let calls: Vec<_> = acts.iter().filter(|(_, act)| !matches!(act, Act::Start)).copied().collect();
            again(&mut feed, &calls);
            logged.push(feed.encoding.statistics().log_bytes);
        }
        prop_assert_eq!(logged[39], logged[40], "{:?}", logged);
    }
}

type Garbage = (u64, u32, [u16; 9]);

fn whatever<E: Encoding>(encoding: E, acts: &[(usize, Act)], numbers: &[Garbage]) {
    let mut feed = Feed::new(encoding);
    run(&mut feed, acts);
    for (id, method, beside) in numbers {
        for length in 0..=9 {
            let place = Frame {
                site: SiteId(1),
                method: MethodId(method % 9),
            };
            let beside = beside[..length].iter().map(|word| u64::from(word % 32));
            let beside = beside.collect();
            let id = id % 64;
            let _ = feed.encoding.decode(&Number { place, id, beside });
        }
    }
}

fn again(feed: &mut Feed<Versioned>, acts: &[(usize, Act)]) {
    let site = |method: MethodId, site: u32| SiteId(method.0 * 3 + site + 1);
    for &(thread, act) in acts {
        let thread = thread % feed.stacks.len();
        let top = feed.stacks[thread].last().map(|edge| edge.callee);
        match (act, top) {
            (Act::Call { callee, .. }, None) => feed.enter(thread, Edge::entry(MethodId(callee))),
            (Act::Call { site: at, callee }, Some(caller)) => {
                let (site, callee) = (site(caller, at), MethodId(callee));
                feed.enter(
                    thread,
                    Edge {
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
    let policy = Policy {
        adapt_after: 20,
        max_node_bits: 6,
        ..Policy::ADAPTIVE
    };
    let encoder = Encoder::new(Layout::DEFAULT, policy, Vec::new());
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
    assert!(encoder.stats().re_encodings > 2);
    let mut log = Graph::new(encoder.layout());
    for change in encoder.journal(|changes| changes.clone()) {
        log.apply(change).unwrap();
    }
    for (number, plain) in numbers.into_iter().flatten() {
        assert_eq!(log.decode(number, MethodId::EVENT).as_ref(), Ok(&plain));
    }
}

/// Calls and returns by a linear congruence; every call is followed by an event.
fn wander(encoder: &Encoder<Vec<Change>>, seed: u64) -> Vec<(ContextId, Vec<Frame>)> {
    let mut state = seed;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let first = MethodId(1 + draw(9) as u32);
    let mut stack = vec![(encoder.root(first), first, SiteId::NONE)];
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
        let next = encoder.step(*ctx, *place, *caller, callee);
        stack.push((next, callee, SiteId(callee.0 * 4)));
        let number = encoder.event(next, SiteId(callee.0 * 4), callee);
        assert_ne!(number, ContextId::UNKNOWN);
        let frame = |(_, method, site): &(ContextId, MethodId, SiteId)| Frame {
            site: *site,
            method: *method,
        };
        numbers.push((number, stack.iter().rev().map(frame).collect()));
    }
    numbers
}

/// Decodes each number at once, and forgets in between what no frame can ask for.
struct Forgetful {
    paper: LuccePaper,
    every: usize,
    calls: usize,
    decoded: Vec<Result<Vec<Frame>, Undecodable>>,
}

impl Encoding for Forgetful {
    fn name(&self) -> &'static str {
        self.paper.name()
    }

    fn start(&mut self, thread: ThreadId, parent: Option<(ThreadId, Frame)>) {
        self.paper.start(thread, parent);
    }

    fn enter(&mut self, thread: ThreadId, edge: Edge) {
        self.paper.enter(thread, edge);
        self.calls += 1;
        if self.calls.is_multiple_of(self.every) {
            let before = self.paper.remembered();
            self.paper.forget();
            assert!(self.paper.remembered() <= before);
        }
    }

    fn leave(&mut self, thread: ThreadId, edge: Edge) {
        self.paper.leave(thread, edge);
    }

    fn current(&mut self, thread: ThreadId, place: Frame) -> Number {
        let number = self.paper.current(thread, place);
        self.decoded.push(self.paper.decode(&number));
        number
    }

    fn decode(&self, number: &Number) -> Result<Vec<Frame>, Undecodable> {
        self.paper.decode(number)
    }

    fn statistics(&self) -> Statistics {
        self.paper.statistics()
    }
}
