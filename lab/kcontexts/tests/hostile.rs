//! Streams that are none: an error, never a panic.

mod support;

use lucce_kcontexts::*;
use proptest::prelude::*;
use support::*;

#[derive(Clone, Copy, Debug)]
enum Any {
    Enter(u32),
    Count(u64),
    Leave,
    Time(u64),
}

fn anything() -> impl Strategy<Value = Vec<(u64, Any)>> {
    let what = prop_oneof![
        prop_oneof![0..4u32, any::<u32>()].prop_map(Any::Enter),
        prop_oneof![Just(1u64), Just(0), any::<u64>()].prop_map(Any::Count),
        Just(Any::Leave),
        any::<u64>().prop_map(Any::Time),
    ];
    prop::collection::vec(
        (prop_oneof![Just(0u64), Just(1), any::<u64>()], what),
        0..200,
    )
}

/// Tells all of it; what is refused is left out. Gives the number of refusals.
fn feed(stream: &[(u64, Any)], listener: &mut impl CallListener) -> usize {
    let results = stream.iter().map(|(thread, any)| match *any {
        Any::Enter(label) => listener.enter_call(TraceThreadId(*thread), CallLabel(label).into()),
        Any::Count(weight) => listener.add_count(TraceThreadId(*thread), weight),
        Any::Leave => listener.leave_call(TraceThreadId(*thread)),
        Any::Time(nanos) => {
            listener.set_time(nanos);
            Ok(())
        }
    });
    results.filter(Result::is_err).count()
}

/// What cannot be, by plain counting.
fn wrong(stream: &[(u64, Any)]) -> usize {
    let mut depths = std::collections::BTreeMap::new();
    let mut wrong = 0;
    for (thread, any) in stream {
        let depth: &mut u64 = depths.entry(thread).or_default();
        match any {
            Any::Enter(_) => *depth += 1,
            Any::Count(_) | Any::Leave if *depth == 0 => wrong += 1,
            Any::Leave => *depth -= 1,
            _ => {}
        }
    }
    wrong
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_stream_is_built_or_refused(stream in anything(), k in 1..5u32, cut in 0..200usize) {
        // A stream that is cut off is a program that still runs.
        let stream = &stream[..cut.min(stream.len())];
        let wrong = wrong(stream);
        let mut tree: CallingContextTree = CallingContextTree::new();
        let mut slabs: SlabForest = SlabForest::new(k).unwrap();
        let bursts = BurstIntervals { length: 3, interval: 7, unit: IntervalUnit::Time };
        let mut bursting = BurstListener::new(bursts, CallingContextTree::<SiblingLists>::new());
        let mut trace = CallTrace::new(u32::MAX);
        prop_assert_eq!(feed(stream, &mut tree), wrong);
        prop_assert_eq!(feed(stream, &mut slabs), wrong);
        prop_assert_eq!(feed(stream, &mut bursting), wrong);
        prop_assert!(feed(stream, &mut trace) >= wrong);
        let _ = (tree.inverse(k).unwrap().prune_tails(), slabs.inverse(k).unwrap().prune_similar(50));
        let compact = CompactForest::new(tree.forest());
        let _ = (compact.inverse_sizes(), compact.pruned_sizes(), compact.similar_size(50), compact.context_counts(k));
    }
}

#[test]
fn an_exit_without_an_enter_is_named() {
    let mut tree: CallingContextTree = CallingContextTree::new();
    tree.enter_and_count(TraceThreadId(1), CallLabel(0).into())
        .unwrap();
    assert_eq!(
        tree.leave_call(TraceThreadId(7)),
        Err(KContextError::NothingToLeave(TraceThreadId(7)))
    );
    assert_eq!(tree.leave_call(TraceThreadId(1)), Ok(()));
    assert_eq!(
        tree.leave_call(TraceThreadId(1)),
        Err(KContextError::NothingToLeave(TraceThreadId(1)))
    );
    assert_eq!(
        tree.add_count(TraceThreadId(1), 5),
        Err(KContextError::NothingEntered(TraceThreadId(1)))
    );
    assert_eq!(
        tree.count_context(TraceThreadId(2), &[], 1),
        Err(KContextError::NothingEntered(TraceThreadId(2)))
    );
}

