//! Fingerprints of traces; what traces share is decoded once.
//!
//! A fingerprint is folded from the thread's entry to the event as content ids are, so it exists for each
//! frame's callers too. Of frames with their own ids it is the trace's content id.
//!
//! ```text
//! entry ── f ── g ── g ── g ── h ── EVENT     print(EVENT) = hash(hash(… hash(0, f) …, g), h)
//!                    ↑ memo    ←── walk up    until a memo or the entry,
//!                    └── fold down ──►        then down again over the frames that were met
//! ```
//!
//! Traces that share their first frames meet in them if their numbers do, which is so unless a path
//! was numbered twice. Whether a frame has a memo depends on its own number alone: all walks look
//! and store at the same frames, about one in [`SPACING`], and a walk goes past few frames that an
//! earlier one went past.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::thread;

use lucce_callgraph::{ContextFrame, ContextId, DecodeError, MethodId, VersionedGraph};
use lucce_contentid::{ContentDetail, FrameId, StackId};
use rustc_hash::FxHashMap;

use crate::profile::{MethodInContext, Profile, ProgressTick};

/// Contexts that a worker takes at a time, at least.
const MIN_CHUNK: usize = 256;

/// One frame in so many is looked up and remembered; a power of two.
const SPACING: u64 = 16;

/// Memos of all workers together: as many as a hash table with 2^22 places holds, 180 MB. Beyond
/// them nothing more is remembered, and more is decoded again.
const MAX_MEMOS: usize = 7 << 19;

/// A context in short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TraceFingerprint {
    /// The place of the event.
    pub leaf: Option<ContextFrame>,
    /// Equal for equal traces, and for others not, as far as 128 bits can tell.
    pub fingerprint: StackId,
}

impl TraceFingerprint {
    /// No frame counts.
    pub fn is_empty(&self) -> bool {
        self.fingerprint == StackId::EMPTY
    }
}

impl Profile {
    /// Every context's fingerprint, in the order of `ids`, on all processors. Of a frame in scope, only
    /// what `key` takes of it counts.
    pub(crate) fn fingerprint_traces<K: Hash>(
        &self,
        ids: &[ContextId],
        tick: ProgressTick<'_>,
        key: impl Fn(ContextFrame) -> K + Copy + Send + Sync,
    ) -> Vec<Result<TraceFingerprint, DecodeError>> {
        let step =
            |frame: ContextFrame| self.frame_step(frame, || FrameId(fingerprint_value(key(frame))));
        self.fold_traces(ids, tick, step, |printed| printed)
    }

    /// Every context's content id, in the order of `ids`, on all processors; of each, what `take` makes of it is kept.
    pub(crate) fn fold_stacks<T: Send>(
        &self,
        ids: &[ContextId],
        tick: ProgressTick<'_>,
        take: impl Fn(Result<TraceFingerprint, DecodeError>) -> T + Copy + Send + Sync,
    ) -> Vec<T> {
        let id = |frame: ContextFrame| {
            let shown = self.code.resolve_frame(frame);
            self.code.frame_id(frame, &shown, ContentDetail::ByLine)
        };
        let step = |frame: ContextFrame| self.frame_step(frame, || id(frame));
        self.fold_traces(ids, tick, step, take)
    }

    /// Frames in scope count, and those of a task's submitter only across threads.
    fn frame_step(&self, frame: ContextFrame, id: impl FnOnce() -> FrameId) -> FrameStep {
        match (
            self.code.is_submission_frame(frame),
            self.scope.contains_frame(frame),
        ) {
            (true, _) if !self.across_threads => FrameStep::Restart,
            (_, true) => FrameStep::Add(id()),
            (_, false) => FrameStep::Skip,
        }
    }

