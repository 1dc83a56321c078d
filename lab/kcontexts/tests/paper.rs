//! The paper's examples, as far as its text tells them, with its numbers.
//!
//! The drawings of Figures 1 to 6 show programs that the text describes in part. Where it does, the
//! program here is one that fits the description.

mod support;

use std::collections::BTreeMap;

use lucce_kcontexts::*;
use support::*;

fn text(labels: impl IntoIterator<Item = u32>) -> String {
    labels.into_iter().filter_map(char::from_u32).collect()
}

/// Section 1, Figure 1: c is called four times, once by r and three times by b. From e or from a? All
/// contexts of c in the CCT are reached once; ⟨a, b, c⟩ appears three times in it and makes 3/4 of
/// the calls; no longer path is of interest.
#[test]
fn figure_1_a_short_path_leads_to_the_hottest_routine() {
    // e calls b too, which then does not call c.
    let program = calls("rc.abc...dabc....eb.abc.....");
    let tree = tree_of(&program);
    let c = CallLabel(u32::from('c'));
    let forest = tree.forest();
    let in_cct: Vec<_> = forest.nodes().filter(|n| forest.label(*n) == c).collect();
    assert_eq!(in_cct.len(), 4);
    assert!(in_cct.iter().all(|node| forest.count(*node) == 1));

    let edges = paths(tree.inverse(1).unwrap().forest());
    assert_eq!(
        [edges[&path("c")], edges[&path("rc")], edges[&path("bc")]],
        [4, 1, 3]
    );
    assert!(edges.contains_key(&path("eb")) && edges.contains_key(&path("ab")));

    let all = tree.inverse(UNBOUNDED).unwrap();
    let profile = paths(all.forest());
    assert_eq!(profile[&path("abc")], 3);
    assert!(!profile.contains_key(&path("ebc")));
    assert!(
        profile
            .iter()
            .all(|(p, count)| p[0] != c.0 || p.len() <= 3 || *count == 1)
    );

    // The path that makes 75% is the only leaf of c's tree in the 75%-similar ∞-CCF.
    let similar = all.prune_similar(75).unwrap();
    let of_c: Vec<String> = paths(&similar)
        .into_keys()
        .filter(|path| path[0] == c.0)
        .map(text)
        .collect();
    assert_eq!(of_c, ["c", "cb", "cba"]);
}

/// Section 2: "if π = ⟨r, a, b, c, d⟩ is the calling context of d, its 2-context is ⟨b, c, d⟩"; "when
/// k is larger than the length of π, the k-context of v coincides with its full context".
#[test]
fn section_2_the_2_context() {
    let tree = tree_of(&calls("rabcd"));
    let longest = |k| {
        let inverse = tree.inverse(k).unwrap();
        let of_d = paths(inverse.forest())
            .into_keys()
            .filter(|p| p[0] == u32::from('d'));
        of_d.max_by_key(Vec::len).unwrap()
    };
    assert_eq!(longest(2), path("bcd"));
    assert_eq!(longest(4), path("rabcd"));
    assert_eq!(longest(50), path("rabcd"));
}

/// A trace as Figure 2's is described: "the longest activated path has length 3", so that k-context
/// profiling for any k > 3 is the same as for 3; "only counters of paths which start from the root
/// function would be maintained in a CCT".
#[test]
fn figure_2_counters_of_all_activated_paths() {
    let program = calls("rab.b.c..bca...");
    let tree = tree_of(&program);
    assert_eq!(tree.forest().depth(), 3);
    let counters = |k| paths(tree.inverse(k).unwrap().forest());
    assert_eq!(counters(3), oracle(&program).profile(3));
    assert_eq!(counters(4), counters(3));
    assert_eq!(counters(UNBOUNDED), counters(3));
    let by_hand = [
        ("r", 1),
        ("a", 2),
        ("b", 3),
        ("c", 2),
        ("ra", 1),
        ("ab", 2),
        ("ac", 1),
        ("rb", 1),
        ("bc", 1),
        ("ca", 1),
        ("rab", 2),
        ("rac", 1),
        ("rbc", 1),
        ("bca", 1),
        ("rbca", 1),
    ];
    let by_hand: Profile = by_hand.map(|(p, count)| (path(p), count)).into();
    assert_eq!(counters(3), by_hand);
    // The starred ones.
    let in_cct: Profile = paths(tree.forest())
        .into_iter()
        .map(|(path, count)| (path.into_iter().rev().collect(), count))
        .collect();
    let starred = by_hand
        .into_iter()
        .filter(|(path, _)| path.last() == Some(&u32::from('r')));
    assert_eq!(in_cct, starred.collect());
}

