//! What the paper proves, on random programs; every number against the plain definition.

mod support;

use std::collections::BTreeMap;

use lucce_kcontexts::*;
use proptest::prelude::*;
use support::*;

/// The largest k that is looked at one by one.
const FEW: u32 = 9;

fn lengths(depth: u32) -> Vec<u32> {
    (0..=depth.min(FEW))
        .chain([depth, depth + 1, UNBOUNDED])
        .collect()
}

proptest! {
    #![proptest_config(config())]

    /// Definition 3, Properties 1 and 2: both inverses are the profile.
    #[test]
    fn both_inverses_are_the_k_context_profile(turns in turns()) {
        let (tree, oracle) = (tree_of(&turns), oracle(&turns));
        for k in lengths(tree.forest().depth()) {
            let profile = oracle.profile(k as usize);
            prop_assert_eq!(&paths(tree.inverse(k).unwrap().forest()), &profile);
            let slabs = slabs_of(&turns, k.max(1));
            prop_assert_eq!(&paths(slabs.inverse(k).unwrap().forest()), &profile);
        }
    }

    /// Slabs hold what shorter contexts need, too, and say so where they do not.
    #[test]
    fn high_slabs_give_all_shorter_contexts(turns in turns(), k in 1..FEW) {
        let (slabs, oracle) = (slabs_of(&turns, k), oracle(&turns));
        for shorter in 0..=k {
            let inverse = slabs.inverse(shorter).unwrap();
            prop_assert_eq!(paths(inverse.forest()), oracle.profile(shorter as usize));
        }
        prop_assert_eq!(slabs.inverse(k + 1).err(), Some(KContextError::Height));
    }

    /// Definition 7: joined from the CCT's subtrees, of depth at most 2k - 1, at levels 0, k, 2k, …
    #[test]
    fn slabs_match_their_definition(turns in turns(), k in 1..FEW) {
        let tree = tree_of(&turns);
        let forest = tree.forest();
        let mut expected: Profile = Profile::new();
        for node in forest.nodes() {
            let mut path: Path = forest.labels_upwards(node).map(|label| label.0).collect();
            path.reverse();
            let level = path.len() - 1;
            for boundary in (0..=level).step_by(k as usize) {
                if level - boundary < 2 * k as usize {
                    *expected.entry(path[boundary..].to_vec()).or_default() += forest.count(node);
                }
            }
        }
        prop_assert_eq!(&paths(slabs_of(&turns, k).forest()), &expected);
        prop_assert_eq!(&paths(SlabForest::<HashedChildren>::from_tree(k, forest).unwrap().forest()), &expected);
        // Lemma 2.
        prop_assert!(expected.len() <= 2 * forest.len());
    }

    /// The CCT has a node for every stack that ever was.
    #[test]
    fn the_tree_holds_all_stacks(turns in turns()) {
        let (tree, oracle) = (tree_of(&turns), oracle(&turns));
        let now: Vec<Path> = paths(tree.forest()).into_keys().collect();
        prop_assert_eq!(now, oracle.contexts.into_iter().collect::<Vec<_>>());
        let counted = paths(tree.forest()).into_iter().filter(|(_, count)| *count > 0);
        let expected = oracle.stacks_counted.into_iter().filter(|(_, count)| *count > 0);
        prop_assert!(counted.eq(expected));
    }

    /// Section 5.2, "constant worst-case time per trace operation", in operations: a call is at most
    /// two look-ups and two new nodes, each look-up one entry; whatever k, and whatever the depth.
    #[test]
    fn a_call_takes_constantly_many_operations(turns in turns(), k in 1..FEW) {
        let mut tree: CallingContextTree = CallingContextTree::new();
        let mut slabs: SlabForest = SlabForest::new(k).unwrap();
        let mut indexed: SlabForest<IndexedChildren> = SlabForest::new(k).unwrap();
        let mut depth = 0u32;
        for turn in turns.iter().filter(|turn| turn.thread == 0) {
            let before = [tree.forest().work(), slabs.forest().work(), indexed.forest().work()];
            let is_call = matches!(turn.step, Step::Call(..));
            match turn.step {
                Step::Call(label, weight) => {
                    for listener in [&mut tree as &mut dyn CallListener, &mut slabs, &mut indexed] {
                        listener.enter_call(TraceThreadId(0), CallLabel(label).into()).unwrap();
                        listener.add_count(TraceThreadId(0), weight).unwrap();
                    }
                    depth += 1;
                }
                Step::Return if depth > 0 => {
                    for listener in [&mut tree as &mut dyn CallListener, &mut slabs, &mut indexed] {
                        listener.leave_call(TraceThreadId(0)).unwrap();
                    }
                    depth -= 1;
                }
                Step::Return => {}
            }
            let after = [tree.forest().work(), slabs.forest().work(), indexed.forest().work()];
            let most = |regions| if is_call { regions } else { 0 };
            for ((before, after), regions) in before.iter().zip(after).zip([1, 2, 2]) {
                prop_assert!(after.lookups - before.lookups <= most(regions));
                prop_assert!(after.looked - before.looked <= most(regions));
                prop_assert!(after.made - before.made <= most(regions));
            }
        }
    }

    /// Lemma 1: O(kn): at most k + 1 look-ups for each node.
    #[test]
    fn an_inverse_takes_k_operations_per_node(turns in turns(), k in 0..FEW) {
        let tree = tree_of(&turns);
        let work = tree.inverse(k).unwrap().forest().work();
        prop_assert!(work.lookups <= u64::from(k + 1) * tree.forest().len() as u64);
        prop_assert_eq!(work.lookups, work.looked);
    }

    /// All three ways to find children give the same forests.
    #[test]
    fn representations_differ_in_speed_only(turns in turns(), k in 1..FEW) {
        let mut trace = CallTrace::new(6);
        run(&turns, &mut trace);
        let mut siblings: SlabForest<SiblingLists> = SlabForest::new(k).unwrap();
        let mut indexed: SlabForest<IndexedChildren> = SlabForest::new(k).unwrap();
        trace.replay(&mut siblings).unwrap();
        trace.replay(&mut indexed).unwrap();
        let hashed = paths(slabs_of(&turns, k).forest());
        prop_assert_eq!(&paths(siblings.forest()), &hashed);
        prop_assert_eq!(&paths(indexed.forest()), &hashed);
    }

    /// Section 6: what pruning cut can be read from the forest that the k-CCF was made from, and only
    /// chains were cut.
    #[test]
    fn pruned_forests_lose_nothing(turns in turns(), k in 1..FEW) {
        let (tree, slabs) = (tree_of(&turns), slabs_of(&turns, k));
        let whole = tree.inverse(k).unwrap();
        let expected = paths(whole.forest());
        let pruned = whole.prune_tails().unwrap();
        prop_assert_eq!(&restored(&pruned, tree.forest()), &expected);
        let from_slabs = slabs.inverse(k).unwrap().prune_tails().unwrap();
        prop_assert_eq!(&restored(&from_slabs, slabs.forest()), &expected);
        prop_assert_eq!(paths(pruned.forest()), pruned_by_definition(&expected));
    }

    /// The compact ∞-CCF knows the sizes of all k-CCFs, pruned and similar ones, and the k-contexts.
    #[test]
    fn the_compact_forest_represents_all_contexts(turns in turns(), percent in 1..=100u32) {
        let (tree, oracle) = (tree_of(&turns), oracle(&turns));
        let compact = CompactForest::new(tree.forest());
        let infinite = tree.inverse(UNBOUNDED).unwrap();
        prop_assert_eq!(compact.depth(), infinite.forest().depth());
        let (sizes, pruned) = (compact.inverse_sizes(), compact.pruned_sizes());
        prop_assert_eq!(sizes.len(), compact.depth() as usize + 1);
        for k in 0..=compact.depth() {
            let inverse = tree.inverse(k).unwrap();
            prop_assert_eq!(sizes[k as usize], inverse.forest().len() as u64);
            let by_rule = inverse.prune_tails().unwrap();
            prop_assert_eq!(pruned[k as usize], by_rule.forest().len() as u64);
            prop_assert_eq!(sorted(compact.context_counts(k)), sorted(oracle.k_contexts(k as usize)));
        }
        let similar = infinite.prune_similar(percent).unwrap();
        let mut depths: BTreeMap<u32, u32> = BTreeMap::new();
        for path in paths(&similar).into_keys() {
            let depth = depths.entry(path[0]).or_default();
            *depth = (*depth).max(path.len() as u32 - 1);
        }
        let depths = depths.into_values().map(u64::from).sum();
        let (nodes, trees) = (similar.len() as u64, similar.trees() as u64);
        prop_assert_eq!(compact.similar_size(percent), SimilarForestSize { nodes, depths, trees });
    }

    /// Section 6: c(u) ≥ (x/100) c(r), no less and no more.
    #[test]
    fn similar_forests_hold_what_is_similar(turns in turns(), percent in 1..=100u32, k in 0..FEW) {
        let inverse = tree_of(&turns).inverse(k).unwrap();
        let all = paths(inverse.forest());
        let similar = |path: &Path, count: u64| count * 100 >= u64::from(percent) * all[&path[..1]];
        let expected = all.clone().into_iter().filter(|(path, count)| similar(path, *count));
        prop_assert_eq!(paths(&inverse.prune_similar(percent).unwrap()), expected.collect());
    }

    /// Properties (a) to (c) and 6, 7, where they are claimed: no recursion of the root function.
    #[test]
    fn counters_are_as_section_4_says(turns in plain_turns()) {
        let tree = tree_of(&turns);
        let calls = turns.iter().filter(|turn| matches!(turn.step, Step::Call(..))).count() as u64;
        for k in lengths(tree.forest().depth()) {
            let inverse = tree.inverse(k).unwrap();
            let forest = inverse.forest();
            let degrees = forest.child_counts();
            let mut below = vec![0; forest.len()];
            let (mut leaves, mut at_leaves) = (0, 0);
            for (node, degree) in forest.nodes().zip(&degrees) {
                if let Some(parent) = forest.parent(node) {
                    prop_assert!(forest.count(parent) >= forest.count(node));
                    below[index(forest, parent)] += forest.count(node);
                }
                if *degree == 0 {
                    leaves += 1;
                    at_leaves += forest.count(node);
                    prop_assert!(k <= forest.depth() || forest.label(node) == CallLabel(100));
                }
            }
            for ((node, degree), below) in forest.nodes().zip(degrees).zip(below) {
                prop_assert!(degree == 0 || forest.count(node) == below);
            }
            prop_assert_eq!(at_leaves, calls);
            prop_assert!(k < tree.forest().depth() || leaves == tree.forest().len());
        }
    }

    /// Bursts that never pause change nothing; others count what falls into them, under the true stack.
    #[test]
    fn bursts_count_what_falls_into_them(turns in turns(), length in 1..20u64, pause in 0..40u64) {
        let interval = length + pause;
        let bursts = BurstIntervals { length, interval, unit: IntervalUnit::Calls };
        let mut bursting = BurstListener::new(bursts, CallingContextTree::<HashedChildren>::new());
        run(&turns, &mut bursting);
        let heard = paths(bursting.into_inner().forest());
        let mut expected = Sampled { oracle: Oracle::default(), bursts, now: 0, counted: Profile::new() };
        run(&turns, &mut expected);
        let counted = heard.iter().filter(|(_, count)| **count > 0);
        let expected = expected.counted.iter().filter(|(_, count)| **count > 0);
        prop_assert!(counted.eq(expected));
        if pause == 0 {
            prop_assert_eq!(heard, paths(tree_of(&turns).forest()));
        }
    }

    /// A call is an enter that counts 1, also in memory.
    #[test]
    fn calls_are_enters_that_count(turns in plain_turns()) {
        struct Calls<'t>(&'t mut CallTrace);
        impl CallListener for Calls<'_> {
            fn enter_call(&mut self, thread: TraceThreadId, callee: LabeledCallee) -> Result<(), KContextError> {
                self.0.enter_and_count(thread, callee)
            }
            fn add_count(&mut self, _: TraceThreadId, _: u64) -> Result<(), KContextError> {
                Ok(())
            }
            fn leave_call(&mut self, thread: TraceThreadId) -> Result<(), KContextError> {
                self.0.leave_call(thread)
            }
        }
        let mut trace = CallTrace::new(101);
        run(&turns, &mut Calls(&mut trace));
        let same: Vec<CallLabel> = (0..101).map(CallLabel).collect();
        let again = trace.relabel_trace(&same).unwrap();
        prop_assert_eq!(again.events(), trace.events());
        prop_assert_eq!(again.calls(), trace.calls());
        let mut tree: CallingContextTree = CallingContextTree::new();
        again.replay(&mut tree).unwrap();
        prop_assert_eq!(paths(tree.forest()), paths(tree_of(&turns).forest()));
    }

    /// What is in memory is what was heard.
    #[test]
    fn a_trace_replays_the_recorded_calls(turns in turns()) {
        let mut trace = CallTrace::new(6);
        run(&turns, &mut trace);
        let mut tree: CallingContextTree = CallingContextTree::new();
        trace.replay(&mut tree).unwrap();
        prop_assert_eq!(paths(tree.forest()), paths(tree_of(&turns).forest()));
        let (tree, mut by_half) = (tree_of(&turns), Profile::new());
        let halves: Vec<CallLabel> = (0..6).map(|label| CallLabel(label / 2)).collect();
        for (path, count) in paths(tree.forest()) {
            *by_half.entry(path.into_iter().map(|label| label / 2).collect()).or_default() += count;
        }
        let mut halved: CallingContextTree = CallingContextTree::new();
        trace.relabel_trace(&halves).unwrap().replay(&mut halved).unwrap();
        prop_assert_eq!(&paths(halved.forest()), &by_half);
        let half = |node| halves[tree.forest().label(node).0 as usize];
        prop_assert_eq!(paths(&tree.forest().relabel_nodes(half).unwrap()), by_half);
    }

    /// A tree replayed as calls is the same tree, and calls are in order.
    #[test]
    fn a_tree_replayed_as_calls_is_the_tree(turns in turns()) {
        let tree = tree_of(&turns);
        let mut trace = CallTrace::new(6);
        tree.forest().walk_contexts(&mut trace).unwrap();
        let enters = trace.events().iter().filter(|event| matches!(event, TraceEvent::Enter(_)));
        prop_assert_eq!(enters.count(), tree.forest().len());
        let mut again: CallingContextTree = CallingContextTree::new();
        trace.replay(&mut again).unwrap();
        prop_assert_eq!(paths(again.forest()), paths(tree.forest()));
        let leaves = trace.events().iter().filter(|event| **event == TraceEvent::Leave);
        prop_assert_eq!(leaves.count(), tree.forest().len());
    }

    /// The fewest that reach the share, and no fewer.
    #[test]
    fn hot_counters_are_the_fewest(counts in prop::collection::vec(0..50u64, 0..40), percent in 0..=100u32) {
        let number = count_hottest(counts.clone(), percent) as usize;
        let mut sorted = sorted(counts);
        sorted.reverse();
        let total: u64 = sorted.iter().sum();
        let enough = |n: usize| sorted[..n].iter().sum::<u64>() * 100 >= total * u64::from(percent);
        prop_assert!(enough(number));
        prop_assert!(number == 0 || !enough(number - 1));
    }
}

