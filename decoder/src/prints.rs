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

use lucce_callgraph::{ContextId, DecodeError, Frame, Graph, MethodId};
use lucce_contentid::{Detail, FrameId, StackId};
use rustc_hash::FxHashMap;

use crate::profile::{MethodInContext, Profile, Tick};

/// Contexts that a worker takes at a time, at least.
const PART: usize = 256;

/// One frame in so many is looked up and remembered; a power of two.
const SPACING: u64 = 16;

/// Memos of all workers together: as many as a hash table with 2^22 places holds, 180 MB. Beyond
/// them nothing more is remembered, and more is decoded again.
const MEMOS: usize = 7 << 19;

/// A context in short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Printed {
    /// The place of the event.
    pub leaf: Option<Frame>,
    /// Equal for equal traces, and for others not, as far as 128 bits can tell.
    pub print: StackId,
}

impl Printed {
    /// No frame counts.
    pub fn is_empty(&self) -> bool {
        self.print == StackId::EMPTY
    }
}

impl Profile {
    /// Every context's fingerprint, in the order of `ids`, on all processors. Of a frame in scope, only
    /// what `key` takes of it counts.
    pub(crate) fn prints<K: Hash>(
        &self,
        ids: &[ContextId],
        tick: Tick<'_>,
        key: impl Fn(Frame) -> K + Copy + Send + Sync,
    ) -> Vec<Result<Printed, DecodeError>> {
        let step = |frame: Frame| self.step_of(frame, || FrameId(fingerprint(key(frame))));
        self.fold_traces(ids, tick, step, |printed| printed)
    }

    /// Every context's content id, in the order of `ids`, on all processors; of each, what `take` makes of it is kept.
    pub(crate) fn fold_stacks<T: Send>(
        &self,
        ids: &[ContextId],
        tick: Tick<'_>,
        take: impl Fn(Result<Printed, DecodeError>) -> T + Copy + Send + Sync,
    ) -> Vec<T> {
        let id = |frame: Frame| {
            let shown = self.code.frame(frame);
            self.code.frame_id(frame, &shown, Detail::ByLine)
        };
        let step = |frame: Frame| self.step_of(frame, || id(frame));
        self.fold_traces(ids, tick, step, take)
    }