/// Definition 4 and the text around Figure 3: prefixes are represented once, counters add up; trees
/// whose roots differ stay apart.
#[test]
fn figure_3_joining_weighted_trees() {
    let mut forest: LabelForest = LabelForest::default();
    let mut join = |trees: &[(&str, u64)]| {
        for (labels, count) in trees {
            let mut labels = labels.chars().map(|c| CallLabel(u32::from(c)));
            let root = forest.find_or_add_root(labels.next().unwrap()).unwrap();
            let node = labels.fold(root, |at, label| {
                forest.find_or_add_child(at, label.into()).unwrap()
            });
            forest.add_weight(node, *count);
        }
    };
    join(&[("a", 3), ("ab", 2), ("abc", 1), ("ad", 4)]);
    join(&[("a", 5), ("ab", 1), ("abe", 2), ("b", 7)]);
    let joined = [
        ("a", 8),
        ("ab", 3),
        ("abc", 1),
        ("abe", 2),
        ("ad", 4),
        ("b", 7),
    ];
    let joined: Profile = joined
        .map(|(path, count)| (path.chars().map(u32::from).collect(), count))
        .into();
    assert_eq!(paths(&forest), joined);
    assert_eq!(forest.trees(), 2);
}

/// Section 3: joining the call tree's root-to-leaf paths gives the CCT.
#[test]
fn section_3_the_cct_is_the_join_of_the_call_trees_paths() {
    let program = calls("rab.b.c..bca...");
    let mut joined: CallingContextTree = CallingContextTree::new();
    for leaf in ["rab", "rab", "rac", "rbca"] {
        let labels: Vec<CallLabel> = leaf.chars().map(|c| CallLabel(u32::from(c))).collect();
        joined.count_context(TraceThreadId(0), &labels, 0).unwrap();
    }
    let joined: Vec<Path> = paths(joined.forest()).into_keys().collect();
    let tree: Vec<Path> = paths(tree_of(&program).forest()).into_keys().collect();
    assert_eq!(joined, tree);
}

/// Figure 4, properties 1 to 7 and (a) to (c) of Section 4.1, on the running example.
#[test]
fn figure_4_properties_of_the_k_ccf() {
    let program = calls("rab.b.c..bca...");
    let tree = tree_of(&program);
    let (n, d) = (tree.forest().len(), tree.forest().depth());
    let r = CallLabel(u32::from('r'));
    let mut smaller: Option<Profile> = None;
    for k in 0..=d + 1 {
        let inverse = tree.inverse(k).unwrap();
        let forest = inverse.forest();
        let now = paths(forest);
        // 2: a tree of depth at most k for each of the four routines.
        assert_eq!(forest.trees(), 4);
        assert!(forest.depth() <= k);
        // 3: its paths are the activated ones.
        assert_eq!(now, oracle(&program).profile(k as usize));
        // 4, 5: each contains the one before; from d on they are equal.
        if let Some(smaller) = smaller {
            assert!(
                smaller
                    .iter()
                    .all(|(path, count)| now.get(path) == Some(count))
            );
            assert!(k <= d || smaller == now);
        }
        smaller = Some(now);
        check_counters(forest, &program);
    }
    let all = tree.inverse(UNBOUNDED).unwrap();
    let leaves = leaves(all.forest());
    // 6, 7: leaves are labelled with the root function; one for each CCT node.
    assert!(leaves.iter().all(|leaf| all.forest().label(*leaf) == r));
    assert_eq!(leaves.len(), n);
}

fn leaves(forest: &LabelForest) -> Vec<ForestNodeId> {
    let degrees = forest.child_counts();
    let leaves = forest
        .nodes()
        .zip(degrees)
        .filter(|(_, degree)| *degree == 0);
    leaves.map(|(node, _)| node).collect()
}

/// (a) counters fall, (b) and are the sum of the children's, (c) those of all leaves are all calls.
fn check_counters(forest: &LabelForest, program: &[Turn]) {
    let mut sums: BTreeMap<ForestNodeId, u64> = BTreeMap::new();
    for node in forest.nodes() {
        if let Some(parent) = forest.parent(node) {
            assert!(forest.count(parent) >= forest.count(node));
            *sums.entry(parent).or_default() += forest.count(node);
        }
    }
    assert!(sums.iter().all(|(node, sum)| forest.count(*node) == *sum));
    let all: u64 = leaves(forest).iter().map(|leaf| forest.count(*leaf)).sum();
    let calls = program
        .iter()
        .filter(|turn| matches!(turn.step, Step::Call(..)));
    assert_eq!(all, calls.count() as u64);
}

/// Section 4.2: "a 0-CCF contains |V| nodes and a 1-CCF contains |V| + |E| nodes".
#[test]
fn section_4_vertices_and_edges() {
    let program = calls("rab.b.c..bca...");
    let mut trace = CallTrace::new(200);
    run(&program, &mut trace);
    let tree = tree_of(&program);
    let size = |k| tree.inverse(k).unwrap().forest().len();
    assert_eq!(size(0), 4);
    assert_eq!(size(1), 4 + trace.edges());
    assert_eq!(trace.edges(), 6);
}