fn index(forest: &LabelForest, node: ForestNodeId) -> usize {
    forest.nodes().position(|other| other == node).unwrap()
}

fn sorted(mut list: Vec<u64>) -> Vec<u64> {
    list.sort_unstable();
    list
}

/// The k-CCF that was pruned.
fn restored<C>(pruned: &PrunedForest, source: &LabelForest<C>) -> Profile {
    let mut all = paths(pruned.forest());
    for node in pruned.forest().nodes() {
        let mut path: Path = pruned
            .forest()
            .labels_upwards(node)
            .map(|label| label.0)
            .collect();
        path.reverse();
        for label in pruned.cut_to_length(source, node) {
            path.push(label.0);
            let twice = all.insert(path.clone(), pruned.forest().count(node));
            assert_eq!(twice, None);
        }
    }
    all
}

/// A path is cut if what follows the path before its last label is one chain with one counter.
fn pruned_by_definition(all: &Profile) -> Profile {
    let is_chain = |path: &[u32]| {
        let below = all
            .iter()
            .filter(|(other, _)| other.len() > path.len() && other.starts_with(path));
        let below: Vec<_> = below.collect();
        let lengths: Vec<usize> = below.iter().map(|(other, _)| other.len()).collect();
        let different: std::collections::BTreeSet<usize> = lengths.iter().copied().collect();
        different.len() == lengths.len() && below.iter().all(|(_, count)| **count == all[path])
    };
    let kept = all
        .iter()
        .filter(|(path, _)| path.len() == 1 || !is_chain(&path[..path.len() - 1]));
    kept.map(|(path, count)| (path.clone(), *count)).collect()
}

/// The plain stacks, looked at in bursts of calls.
struct Sampled {
    oracle: Oracle,
    bursts: BurstIntervals,
    now: u64,
    counted: Profile,
}

impl CallListener for Sampled {
    fn enter_call(
        &mut self,
        thread: TraceThreadId,
        callee: LabeledCallee,
    ) -> Result<(), KContextError> {
        self.oracle.enter_call(thread, callee)
    }

    fn add_count(&mut self, thread: TraceThreadId, weight: u64) -> Result<(), KContextError> {
        if self.now % self.bursts.interval < self.bursts.length {
            let before = self.oracle.stacks_counted.clone();
            self.oracle.add_count(thread, weight)?;
            for (stack, count) in &self.oracle.stacks_counted {
                let old = before.get(stack).copied().unwrap_or(0);
                *self.counted.entry(stack.clone()).or_default() += count - old;
            }
        }
        self.now += 1;
        Ok(())
    }

    fn leave_call(&mut self, thread: TraceThreadId) -> Result<(), KContextError> {
        self.oracle.leave_call(thread)
    }
}
