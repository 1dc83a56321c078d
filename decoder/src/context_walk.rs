//! Folds the frames of contexts, from the thread's entry to the event; frames that contexts share are folded once.
//!
//! ```text
//! entry ── f ── g ── g ── g ── h ── EVENT
//!                    ↑ memo    ←── walk up    until a memo or the entry,
//!                    └── fold down ──►        then down again over the frames that were met
//! ```
//! A place is a context id with the method of its next frame. Whether a place has a memo depends only on the place. So two
//! walks that meet reach a memo soon after, and memory does not grow with the lengths of paths.

use lucce_callgraph::{ContextFrame, ContextId, DecodeError, MethodId, VersionedGraph};
use rustc_hash::FxHashMap;

use crate::profile::MethodInContext;

/// The value of a path, computed from its callers' value and one more frame.
pub(crate) trait PathFold {
    type Value: Copy;

    /// The value of no frames.
    const EMPTY: Self::Value;

    /// One place in this number has a memo; a power of two. A walk passes this number of known places on average before it
    /// finds a memo. Half the number shortens walks by half and takes twice the memory.
    const MEMO_SPACING: u64;

    /// The value for one more callee.
    ///
    /// # Errors
    /// There is no value: the context counts as not decodable.
    fn push_frame(
        &mut self,
        callers: Self::Value,
        frame: ContextFrame,
    ) -> Result<Self::Value, DecodeError>;
}

#[derive(Clone, Copy)]
pub(crate) struct WalkLimits {
    /// Maximum number of frames of a context, with the event's own.
    pub frames: usize,
    /// Maximum number of memos. Beyond it no memo is added, and more frames are decoded again.
    pub memos: usize,
}

impl Default for WalkLimits {
    fn default() -> Self {
        WalkLimits {
            frames: VersionedGraph::MAX_FRAMES,
            memos: usize::MAX,
        }
    }
}

/// The walks of one [`PathFold`] over the contexts of a run.
pub(crate) struct ContextWalker<'g, V> {
    graph: &'g VersionedGraph,
    limits: WalkLimits,
    memos: FxHashMap<PackedPosition, V>,
    /// The frames of one walk, innermost first, each with its own place. Empty between walks; kept to reuse its memory.
    path: Vec<(MethodInContext, ContextFrame)>,
}

impl<'g, V: Copy> ContextWalker<'g, V> {
    pub fn new(graph: &'g VersionedGraph, limits: WalkLimits) -> Self {
        ContextWalker {
            graph,
            limits,
            memos: FxHashMap::default(),
            path: Vec::new(),
        }
    }

    /// The value of an event's context, and the frame of the event; `None`: the context has no frames.
    ///
    /// # Errors
    /// The log does not explain this context id, or it has more frames than the limit.
    pub fn walk_context<F: PathFold<Value = V>>(
        &mut self,
        fold: &mut F,
        id: ContextId,
    ) -> Result<(V, Option<ContextFrame>), DecodeError> {
        let Some((parent, leaf)) = self.graph.find_caller(id, MethodId::EVENT)? else {
            return Ok((F::EMPTY, None));
        };
        let mut value = self.walk_up::<F>((parent, leaf.method))?;
        while let Some((place, frame)) = self.path.pop() {
            value = fold.push_frame(value, frame)?;
            if has_memo(place, F::MEMO_SPACING) && self.memos.len() < self.limits.memos {
                self.memos.insert(place.into(), value);
            }
        }
        Ok((fold.push_frame(value, leaf)?, Some(leaf)))
    }

    /// Walks to the nearest callers with a memo. Above a memo no step can fail, since an earlier walk went there.
    fn walk_up<F: PathFold<Value = V>>(
        &mut self,
        mut at: MethodInContext,
    ) -> Result<V, DecodeError> {
        self.path.clear();
        loop {
            if has_memo(at, F::MEMO_SPACING)
                && let Some(value) = self.memos.get(&at.into())
            {
                return Ok(*value);
            }
            let Some((parent, frame)) = self.graph.find_caller(at.0, at.1)? else {
                return Ok(F::EMPTY);
            };
            // The event's own frame also counts.
            if self.path.len() + 1 >= self.limits.frames {
                return Err(DecodeError::TooDeep);
            }
            self.path.push((at, frame));
            at = (parent, frame.method);
        }
    }

    #[cfg(test)]
    pub fn memo_count(&self) -> usize {
        self.memos.len()
    }
}

/// A place without padding: there are millions of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PackedPosition([u32; 3]);

impl From<MethodInContext> for PackedPosition {
    fn from((id, method): MethodInContext) -> PackedPosition {
        PackedPosition([id.0 as u32, (id.0 >> 32) as u32, method.0])
    }
}

/// Whether a place has a memo. The multiplication spreads ids that differ by a constant, as in a recursion.
fn has_memo((id, method): MethodInContext, spacing: u64) -> bool {
    let mixed = (id.0 ^ u64::from(method.0) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.leading_zeros() >= spacing.ilog2()
}