/// Section 4.2: the k-CCF of a chain of n different routines has (n-k)(k+1) + k(k+1)/2 nodes; for
/// k = n/2 that is quadratic. Chain pruning removes the repetition: "eliminated by chain pruning".
#[test]
fn section_4_a_chain() {
    for n in [1u64, 2, 7, 40, 100] {
        let path: Vec<CallLabel> = (0..n as u32).map(CallLabel).collect();
        let mut tree: CallingContextTree = CallingContextTree::new();
        for label in path {
            tree.enter_and_count(TraceThreadId(0), label.into())
                .unwrap();
        }
        let compact = CompactForest::new(tree.forest());
        for k in 0..n {
            let inverse = tree.inverse(k as u32).unwrap();
            let expected = (n - k) * (k + 1) + k * (k + 1) / 2;
            assert_eq!(inverse.forest().len() as u64, expected, "n {n} k {k}");
            assert_eq!(compact.inverse_sizes()[k as usize], expected);
            assert_eq!(inverse.prune_tails().unwrap().forest().len() as u64, n);
            assert_eq!(compact.pruned_sizes()[k as usize], n);
        }
    }
}

/// Figure 5: n = t² + 1; all nodes at a level have the same label but the root's children; "each
/// 2-context ending in a node at level ≥ 4 appears exactly t times in the CCT, but only once in the
/// 2-CCF"; the k-CCF has O(t) nodes.
#[test]
fn figure_5_a_k_ccf_much_smaller_than_the_cct() {
    for t in [4u32, 10, 50] {
        let mut tree: CallingContextTree = CallingContextTree::new();
        let thread = TraceThreadId(0);
        tree.enter_and_count(thread, CallLabel(0).into()).unwrap();
        for child in 1..=t {
            tree.enter_and_count(thread, CallLabel(1000 + child).into())
                .unwrap();
            for level in 2..=t {
                tree.enter_and_count(thread, CallLabel(level).into())
                    .unwrap();
            }
            (0..t).for_each(|_| tree.leave_call(thread).unwrap());
        }
        let n = u64::from(t) * u64::from(t) + 1;
        assert_eq!(tree.forest().len() as u64, n);

        let inverse = tree.inverse(2).unwrap();
        let profile = paths(inverse.forest());
        for level in 4..=t {
            let context = vec![level, level - 1, level - 2];
            assert_eq!(profile[&context], u64::from(t), "its nodes in the CCT");
        }
        // Linear in t: r; t children of it, 2 each; level 2: 1 + 2t; level 3: 2 + t; then 3 each.
        let t = u64::from(t);
        assert_eq!(
            inverse.forest().len() as u64,
            1 + 2 * t + (1 + 2 * t) + (2 + t) + 3 * (t - 3)
        );
    }
}

/// Figure 6, k = 2: the tree with root label h "has no corresponding subtree in the CCT, as it is
/// obtained by joining the two CCT subtrees with labels ⟨h, f, b⟩ and ⟨h, x⟩".
#[test]
fn figure_6_a_2_sf() {
    let program = calls("rahfb....chx....");
    let slabs = slabs_of(&program, 2);
    let forest = slabs.forest();
    let trees = paths(forest);
    let of = |root: char| -> Vec<String> {
        let paths = trees.keys().filter(|path| path[0] == u32::from(root));
        paths.cloned().map(text).collect()
    };
    assert_eq!(of('h'), ["h", "hf", "hfb", "hx"]);
    // Levels 0 to 3 of the CCT: 2k - 1 is the largest depth.
    assert_eq!(of('r'), ["r", "ra", "rah", "rahf", "rc", "rch", "rchx"]);
    // b is at level 4, a slab boundary.
    assert_eq!(of('b'), ["b"]);
    assert_eq!(forest.trees(), 3);
    assert_eq!(
        paths(slabs.inverse(2).unwrap().forest()),
        oracle(&program).profile(2)
    );
    // "we need all counters of nodes in the top regions, except for the tree with root label r, to
    // be first cleared": h counts in its own tree and below r.
    assert_eq!(trees[&vec![u32::from('h')]], 2);
}

/// "k-SF = CCT for all k > d".
#[test]
fn section_5_slabs_higher_than_the_tree_are_the_tree() {
    let program = calls("rahfb....chx....");
    let tree = paths(tree_of(&program).forest());
    for k in [5, 6, 100, UNBOUNDED] {
        assert_eq!(paths(slabs_of(&program, k).forest()), tree);
    }
    assert_ne!(paths(slabs_of(&program, 4).forest()), tree);
}
