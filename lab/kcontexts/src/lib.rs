//! k-calling contexts: the paths of at most k calls that lead to each routine, and how often.
//!
//! After Ausiello, Demetrescu, Finocchi and Firmani, "k-Calling Context Profiling" (OOPSLA 2012);
//! sections, figures and words below are that paper's.
//!
//! ```text
//! calls ──► Listener ──► CallingContextTree ──┬─► inverse(k) ──► ContextForest (k-CCF)
//!              │  └────► SlabForest (k-SF) ───┘                    ├─► pruned
//!              │                                                   └─► similar(x)
//!              └─ Bursting, Trace       CallingContextTree ──► CompactForest (all k at once)
//! ```
//! Reading order: `ids`, `error`, `listener` (what calls are), `children` and `forest` (labelled
//! trees), `tree` (CCT), `slab` (k-SF), `inverse` (k-CCF), `prune`, `similar`, `compact` (the
//! ∞-CCF in linear space), `burst`, `trace` (calls in memory), `tables` and `figures` (the paper's,
//! for any program).
//!
//! *Architecture Invariant*: this crate knows no JVM, no file and no name; a label is a number.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod ids;

mod error;
mod listener;

mod children;
mod forest;
mod stacks;
mod walk;

mod slab;
mod tree;

mod inverse;
mod prune;
mod similar;

mod compact;

mod burst;
mod trace;

mod figures;
mod tables;

pub use burst::{BurstIntervals, BurstListener, IntervalUnit};
pub use children::{ForestChildren, HashedChildren, IndexedChildren, SiblingLists};
pub use compact::{CompactForest, SimilarForestSize};
pub use error::KContextError;
pub use figures::{Curve, ForestFigures, count_hottest};
pub use forest::{ForestWork, LabelForest};
pub use ids::{CallLabel, ForestNodeId, LabeledCallee, TraceThreadId};
pub use inverse::{ContextForest, UNBOUNDED};
pub use listener::CallListener;
pub use prune::{PrunedChain, PrunedForest};
pub use slab::SlabForest;
pub use tables::{BuildTimes, ForestSizes};
pub use trace::{CallTrace, TraceEvent};
pub use tree::CallingContextTree;