    /// Every context's frames folded into one fingerprint, in the order of `ids`, on all processors; of each, what `take`
    /// makes of it is kept. `step` is asked once for each frame, by each worker.
    pub(crate) fn fold_traces<T: Send>(
        &self,
        ids: &[ContextId],
        tick: ProgressTick<'_>,
        step: impl Fn(ContextFrame) -> FrameStep + Copy + Send + Sync,
        take: impl Fn(Result<TraceFingerprint, DecodeError>) -> T + Copy + Send + Sync,
    ) -> Vec<T> {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let part = ids.len().div_ceil(workers).max(MIN_CHUNK);
        let limits = WalkLimits {
            frames: VersionedGraph::MAX_FRAMES,
            memos: MAX_MEMOS / workers,
        };
        let work = move |ids: &[ContextId]| -> Vec<_> {
            let mut known: FxHashMap<ContextFrame, FrameStep> = FxHashMap::default();
            let step = |frame: ContextFrame| *known.entry(frame).or_insert_with(|| step(frame));
            let mut walker = FingerprintWalker::new(&self.graph, limits, step);
            let each = ids.iter().map(|id| {
                tick(1);
                take(walker.fingerprint_trace(*id))
            });
            each.collect()
        };
        thread::scope(|scope| {
            let workers: Vec<_> = ids
                .chunks(part)
                .map(|ids| scope.spawn(move || work(ids)))
                .collect();
            let joined = workers.into_iter().flat_map(|worker| match worker.join() {
                Ok(results) => results,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.collect()
        })
    }
}

/// What a frame does to the fingerprint of its callers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrameStep {
    /// Nothing.
    Skip,
    Add(FrameId),
    /// Neither the frame nor its callers count.
    Restart,
}

#[derive(Clone, Copy)]
struct WalkLimits {
    frames: usize,
    memos: usize,
}

/// One worker's walks.
struct FingerprintWalker<'g, F> {
    graph: &'g VersionedGraph,
    limits: WalkLimits,
    step: F,
    memos: HashMap<MethodInContext, CallersFingerprint>,
    /// The frames that this walk met, innermost first, each with whose caller it is. Empty between
    /// walks, kept for its memory.
    path: Vec<(MethodInContext, ContextFrame)>,
}

/// All callers of a place, from the thread's entry on. The print in halves: a memo takes 40 bytes.
#[derive(Clone, Copy)]
struct CallersFingerprint {
    fingerprint: [u64; 2],
    count: u32,
}

impl<'g, F: FnMut(ContextFrame) -> FrameStep> FingerprintWalker<'g, F> {
    fn new(graph: &'g VersionedGraph, limits: WalkLimits, step: F) -> Self {
        FingerprintWalker {
            graph,
            limits,
            step,
            memos: HashMap::new(),
            path: Vec::new(),
        }
    }

    /// Fails as [`lucce_callgraph::VersionedGraph::decode_context`] does.
    fn fingerprint_trace(&mut self, id: ContextId) -> Result<TraceFingerprint, DecodeError> {
        let Some((parent, leaf)) = self.graph.find_caller(id, MethodId::EVENT)? else {
            let print = CallersFingerprint::NONE.stack_id();
            return Ok(TraceFingerprint {
                leaf: None,
                fingerprint: print,
            });
        };
        let callers = self.walk_up((parent, leaf.method))?;
        let callers = self.fold_down(callers);
        if callers.count as usize >= self.limits.frames {
            return Err(DecodeError::TooDeep);
        }
        Ok(TraceFingerprint {
            leaf: Some(leaf),
            fingerprint: callers.then_frame((self.step)(leaf)).stack_id(),
        })
    }

    /// To the nearest callers that are known. Behind a memo no step can fail: a walk went there.
    fn walk_up(&mut self, mut at: MethodInContext) -> Result<CallersFingerprint, DecodeError> {
        self.path.clear();
        loop {
            if let Some(known) = self.find_memo(at) {
                return Ok(known);
            }
            let Some((parent, frame)) = self.graph.find_caller(at.0, at.1)? else {
                return Ok(CallersFingerprint::NONE);
            };
            // The event's own frame is one more.
            if self.path.len() + 1 >= self.limits.frames {
                return Err(DecodeError::TooDeep);
            }
            self.path.push((at, frame));
            at = (parent, frame.method);
        }
    }

    fn fold_down(&mut self, mut callers: CallersFingerprint) -> CallersFingerprint {
        while let Some((at, frame)) = self.path.pop() {
            callers = callers.then_frame((self.step)(frame));
            if has_memo(at) && self.memos.len() < self.limits.memos {
                self.memos.insert(at, callers);
            }
        }
        callers
    }

    fn find_memo(&self, at: MethodInContext) -> Option<CallersFingerprint> {
        has_memo(at).then(|| self.memos.get(&at).copied()).flatten()
    }
}

