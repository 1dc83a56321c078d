//! Contexts recorded in real programs.

mod support;

use lucce_contextkit::{FOP, JAVAC};
use lucce_kcontexts::*;
use support::paths;
use support::recorded::{feed_stacks, read};

#[test]
fn both_inverses_of_real_programs_are_equal() {
    for program in [JAVAC, FOP] {
        let (stacks, _) = read(program);
        let mut tree: CallingContextTree = CallingContextTree::new();
        feed_stacks(&stacks, &mut tree).unwrap();
        let compact = CompactForest::new(tree.forest());
        for k in [1, 2, 3, 5, 10, 20] {
            let mut slabs: SlabForest = SlabForest::new(k).unwrap();
            feed_stacks(&stacks, &mut slabs).unwrap();
            let (from_tree, from_slabs) = (tree.inverse(k).unwrap(), slabs.inverse(k).unwrap());
            assert_eq!(paths(from_tree.forest()), paths(from_slabs.forest()));
            let size = compact.inverse_sizes()[k as usize];
            assert_eq!(from_tree.forest().len() as u64, size);
            let pruned = from_tree.prune_tails().unwrap();
            assert_eq!(
                pruned.forest().len() as u64,
                compact.pruned_sizes()[k as usize]
            );
        }
    }
}

/// Section 7: small values of k make forests that are smaller than the CCT; hot contexts are far
/// fewer than all; short paths tell most.
#[test]
fn real_programs_are_as_section_7_finds_them() {
    for program in [JAVAC, FOP] {
        let (stacks, labels) = read(program);
        let mut trace = CallTrace::new(labels);
        feed_stacks(&stacks, &mut trace).unwrap();
        let bursts = Some(BurstIntervals::PAPER.in_calls());
        let figures = ForestFigures::new(&trace, bursts, &|| ()).unwrap();
        let size = |curve: &Curve, k: u32| curve.iter().find(|(at, _)| *at == k).unwrap().1;
        assert!(size(&figures.k_ccf, 1) < figures.cct);
        assert!(size(&figures.k_sf, 1) < figures.cct);
        assert!(figures.largest_k_sf >= Some(1) && figures.largest_k_ccf >= Some(1));
        assert!(figures.burst_cct.unwrap() < figures.cct);
        assert!(figures.hot_contexts < figures.contexts);
        assert!(figures.largest_pruned_ccf < figures.largest_ccf);
        let depth_90 = figures
            .similar_depth
            .iter()
            .find(|(x, _)| *x == 90)
            .unwrap()
            .1;
        let depth_10 = figures.similar_depth[0].1;
        assert!(depth_90 <= depth_10);
        let mut tree: CallingContextTree = CallingContextTree::new();
        trace.replay(&mut tree).unwrap();
        assert!(depth_90 < f64::from(tree.forest().depth()));
    }
}
