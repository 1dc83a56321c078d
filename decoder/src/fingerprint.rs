//! Fingerprints of traces; frames that traces share are decoded once.
//!
//! A fingerprint is folded from the thread's entry to the event, like a content id, so each frame's callers have one also.
//! If frames count by their own ids, the fingerprint is the trace's content id.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::thread;

use lucce_callgraph::{ContextFrame, ContextId, DecodeError, VersionedGraph};
use lucce_contentid::{ContentDetail, FrameId, StackId};
use rustc_hash::FxHashMap;

use crate::context_walk::{ContextWalker, PathFold, WalkLimits};
use crate::profile::{Profile, ProgressTick};

/// Minimum number of contexts that a worker takes at a time.
const MIN_CHUNK: usize = 256;

/// Maximum number of memos of all workers: the content of a hash table with 2^22 places, 180 MB. Beyond it no memo is
/// added, and more frames are decoded again.
const MAX_MEMOS: usize = 7 << 19;

/// The fingerprint of a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TraceFingerprint {
    /// The innermost frame, in which the event happened.
    pub leaf: Option<ContextFrame>,
    /// Equal for equal traces; different for others, except for collisions of 128 bits.
    pub fingerprint: StackId,
}

impl TraceFingerprint {
    /// Whether no frame counts.
    pub fn is_empty(&self) -> bool {
        self.fingerprint == StackId::EMPTY
    }
}

/// Computes the fingerprint of each context, in the order of `ids`, on all processors. A frame in scope counts by its
/// `key` only.
pub(crate) fn fingerprint_traces<K: Hash>(
    profile: &Profile,
    ids: &[ContextId],
    tick: ProgressTick<'_>,
    key: impl Fn(ContextFrame) -> K + Copy + Send + Sync,
) -> Vec<Result<TraceFingerprint, DecodeError>> {
    let step =
        |frame: ContextFrame| frame_step(profile, frame, || FrameId(fingerprint_value(key(frame))));
    fold_traces(profile, ids, tick, step, |printed| printed)
}

/// Computes the content id of each context, in the order of `ids`, on all processors; returns the results of `take`.
pub(crate) fn fold_stacks<T: Send>(
    profile: &Profile,
    ids: &[ContextId],
    tick: ProgressTick<'_>,
    take: impl Fn(Result<TraceFingerprint, DecodeError>) -> T + Copy + Send + Sync,
) -> Vec<T> {
    let id = |frame: ContextFrame| {
        let shown = profile.code.resolve_frame(frame);
        profile.code.frame_id(frame, &shown, ContentDetail::ByLine)
    };
    let step = |frame: ContextFrame| frame_step(profile, frame, || id(frame));
    fold_traces(profile, ids, tick, step, take)
}

/// The step of a frame: frames in scope count; a submitter's frames count only if submitters are distinguished.
pub(crate) fn frame_step<V>(
    profile: &Profile,
    frame: ContextFrame,
    value: impl FnOnce() -> V,
) -> FrameStep<V> {
    match (
        profile.code.is_submission_frame(frame),
        profile.scope.contains_frame(frame),
    ) {
        (true, _) if !profile.across_threads => FrameStep::Restart,
        (_, true) => FrameStep::Add(value()),
        (_, false) => FrameStep::Skip,
    }
}

/// Folds each context's frames into a fingerprint, in the order of `ids`, on all processors; returns the results of
/// `take`. Each worker calls `step` once for each frame.
pub(crate) fn fold_traces<T: Send>(
    profile: &Profile,
    ids: &[ContextId],
    tick: ProgressTick<'_>,
    step: impl Fn(ContextFrame) -> FrameStep + Copy + Send + Sync,
    take: impl Fn(Result<TraceFingerprint, DecodeError>) -> T + Copy + Send + Sync,
) -> Vec<T> {
    map_contexts(ids, |ids, limits| {
        let mut cache: FxHashMap<ContextFrame, FrameStep> = FxHashMap::default();
        let step = |frame: ContextFrame| *cache.entry(frame).or_insert_with(|| step(frame));
        let mut walker = FingerprintWalker::new(&profile.graph, limits, step);
        let each = ids.iter().map(|id| {
            tick(1);
            take(walker.fingerprint_trace(*id))
        });
        each.collect()
    })
}

/// Divides contexts among all processors. Each worker gets its part and its limits; the results are in the order of `ids`.
pub(crate) fn map_contexts<T: Send>(
    ids: &[ContextId],
    work: impl Fn(&[ContextId], WalkLimits) -> Vec<T> + Copy + Send + Sync,
) -> Vec<T> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let part = ids.len().div_ceil(workers).max(MIN_CHUNK);
    let limits = WalkLimits {
        frames: VersionedGraph::MAX_FRAMES,
        memos: MAX_MEMOS / workers,
    };
    thread::scope(|scope| {
        let workers: Vec<_> = ids
            .chunks(part)
            .map(|ids| scope.spawn(move || work(ids, limits)))
            .collect();
        let joined = workers.into_iter().flat_map(|worker| match worker.join() {
            Ok(results) => results,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    })
}

/// The effect of a frame on the value of its callers, mostly their fingerprint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrameStep<V = FrameId> {
    /// No effect.
    Skip,
    Add(V),
    /// Starts anew: neither the frame nor its callers count.
    Restart,
}