/// Multiplication spreads numbers that differ by a constant, as those of a recursion do.
fn has_memo((id, method): MethodInContext) -> bool {
    let mixed = (id.0 ^ u64::from(method.0) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.leading_zeros() >= SPACING.ilog2()
}

impl CallersFingerprint {
    const NONE: CallersFingerprint = CallersFingerprint {
        fingerprint: [0; 2],
        count: 0,
    };

    /// Those and one that they call.
    fn then_frame(self, step: FrameStep) -> CallersFingerprint {
        let print = match step {
            FrameStep::Skip => self.fingerprint,
            FrameStep::Add(id) => split_halves(self.stack_id().with_callee(id)),
            FrameStep::Restart => CallersFingerprint::NONE.fingerprint,
        };
        CallersFingerprint {
            fingerprint: print,
            // Saturates far beyond what is allowed.
            count: self.count.saturating_add(1),
        }
    }

    fn stack_id(self) -> StackId {
        join_halves(self.fingerprint)
    }
}

/// Equal for equal values, and for others not, as far as 128 bits can tell.
pub(crate) fn fingerprint_value(value: impl Hash) -> u128 {
    let halves = [1_u64, 2].map(|salt| {
        let mut hasher = DefaultHasher::new();
        (salt, &value).hash(&mut hasher);
        hasher.finish()
    });
    join_halves(halves).0
}

/// Two words in place of a number of 128 bits, which is aligned to as many.
pub(crate) fn split_halves(StackId(print): StackId) -> [u64; 2] {
    [(print >> 64) as u64, print as u64]
}

pub(crate) fn join_halves([high, low]: [u64; 2]) -> StackId {
    StackId(u128::from(high) << 64 | u128::from(low))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lucce_callgraph::{ContextEncoder, ContextLayout, EncodingPolicy, GraphChange, SiteId};

    use super::*;

    const LIMITS: WalkLimits = WalkLimits {
        frames: VersionedGraph::MAX_FRAMES,
        memos: MAX_MEMOS,
    };

    const CALLS: usize = 2000;

    /// Paths of up to 600 frames over three methods that call each other, with an event in every
    /// fourth frame: they share prefixes of all lengths.
    fn recursion(policy: EncodingPolicy) -> (VersionedGraph, Vec<ContextId>) {
        let encoder = ContextEncoder::new(ContextLayout::DEFAULT, policy, Vec::new());
        let mut ids = Vec::new();
        let mut random = 1_u64;
        let mut stack = vec![(encoder.root_context(MethodId(1)), MethodId(1))];
        for _ in 0..CALLS {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let (at, caller) = *stack.last().unwrap();
            let choice = (random >> 40) as u32;
            let (callee, site) = (MethodId(1 + choice % 3), choice / 3 % 2);
            let site = SiteId(10 * caller.0 + site);
            if (choice / 6).is_multiple_of(4) {
                ids.push(encoder.encode_event(at, site, caller));
            }
            if stack.len() == 600 {
                stack.truncate(1 + choice as usize / 24 % 599);
            } else {
                stack.push((encoder.encode_call(at, site, caller, callee), callee));
            }
        }
        ids.sort_unstable();
        ids.dedup();
        let mut graph = VersionedGraph::new(ContextLayout::DEFAULT);
        let changes = encoder.with_journal(std::mem::take::<Vec<GraphChange>>);
        changes
            .into_iter()
            .for_each(|c| graph.apply_change(c).unwrap());
        (graph, ids)
    }

    /// From the full trace, and only from it.
    fn naive(
        graph: &VersionedGraph,
        id: ContextId,
        key: impl Fn(ContextFrame) -> FrameId,
    ) -> Result<TraceFingerprint, DecodeError> {
        let frames = graph.decode_context(id, MethodId::EVENT)?;
        let fold = |print: StackId, frame: &ContextFrame| print.with_callee(key(*frame));
        Ok(TraceFingerprint {
            leaf: frames.first().copied(),
            fingerprint: frames.iter().rev().fold(StackId::EMPTY, fold),
        })
    }

    fn id_of(of: impl Hash) -> FrameId {
        FrameId(fingerprint_value(of))
    }

    fn whole_frame(frame: ContextFrame) -> FrameStep {
        FrameStep::Add(id_of(frame))
    }

    #[test]
    fn prints_are_those_of_full_traces() {
        for policy in [EncodingPolicy::LUCCE, EncodingPolicy::CCT] {
            let (graph, ids) = recursion(policy);
            assert!(ids.len() > 300);
            for memos in [0, 10, MAX_MEMOS] {
                let limits = WalkLimits { memos, ..LIMITS };
                let mut whole = FingerprintWalker::new(&graph, limits, whole_frame);
                let mut methods = FingerprintWalker::new(&graph, limits, |frame: ContextFrame| {
                    FrameStep::Add(id_of(frame.method))
                });
                for &id in &ids {
                    assert_eq!(whole.fingerprint_trace(id), naive(&graph, id, id_of));
                    assert_eq!(
                        methods.fingerprint_trace(id),
                        naive(&graph, id, |frame| id_of(frame.method))
                    );
                }
                assert!(whole.memos.len() <= memos);
            }
        }
    }

    /// As between a task and the thread that submitted it.
    #[test]
    fn callers_of_a_frame_that_ends_a_trace_do_not_count() {
        let (graph, ids) = recursion(EncodingPolicy::LUCCE);
        let last = MethodId(2);
        let step = |frame: ContextFrame| match frame.method == last {
            true => FrameStep::Restart,
            false => whole_frame(frame),
        };
        for memos in [0, 10, MAX_MEMOS] {
            let mut walker = FingerprintWalker::new(&graph, WalkLimits { memos, ..LIMITS }, step);
            for &id in &ids {
                let frames = graph.decode_context(id, MethodId::EVENT).unwrap();
                let own = frames.iter().take_while(|frame| frame.method != last);
                let own: Vec<_> = own.collect();
                let own = own.iter().rev();
                let print = own.fold(StackId::EMPTY, |print, frame| {
                    print.with_callee(id_of(**frame))
                });
                assert_eq!(walker.fingerprint_trace(id).unwrap().fingerprint, print);
            }
        }
    }

    /// Else the memos would be there and save nothing.
    #[test]
    fn shared_frames_are_met_once() {
        let (graph, ids) = recursion(EncodingPolicy::LUCCE);
        let mut walker = FingerprintWalker::new(&graph, LIMITS, whole_frame);
        let mut met = 0;
        for &id in &ids {
            let (parent, leaf) = graph.find_caller(id, MethodId::EVENT).unwrap().unwrap();
            let callers = walker.walk_up((parent, leaf.method)).unwrap();
            met += walker.path.len();
            walker.fold_down(callers);
        }
        let full = ids
            .iter()
            .map(|id| graph.decode_context(*id, MethodId::EVENT));
        let full: usize = full.map(|frames| frames.unwrap().len()).sum();
        // Every frame once, and then each walk goes on to the next memo.
        assert!(
            met < CALLS + 2 * SPACING as usize * ids.len(),
            "{met} frames of {full}"
        );
        assert!(met * 4 < full, "{met} frames of {full}");
    }

    #[test]
    fn traces_are_told_apart() {
        let (graph, ids) = recursion(EncodingPolicy::LUCCE);
        let mut walker = FingerprintWalker::new(&graph, LIMITS, whole_frame);
        let mut traces = BTreeMap::new();
        for &id in &ids {
            let frames = graph.decode_context(id, MethodId::EVENT).unwrap();
            let print = walker.fingerprint_trace(id).unwrap().fingerprint;
            assert_eq!(*traces.entry(print).or_insert(frames.clone()), frames);
        }
    }

    #[test]
    fn numbers_that_the_graph_does_not_know_fail_as_they_do_in_full() {
        let (graph, ids) = recursion(EncodingPolicy::LUCCE);
        let mut walker = FingerprintWalker::new(&graph, LIMITS, whole_frame);
        for &id in &ids {
            for wrong in [id.0 ^ 1, id.0 + 1000, id.0 ^ 1 << 40, id.0 << 8, 0] {
                let wrong = ContextId(wrong);
                assert_eq!(walker.fingerprint_trace(wrong), naive(&graph, wrong, id_of));
            }
        }
    }

    #[test]
    fn frames_are_bounded_with_and_without_memos() {
        let (graph, ids) = recursion(EncodingPolicy::LUCCE);
        let most = 200;
        for memos in [0, MAX_MEMOS] {
            let limits = WalkLimits {
                frames: most,
                memos,
            };
            let mut walker = FingerprintWalker::new(&graph, limits, whole_frame);
            for &id in &ids {
                let depth = graph.decode_context(id, MethodId::EVENT).unwrap().len();
                let printed = walker.fingerprint_trace(id);
                assert_eq!(printed.is_ok(), depth <= most, "{depth} frames");
                assert!(printed.is_ok() || printed == Err(DecodeError::TooDeep));
            }
        }
    }
}