#[test]
fn labels_that_nobody_announced_are_refused() {
    let mut trace = CallTrace::new(3);
    let unknown = Err(KContextError::UnknownLabel(CallLabel(3), 3));
    assert_eq!(
        trace.enter_and_count(TraceThreadId(0), CallLabel(3).into()),
        unknown
    );
    trace
        .enter_and_count(TraceThreadId(0), CallLabel(2).into())
        .unwrap();
    assert_eq!(trace.events().len(), 2);
    let without_name = trace.relabel_trace(&[CallLabel(0), CallLabel(1)]).err();
    assert_eq!(
        without_name,
        Some(KContextError::UnknownLabel(CallLabel(2), 2))
    );
}

#[test]
fn slabs_have_a_height() {
    assert_eq!(
        SlabForest::<HashedChildren>::new(0).err(),
        Some(KContextError::Height)
    );
}

/// Stacks deeper than any thread's own: nothing here recurs.
#[test]
fn deep_recursion_is_no_danger() {
    let mut tree: CallingContextTree = CallingContextTree::new();
    let mut slabs: SlabForest = SlabForest::new(10).unwrap();
    for depth in 0..300_000u32 {
        tree.enter_and_count(TraceThreadId(0), CallLabel(depth % 3).into())
            .unwrap();
        slabs
            .enter_and_count(TraceThreadId(0), CallLabel(depth % 3).into())
            .unwrap();
    }
    assert_eq!(tree.forest().depth(), 299_999);
    // Slabs are few however deep it is: three trees of 20 levels.
    assert_eq!(slabs.forest().len(), 60);
    let (from_tree, from_slabs) = (tree.inverse(10).unwrap(), slabs.inverse(10).unwrap());
    assert_eq!(paths(from_tree.forest()), paths(from_slabs.forest()));
    assert_eq!(from_tree.forest().len(), 33);
    let compact = CompactForest::new(tree.forest());
    // Three trees; each is a chain of as many nodes as there are calls up to its last.
    assert_eq!(
        compact.inverse_sizes().last(),
        Some(&(300_000 + 299_999 + 299_998))
    );
}

#[test]
fn counters_do_not_wrap() {
    let mut tree: CallingContextTree = CallingContextTree::new();
    for _ in 0..2 {
        tree.count_context(TraceThreadId(0), &[CallLabel(1), CallLabel(2)], u64::MAX)
            .unwrap();
    }
    let inverse = tree.inverse(1).unwrap();
    assert_eq!(
        inverse
            .forest()
            .count(inverse.forest().find_root(CallLabel(2)).unwrap()),
        u64::MAX
    );
    assert_eq!(count_hottest(vec![u64::MAX; 3], 90), 3);
}

/// Everything that the tables ask, of a program whose contexts are 200 million labels long together.
#[test]
fn tables_of_deep_recursion_are_no_danger() {
    let depth = 20_000u32;
    let mut trace = CallTrace::new(1);
    for _ in 0..depth {
        trace
            .enter_and_count(TraceThreadId(0), CallLabel(0).into())
            .unwrap();
    }
    let figures =
        ForestFigures::new(&trace, Some(BurstIntervals::PAPER.in_calls()), &|| ()).unwrap();
    // A chain in the ∞-CCF, too; one tree of 2k levels in the k-SF.
    assert_eq!(figures.largest_ccf, 1.0);
    assert_eq!(figures.largest_k_sf, Some((depth - 1) / 2));
    assert_eq!(figures.k_contexts[50], (50, 51, 1));
}