    /// Frames in scope count, and those of a task's submitter only across threads.
    fn step_of(&self, frame: Frame, id: impl FnOnce() -> FrameId) -> FrameStep {
        match (self.code.is_between(frame), self.scope.holds(frame)) {
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
        tick: Tick<'_>,
        step: impl Fn(Frame) -> FrameStep + Copy + Send + Sync,
        take: impl Fn(Result<Printed, DecodeError>) -> T + Copy + Send + Sync,
    ) -> Vec<T> {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let part = ids.len().div_ceil(workers).max(PART);
        let limits = Limits {
            frames: Graph::MAX_FRAMES,
            memos: MEMOS / workers,
        };
        let work = move |ids: &[ContextId]| -> Vec<_> {
            let mut known: FxHashMap<Frame, FrameStep> = FxHashMap::default();
            let step = |frame: Frame| *known.entry(frame).or_insert_with(|| step(frame));
            let mut walker = Walker::new(&self.graph, limits, step);
            let each = ids.iter().map(|id| {
                tick(1);
                take(walker.print(*id))
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
struct Limits {
    frames: usize,
    memos: usize,
}

/// One worker's walks.
struct Walker<'g, F> {
    graph: &'g Graph,
    limits: Limits,
    step: F,
    memos: HashMap<MethodInContext, Callers>,
    /// The frames that this walk met, innermost first, each with whose caller it is. Empty between
    /// walks, kept for its memory.
    path: Vec<(MethodInContext, Frame)>,
}

/// All callers of a place, from the thread's entry on. The print in halves: a memo takes 40 bytes.
#[derive(Clone, Copy)]
struct Callers {
    print: [u64; 2],
    count: u32,
}

impl<'g, F: FnMut(Frame) -> FrameStep> Walker<'g, F> {
    fn new(graph: &'g Graph, limits: Limits, step: F) -> Self {
        Walker {
            graph,
            limits,
            step,
            memos: HashMap::new(),
            path: Vec::new(),
        }
    }

    /// Fails as [`Graph::decode`] does.
    fn print(&mut self, id: ContextId) -> Result<Printed, DecodeError> {
        let Some((parent, leaf)) = self.graph.caller(id, MethodId::EVENT)? else {
            let print = Callers::NONE.print();
            return Ok(Printed { leaf: None, print });
        };
        let callers = self.walk_up((parent, leaf.method))?;
        let callers = self.fold_down(callers);
        if callers.count as usize >= self.limits.frames {
            return Err(DecodeError::TooDeep);
        }
        Ok(Printed {
            leaf: Some(leaf),
            print: callers.and((self.step)(leaf)).print(),
        })
    }

    /// To the nearest callers that are known. Behind a memo no step can fail: a walk went there.
    fn walk_up(&mut self, mut at: MethodInContext) -> Result<Callers, DecodeError> {
        self.path.clear();
        loop {
            if let Some(known) = self.memo(at) {
                return Ok(known);
            }
            let Some((parent, frame)) = self.graph.caller(at.0, at.1)? else {
                return Ok(Callers::NONE);
            };
            // The event's own frame is one more.
            if self.path.len() + 1 >= self.limits.frames {
                return Err(DecodeError::TooDeep);
            }
            self.path.push((at, frame));
            at = (parent, frame.method);
        }
    }

    fn fold_down(&mut self, mut callers: Callers) -> Callers {
        while let Some((at, frame)) = self.path.pop() {
            callers = callers.and((self.step)(frame));
            if has_memo(at) && self.memos.len() < self.limits.memos {
                self.memos.insert(at, callers);
            }
        }
        callers
    }

    fn memo(&self, at: MethodInContext) -> Option<Callers> {
        has_memo(at).then(|| self.memos.get(&at).copied()).flatten()
    }
}

/// Multiplication spreads numbers that differ by a constant, as those of a recursion do.
fn has_memo((id, method): MethodInContext) -> bool {
    let mixed = (id.0 ^ u64::from(method.0) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.leading_zeros() >= SPACING.ilog2()
}

impl Callers {
    const NONE: Callers = Callers {
        print: [0; 2],
        count: 0,
    };

    /// Those and one that they call.
    fn and(self, step: FrameStep) -> Callers {
        let print = match step {
            FrameStep::Skip => self.print,
            FrameStep::Add(id) => halves_of(self.print().then(id)),
            FrameStep::Restart => Callers::NONE.print,
        };
        Callers {
            print,
            // Saturates far beyond what is allowed.
            count: self.count.saturating_add(1),
        }
    }

    fn print(self) -> StackId {
        whole(self.print)
    }
}

/// Equal for equal values, and for others not, as far as 128 bits can tell.
pub(crate) fn fingerprint(value: impl Hash) -> u128 {
    let halves = [1_u64, 2].map(|salt| {
        let mut hasher = DefaultHasher::new();
        (salt, &value).hash(&mut hasher);
        hasher.finish()
    });
    whole(halves).0
}

/// Two words in place of a number of 128 bits, which is aligned to as many.
pub(crate) fn halves_of(StackId(print): StackId) -> [u64; 2] {
    [(print >> 64) as u64, print as u64]
}

pub(crate) fn whole([high, low]: [u64; 2]) -> StackId {
    StackId(u128::from(high) << 64 | u128::from(low))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lucce_callgraph::{Change, Encoder, Layout, Policy, SiteId};

    use super::*;

    const LIMITS: Limits = Limits {
        frames: Graph::MAX_FRAMES,
        memos: MEMOS,
    };

    const CALLS: usize = 2000;

    /// Paths of up to 600 frames over three methods that call each other, with an event in every
    /// fourth frame: they share prefixes of all lengths.
    fn recursion(policy: Policy) -> (Graph, Vec<ContextId>) {
        let encoder = Encoder::new(Layout::DEFAULT, policy, Vec::new());
        let mut ids = Vec::new();
        let mut random = 1_u64;
        let mut stack = vec![(encoder.root(MethodId(1)), MethodId(1))];
        for _ in 0..CALLS {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let (at, caller) = *stack.last().unwrap();
            let choice = (random >> 40) as u32;
            let (callee, site) = (MethodId(1 + choice % 3), choice / 3 % 2);
            let site = SiteId(10 * caller.0 + site);
            if (choice / 6).is_multiple_of(4) {
                ids.push(encoder.event(at, site, caller));
            }
            if stack.len() == 600 {
                stack.truncate(1 + choice as usize / 24 % 599);
            } else {
                stack.push((encoder.step(at, site, caller, callee), callee));
            }
        }
        ids.sort_unstable();
        ids.dedup();
        let mut graph = Graph::new(Layout::DEFAULT);
        let changes = encoder.journal(std::mem::take::<Vec<Change>>);
        changes.into_iter().for_each(|c| graph.apply(c).unwrap());
        (graph, ids)
    }

    /// From the full trace, and only from it.
    fn naive(
        graph: &Graph,
        id: ContextId,
        key: impl Fn(Frame) -> FrameId,
    ) -> Result<Printed, DecodeError> {
        let frames = graph.decode(id, MethodId::EVENT)?;
        let fold = |print: StackId, frame: &Frame| print.then(key(*frame));
        Ok(Printed {
            leaf: frames.first().copied(),
            print: frames.iter().rev().fold(StackId::EMPTY, fold),
        })
    }

    fn id_of(of: impl Hash) -> FrameId {
        FrameId(fingerprint(of))
    }

    fn whole_frame(frame: Frame) -> FrameStep {
        FrameStep::Add(id_of(frame))
    }

    #[test]
    fn prints_are_those_of_full_traces() {
        for policy in [Policy::LUCCE, Policy::CCT] {
            let (graph, ids) = recursion(policy);
            assert!(ids.len() > 300);
            for memos in [0, 10, MEMOS] {
                let limits = Limits { memos, ..LIMITS };
                let mut whole = Walker::new(&graph, limits, whole_frame);
                let mut methods = Walker::new(&graph, limits, |frame: Frame| {
                    FrameStep::Add(id_of(frame.method))
                });
                for &id in &ids {
                    assert_eq!(whole.print(id), naive(&graph, id, id_of));
                    assert_eq!(
                        methods.print(id),
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
        let (graph, ids) = recursion(Policy::LUCCE);
        let last = MethodId(2);
        let step = |frame: Frame| match frame.method == last {
            true => FrameStep::Restart,
            false => whole_frame(frame),
        };
        for memos in [0, 10, MEMOS] {
            let mut walker = Walker::new(&graph, Limits { memos, ..LIMITS }, step);
            for &id in &ids {
                let frames = graph.decode(id, MethodId::EVENT).unwrap();
                let own = frames.iter().take_while(|frame| frame.method != last);
                let own: Vec<_> = own.collect();
                let own = own.iter().rev();
                let print = own.fold(StackId::EMPTY, |print, frame| print.then(id_of(**frame)));
                assert_eq!(walker.print(id).unwrap().print, print);
            }
        }
    }

    /// Else the memos would be there and save nothing.
    #[test]
    fn shared_frames_are_met_once() {
        let (graph, ids) = recursion(Policy::LUCCE);
        let mut walker = Walker::new(&graph, LIMITS, whole_frame);
        let mut met = 0;
        for &id in &ids {
            let (parent, leaf) = graph.caller(id, MethodId::EVENT).unwrap().unwrap();
            let callers = walker.walk_up((parent, leaf.method)).unwrap();
            met += walker.path.len();
            walker.fold_down(callers);
        }
        let full = ids.iter().map(|id| graph.decode(*id, MethodId::EVENT));
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
        let (graph, ids) = recursion(Policy::LUCCE);
        let mut walker = Walker::new(&graph, LIMITS, whole_frame);
        let mut traces = BTreeMap::new();
        for &id in &ids {
            let frames = graph.decode(id, MethodId::EVENT).unwrap();
            let print = walker.print(id).unwrap().print;
            assert_eq!(*traces.entry(print).or_insert(frames.clone()), frames);
        }
    }

    #[test]
    fn numbers_that_the_graph_does_not_know_fail_as_they_do_in_full() {
        let (graph, ids) = recursion(Policy::LUCCE);
        let mut walker = Walker::new(&graph, LIMITS, whole_frame);
        for &id in &ids {
            for wrong in [id.0 ^ 1, id.0 + 1000, id.0 ^ 1 << 40, id.0 << 8, 0] {
                let wrong = ContextId(wrong);
                assert_eq!(walker.print(wrong), naive(&graph, wrong, id_of));
            }
        }
    }

    #[test]
    fn frames_are_bounded_with_and_without_memos() {
        let (graph, ids) = recursion(Policy::LUCCE);
        let most = 200;
        for memos in [0, MEMOS] {
            let limits = Limits {
                frames: most,
                memos,
            };
            let mut walker = Walker::new(&graph, limits, whole_frame);
            for &id in &ids {
                let depth = graph.decode(id, MethodId::EVENT).unwrap().len();
                let printed = walker.print(id);
                assert_eq!(printed.is_ok(), depth <= most, "{depth} frames");
                assert!(printed.is_ok() || printed == Err(DecodeError::TooDeep));
            }
        }
    }
}