/// The state of one worker.
struct FingerprintWalker<'g, F> {
    walker: ContextWalker<'g, CallersFingerprint>,
    fold: FingerprintFold<F>,
    max_frames: usize,
}

struct FingerprintFold<F> {
    step: F,
}

impl<F: FnMut(ContextFrame) -> FrameStep> PathFold for FingerprintFold<F> {
    type Value = CallersFingerprint;
    const EMPTY: CallersFingerprint = CallersFingerprint::NONE;
    const MEMO_SPACING: u64 = 16;

    fn push_frame(
        &mut self,
        callers: CallersFingerprint,
        frame: ContextFrame,
    ) -> Result<CallersFingerprint, DecodeError> {
        Ok(callers.then_frame((self.step)(frame)))
    }
}

/// The fingerprint of a place's callers, from the thread's entry. It is split in halves, so that a memo takes 40 bytes.
#[derive(Clone, Copy)]
struct CallersFingerprint {
    fingerprint: [u64; 2],
    count: u32,
}

impl<'g, F: FnMut(ContextFrame) -> FrameStep> FingerprintWalker<'g, F> {
    fn new(graph: &'g VersionedGraph, limits: WalkLimits, step: F) -> Self {
        FingerprintWalker {
            walker: ContextWalker::new(graph, limits),
            fold: FingerprintFold { step },
            max_frames: limits.frames,
        }
    }

    /// Computes one fingerprint. Fails like [`lucce_callgraph::VersionedGraph::decode_context`].
    fn fingerprint_trace(&mut self, id: ContextId) -> Result<TraceFingerprint, DecodeError> {
        let (trace, leaf) = self.walker.walk_context(&mut self.fold, id)?;
        match trace.count as usize > self.max_frames {
            true => Err(DecodeError::TooDeep),
            false => Ok(TraceFingerprint {
                leaf,
                fingerprint: trace.stack_id(),
            }),
        }
    }
}

impl CallersFingerprint {
    const NONE: CallersFingerprint = CallersFingerprint {
        fingerprint: [0; 2],
        count: 0,
    };

    /// Adds a callee's frame.
    fn then_frame(self, step: FrameStep) -> CallersFingerprint {
        let print = match step {
            FrameStep::Skip => self.fingerprint,
            FrameStep::Add(id) => split_halves(self.stack_id().with_callee(id)),
            FrameStep::Restart => CallersFingerprint::NONE.fingerprint,
        };
        CallersFingerprint {
            fingerprint: print,
            // Saturates far above the limit of frames.
            count: self.count.saturating_add(1),
        }
    }

    fn stack_id(self) -> StackId {
        join_halves(self.fingerprint)
    }
}

/// Equal for equal values; different for others, except for collisions of 128 bits.
pub(crate) fn fingerprint_value(value: impl Hash) -> u128 {
    let halves = [1_u64, 2].map(|salt| {
        let mut hasher = DefaultHasher::new();
        (salt, &value).hash(&mut hasher);
        hasher.finish()
    });
    join_halves(halves).0
}

/// Splits a content id into two words: a 128-bit number is aligned to 16 bytes.
pub(crate) fn split_halves(StackId(print): StackId) -> [u64; 2] {
    [(print >> 64) as u64, print as u64]
}

pub(crate) fn join_halves([high, low]: [u64; 2]) -> StackId {
    StackId(u128::from(high) << 64 | u128::from(low))
}

#[cfg(test)]
mod fingerprint_tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;

    use lucce_callgraph::{
        ContextEncoder, ContextLayout, EncodingPolicy, GraphChange, MethodId, SiteId,
    };

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

    /// The expected fingerprint, from the full trace only.
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
                assert!(whole.walker.memo_count() <= memos);
            }
        }
    }

    /// A boundary, as between a task and the thread that submitted it.
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

    /// Otherwise the memos would exist and save nothing.
    #[test]
    fn shared_frames_are_met_once() {
        let (graph, ids) = recursion(EncodingPolicy::LUCCE);
        let met = Cell::new(0);
        let step = |frame: ContextFrame| {
            met.set(met.get() + 1);
            whole_frame(frame)
        };
        let mut walker = FingerprintWalker::new(&graph, LIMITS, step);
        for &id in &ids {
            walker.fingerprint_trace(id).unwrap();
        }
        // Without the events' own frames.
        let met = met.get() - ids.len();
        let full = ids
            .iter()
            .map(|id| graph.decode_context(*id, MethodId::EVENT));
        let full: usize = full.map(|frames| frames.unwrap().len()).sum();
        // Each frame once, and after that each walk goes to the next memo.
        assert!(met < CALLS + 2 * 16 * ids.len(), "{met} frames of {full}");
        assert!(met * 4 < full, "{met} frames of {full}");
    }

    #[test]
    fn different_traces_have_different_fingerprints() {
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
