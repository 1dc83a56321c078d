//! The data of the paper's Figures 8 to 13 for one program.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::burst::{BurstIntervals, BurstListener};
use crate::children::HashedChildren;
use crate::compact::CompactForest;
use crate::error::KContextError;
use crate::forest::LabelForest;
use crate::ids::CallLabel;
use crate::slab::SlabForest;
use crate::trace::CallTrace;
use crate::tree::CallingContextTree;

/// Percentages for which similarity is looked at.
const SIMILAR: [u32; 10] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
/// What hot items make together.
const HOT: u32 = 90;
/// The largest k of Figure 10.
const FIGURE_10: u32 = 50;
/// From here on k grows by a quarter in Figure 11.
const EACH: u32 = 16;

/// Everything that Figures 8 to 13 show; lengths are in calls, sizes in nodes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ForestFigures {
    /// Figure 8: x, and the average depth of trees in the x%-similar ∞-CCF.
    pub similar_depth: Vec<(u32, f64)>,
    /// Figure 9.
    pub routines: u64,
    pub hot_routines: u64,
    pub contexts: u64,
    pub hot_contexts: u64,
    /// Figure 10: k, k-contexts, hot k-contexts.
    pub k_contexts: Vec<(u32, u64, u64)>,
    /// Figure 11 and 13.
    pub cct: u64,
    /// Figure 11, by k.
    pub k_ccf: Curve,
    pub k_sf: Curve,
    pub pruned_k_ccf: Curve,
    /// Nodes of the CCT that bursts build.
    pub burst_cct: Option<u64>,
    pub burst_k_sf: Option<Curve>,
    /// Figure 12: the largest k up to which the forest is smaller than the CCT.
    pub largest_k_ccf: Option<u32>,
    pub largest_k_sf: Option<u32>,
    pub largest_pruned: Option<u32>,
    /// Figure 13, in nodes of the CCT: k = 0, k = ∞, k = ∞ pruned.
    pub smallest_ccf: f64,
    pub largest_ccf: f64,
    pub largest_pruned_ccf: f64,
    /// Figure 13: x, and the size of the x%-similar ∞-CCF in nodes of the CCT.
    pub similar_size: Vec<(u32, f64)>,
}

/// Sizes by k.
pub type Curve = Vec<(u32, u64)>;

impl ForestFigures {
    /// `routines`: calls labelled by routine. `tick` is called after each step.
    ///
    /// # Errors
    /// A forest is too large.
    pub fn new(
        routines: &CallTrace,
        bursts: Option<BurstIntervals>,
        tick: &dyn Fn(),
    ) -> Result<Self, KContextError> {
        let mut tree: CallingContextTree = CallingContextTree::new();
        routines.replay(&mut tree)?;
        let burst = bursts
            .map(|bursts| burst_tree(routines, bursts))
            .transpose()?;
        let forest = tree.forest();
        let compact = CompactForest::new(forest);
        tick();
        let ks = plotted_heights(forest.depth());
        let (sizes, pruned) = (compact.inverse_sizes(), compact.pruned_sizes());
        let cct = forest.len() as u64;
        let share = |nodes: u64| nodes as f64 / cct.max(1) as f64;
        let infinite = |sizes: &[u64]| share(sizes.last().copied().unwrap_or(0));
        let by_x = SIMILAR.map(|percent| (percent, compact.similar_size(percent)));
        let counts: Vec<u64> = forest.nodes().map(|node| forest.count(node)).collect();
        let by_routine = sum_by_routine(forest);
        let k_sf = slab_sizes(forest, &ks, tick)?;
        Ok(ForestFigures {
            similar_depth: by_x
                .map(|(x, similar)| (x, similar.depths as f64 / similar.trees.max(1) as f64))
                .into(),
            routines: by_routine.len() as u64,
            hot_routines: count_hottest(by_routine.into_values().collect(), HOT),
            contexts: counts.iter().filter(|count| **count > 0).count() as u64,
            hot_contexts: count_hottest(counts, HOT),
            k_contexts: k_contexts(&compact),
            cct,
            k_ccf: size_curve(&ks, &sizes),
            largest_k_sf: smaller_slabs(forest, &k_sf, tick)?,
            k_sf,
            pruned_k_ccf: size_curve(&ks, &pruned),
            burst_cct: burst.as_ref().map(|burst| burst.forest().len() as u64),
            burst_k_sf: burst
                .map(|burst| slab_sizes(burst.forest(), &ks, tick))
                .transpose()?,
            largest_k_ccf: largest_smaller_k(&sizes, cct),
            largest_pruned: largest_smaller_k(&pruned, cct),
            smallest_ccf: share(sizes.first().copied().unwrap_or(0)),
            largest_ccf: infinite(&sizes),
            largest_pruned_ccf: infinite(&pruned),
            similar_size: by_x.map(|(x, similar)| (x, share(similar.nodes))).into(),
        })
    }
}

