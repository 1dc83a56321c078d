//! The paper's Tables 1 and 2 for one program.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::children::{ForestChildren, HashedChildren, IndexedChildren, SiblingLists};
use crate::error::KContextError;
use crate::figures::plotted_heights;
use crate::ids::CallLabel;
use crate::inverse::UNBOUNDED;
use crate::slab::SlabForest;
use crate::trace::CallTrace;
use crate::tree::CallingContextTree;

/// A row of Table 1: numbers of nodes, and the CCT's depth in calls.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ForestSizes {
    /// Routines.
    pub call_graph: u64,
    /// Pairs of caller and callee; not in the paper's table.
    pub call_graph_edges: u64,
    pub cct: u64,
    /// With a node for each call site instead of each callee.
    pub cct_sites: u64,
    /// Activations, or events.
    pub call_tree: u64,
    pub depth: u32,
}

impl ForestSizes {
    /// `sites`: calls labelled by call site and callee; `routine`: the routine of each such label.
    ///
    /// # Errors
    /// A label has no routine.
    pub fn new(sites: &CallTrace, routine: &[CallLabel]) -> Result<Self, KContextError> {
        let by_site = build_tree(sites)?;
        let routines = sites.relabel_trace(routine)?;
        let by_routine = build_tree(&routines)?;
        let forest = by_routine.forest();
        let labels = forest.nodes().map(|node| forest.label(node));
        let labels: std::collections::BTreeSet<CallLabel> = labels.collect();
        Ok(ForestSizes {
            call_graph: labels.len() as u64,
            call_graph_edges: routines.edges() as u64,
            cct: forest.len() as u64,
            cct_sites: by_site.forest().len() as u64,
            call_tree: sites.calls(),
            depth: forest.depth(),
        })
    }
}

fn build_tree(trace: &CallTrace) -> Result<CallingContextTree, KContextError> {
    let mut tree = CallingContextTree::new();
    trace.replay(&mut tree)?;
    Ok(tree)
}

/// A row of Table 2: seconds that building takes, the best of three.
///
/// The plain columns use first child and next sibling, as the paper's do.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BuildTimes {
    /// Of ∞-SF, too.
    pub cct: f64,
    pub sf1: f64,
    pub sf1_indexed: f64,
    /// Of CCT, indexed, too.
    pub sf_inf_indexed: f64,
    /// The smallest k for which siblings are faster than indices, of those that Figure 11 has.
    pub k: Option<u32>,
    /// One hash table for all nodes; not in the paper's table.
    pub cct_hashed: f64,
    pub sf1_hashed: f64,
}

impl BuildTimes {
    /// `depth`: the CCT's. `tick` is called after each measurement.
    ///
    /// # Errors
    /// A forest is too large.
    pub fn new(trace: &CallTrace, depth: u32, tick: &dyn Fn()) -> Result<Self, KContextError> {
        let measured = |seconds| {
            tick();
            seconds
        };
        Ok(BuildTimes {
            cct: measured(time_tree::<SiblingLists>(trace)?),
            sf1: measured(time_slabs::<SiblingLists>(trace, 1)?),
            sf1_indexed: measured(time_slabs::<IndexedChildren>(trace, 1)?),
            sf_inf_indexed: measured(time_slabs::<IndexedChildren>(trace, UNBOUNDED)?),
            k: measured_k(trace, depth, tick)?,
            cct_hashed: measured(time_tree::<HashedChildren>(trace)?),
            sf1_hashed: measured(time_slabs::<HashedChildren>(trace, 1)?),
        })
    }
}

fn measured_k(
    trace: &CallTrace,
    depth: u32,
    tick: &dyn Fn(),
) -> Result<Option<u32>, KContextError> {
    for k in plotted_heights(depth) {
        let siblings = time_slabs::<SiblingLists>(trace, k)?;
        let indexed = time_slabs::<IndexedChildren>(trace, k)?;
        tick();
        if siblings < indexed {
            return Ok(Some(k));
        }
    }
    Ok(None)
}

fn time_tree<C: ForestChildren>(trace: &CallTrace) -> Result<f64, KContextError> {
    time_fastest(|| {
        let mut tree = CallingContextTree::<C>::new();
        trace.replay(&mut tree)?;
        Ok(tree)
    })
}

fn time_slabs<C: ForestChildren>(trace: &CallTrace, k: u32) -> Result<f64, KContextError> {
    time_fastest(|| {
        let mut slabs = SlabForest::<C>::new(k)?;
        trace.replay(&mut slabs)?;
        Ok(slabs)
    })
}

/// Seconds; what is built is dropped when the clock has stopped.
fn time_fastest<T>(
    mut build: impl FnMut() -> Result<T, KContextError>,
) -> Result<f64, KContextError> {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        let built = build()?;
        best = best.min(start.elapsed());
        drop(built);
    }
    Ok(best.as_secs_f64())
}