fn burst_tree(
    trace: &CallTrace,
    bursts: BurstIntervals,
) -> Result<CallingContextTree, KContextError> {
    let mut bursting = BurstListener::new(bursts, CallingContextTree::new());
    trace.replay(&mut bursting)?;
    Ok(bursting.into_inner())
}

/// How many of the highest counters make `percent` of all together.
#[must_use]
pub fn count_hottest(mut counts: Vec<u64>, percent: u32) -> u64 {
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let total: u128 = counts.iter().copied().map(u128::from).sum();
    let wanted = total * u128::from(percent);
    let mut sum = 0;
    let enough = counts.iter().take_while(|count| {
        let more = sum * 100 < wanted;
        sum += u128::from(**count);
        more
    });
    enough.count() as u64
}

fn sum_by_routine(forest: &LabelForest<HashedChildren>) -> BTreeMap<CallLabel, u64> {
    let mut sums = BTreeMap::new();
    for node in forest.nodes().filter(|node| forest.count(*node) > 0) {
        let sum: &mut u64 = sums.entry(forest.label(node)).or_default();
        *sum = sum.saturating_add(forest.count(node));
    }
    sums
}

/// Each k at first, then a quarter more, up to a little more than the depth; 50 is among them.
pub(crate) fn plotted_heights(depth: u32) -> Vec<u32> {
    let most = depth.saturating_add(1);
    let next = |k: &u32| Some(k.saturating_add(k / 4)).filter(|_| *k < most);
    let each = 1..EACH.min(most.saturating_add(1));
    let rest = std::iter::successors(Some(EACH).filter(|k| *k <= most), next);
    let mut heights: Vec<u32> = each.chain(rest).collect();
    let place = heights.partition_point(|k| *k < FIGURE_10);
    if heights.get(place).is_some_and(|k| *k != FIGURE_10) {
        heights.insert(place, FIGURE_10);
    }
    heights
}

/// Sizes beyond the last are as the last.
fn size_curve(ks: &[u32], sizes: &[u64]) -> Curve {
    let last = sizes.last().copied().unwrap_or(0);
    let size = |k: u32| sizes.get(k as usize).copied().unwrap_or(last);
    ks.iter().map(|k| (*k, size(*k))).collect()
}

fn slab_sizes(
    tree: &LabelForest<HashedChildren>,
    ks: &[u32],
    tick: &dyn Fn(),
) -> Result<Curve, KContextError> {
    let size = |k: &u32| {
        tick();
        slab_size(tree, *k).map(|size| (*k, size))
    };
    ks.iter().map(size).collect()
}

fn slab_size(tree: &LabelForest<HashedChildren>, k: u32) -> Result<u64, KContextError> {
    let slabs = SlabForest::<HashedChildren>::from_tree(k, tree)?;
    Ok(slabs.forest().len() as u64)
}

/// The last k before the first whose size is not below the CCT's.
fn largest_smaller_k(sizes: &[u64], cct: u64) -> Option<u32> {
    let below = sizes.iter().take_while(|size| **size < cct).count();
    (below as u32).checked_sub(1)
}

/// The last k whose slabs are smaller than the CCT; sizes of slabs are known for some k only: between the last that is smaller and the
/// first that is not, sizes are taken to grow.
fn smaller_slabs(
    tree: &LabelForest<HashedChildren>,
    sizes: &Curve,
    tick: &dyn Fn(),
) -> Result<Option<u32>, KContextError> {
    let cct = tree.len() as u64;
    let below = sizes.iter().take_while(|(_, size)| *size < cct).count();
    let k = |at: Option<usize>| at.and_then(|at| sizes.get(at)).map(|(k, _)| *k);
    let Some(mut smaller) = k(below.checked_sub(1)) else {
        return Ok(None);
    };
    let mut not = k(Some(below)).unwrap_or(smaller + 1);
    while not - smaller > 1 {
        tick();
        let middle = smaller + (not - smaller) / 2;
        match slab_size(tree, middle)? < cct {
            true => smaller = middle,
            false => not = middle,
        }
    }
    Ok(Some(smaller))
}

fn k_contexts(compact: &CompactForest) -> Vec<(u32, u64, u64)> {
    let ks = 0..=compact.depth().min(FIGURE_10);
    ks.map(|k| {
        let contexts = compact.context_counts(k);
        (k, contexts.len() as u64, count_hottest(contexts, HOT))
    })
    .collect()
}

#[cfg(test)]
mod figures_tests {
    use super::*;

    #[test]
    fn heights_go_a_little_beyond_the_depth() {
        assert_eq!(plotted_heights(0), [1]);
        assert_eq!(plotted_heights(3), [1, 2, 3, 4]);
        let all = plotted_heights(60);
        assert_eq!(all[..16], (1..=16).collect::<Vec<u32>>());
        assert_eq!(all[16..], [20, 25, 31, 38, 47, 50, 58, 72]);
        assert!(plotted_heights(u32::MAX).len() < 120);
    }
}
