//! Traces as a tree of frames: frames that traces share are decoded and stored once.
//!
//! ```text
//! main ── work ── work ── work     four traces of a recursion: four frames, where four lists would have ten
//!  └ 1     └ 2     └ 3     └ 4
//! ```
//! A trace is a node; its frames are the frames of the node and its ancestors. The memory for a log of deep stacks depends
//! on the number of different frames, not on the sum of all traces' lengths. Frames out of scope have no nodes. The frames
//! that submitted a task are not ancestors of the task's frames.

use std::collections::HashMap;
use std::iter::successors;

use lucce_callgraph::{ContextFrame, ContextId, DecodeError, VersionedGraph};
use lucce_contentid::{ContentDetail, FrameId, StackId};
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};

use crate::call_tree::{CallTree, NodeId, TreeFrameKey};
use crate::context_walk::{ContextWalker, PathFold, WalkLimits};
use crate::frame::StackFrame;
use crate::profile::Profile;

/// A node: a frame with its callers. [`TraceId::EMPTY`] has none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TraceId(u32);

impl TraceId {
    pub const EMPTY: TraceId = TraceId(u32::MAX);

    /// Its index in [`TraceTree::nodes`].
    #[must_use]
    pub fn to_u32(self) -> u32 {
        self.0
    }

    pub(crate) fn to_index(self) -> usize {
        self.0 as usize
    }

    /// Its node in the tree, whose root stands for the empty trace.
    fn to_node(self) -> NodeId {
        NodeId(self.0.wrapping_add(1))
    }

    fn from_node(node: NodeId) -> TraceId {
        TraceId(node.0.wrapping_sub(1))
    }
}

/// The trace of a place's shown callers, and the number of all its callers.
#[derive(Clone, Copy)]
struct CallersTrace {
    trace: TraceId,
    depth: u32,
}

const NO_CALLERS: CallersTrace = CallersTrace {
    trace: TraceId::EMPTY,
    depth: 0,
};

/// The inserted traces.
pub struct TraceTree<'p> {
    profile: &'p Profile,
    tree: CallTree,
    walker: ContextWalker<'p, CallersTrace>,
    /// The traces of the inserted ids.
    traces: FxHashMap<ContextId, TraceId>,
    /// The different frames with their resolved names, and the index of each.
    frames: Vec<(ContextFrame, StackFrame)>,
    numbers: HashMap<ContextFrame, u32>,
    /// Content ids by frame and by node, computed when an id is requested.
    frame_ids: Vec<FrameId>,
    stacks: Vec<StackId>,
}

impl<'p> TraceTree<'p> {
    #[must_use]
    pub fn new(profile: &'p Profile) -> Self {
        TraceTree {
            profile,
            tree: CallTree::default(),
            walker: ContextWalker::new(&profile.graph, WalkLimits::default()),
            traces: FxHashMap::default(),
            frames: Vec::new(),
            numbers: HashMap::new(),
            frame_ids: Vec::new(),
            stacks: Vec::new(),
        }
    }

    /// Decodes an event's context id and adds its trace.
    ///
    /// # Errors
    /// The log does not explain this context id.
    pub fn insert_trace(&mut self, id: ContextId) -> Result<TraceId, DecodeError> {
        if let Some(known) = self.traces.get(&id) {
            return Ok(*known);
        }
        let mut fold = TraceFold {
            profile: self.profile,
            tree: &mut self.tree,
            frames: &mut self.frames,
            numbers: &mut self.numbers,
        };
        let (callers, _) = self.walker.walk_context(&mut fold, id)?;
        if callers.depth as usize > VersionedGraph::MAX_FRAMES {
            return Err(DecodeError::TooDeep);
        }
        self.traces.insert(id, callers.trace);
        Ok(callers.trace)
    }

    fn frames_with_names(
        &self,
        trace: TraceId,
    ) -> impl Iterator<Item = &(ContextFrame, StackFrame)> {
        let node = |node: NodeId| self.tree.caller_and_frame(node);
        let nodes = successors(node(trace.to_node()), move |(caller, _)| node(*caller));
        nodes.filter_map(|(_, frame)| self.frames.get(frame.0 as usize))
    }

    /// The frames of a trace, innermost first.
    pub fn frames_of_trace(&self, trace: TraceId) -> impl Iterator<Item = ContextFrame> {
        self.frames_with_names(trace).map(|(frame, _)| *frame)
    }

    /// Whether the trace has no frame in scope.
    #[must_use]
    pub fn is_outside(&self, trace: TraceId) -> bool {
        self.tree.caller_and_frame(trace.to_node()).is_none()
    }

    /// The resolved frames of a trace, innermost first.
    pub fn stack_frames(&self, trace: TraceId) -> impl Iterator<Item = &StackFrame> {
        self.frames_with_names(trace).map(|(_, shown)| shown)
    }

    /// The frames of a trace for JSON: at most `most`, innermost first.
    #[must_use]
    pub fn list_frames(&self, trace: TraceId, most: usize) -> FrameList<'_> {
        let traces = self;
        FrameList {
            traces,
            trace,
            max_frames: most,
        }
    }

    /// Number of nodes; frames that traces share count once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tree.len() - 1
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All frames with their callers' traces; callers come first.
    pub fn nodes(&self) -> impl Iterator<Item = (Option<TraceId>, ContextFrame, &StackFrame)> {
        self.nodes_from(0)
    }

    /// The frames after the first `first` nodes, with their callers' traces.
    pub fn nodes_from(
        &self,
        first: usize,
    ) -> impl Iterator<Item = (Option<TraceId>, ContextFrame, &StackFrame)> {
        self.callers_and_frames(first)
            .filter_map(|(caller, frame)| {
                let (frame, shown) = self.frames.get(frame)?;
                let caller = (caller != TraceId::EMPTY).then_some(caller);
                Some((caller, *frame, shown))
            })
    }

    /// Of each node after the first `first`: its caller's trace, and the index of its frame.
    fn callers_and_frames(&self, first: usize) -> impl Iterator<Item = (TraceId, usize)> {
        (first + 1..self.tree.len()).filter_map(|node| {
            let (caller, frame) = self.tree.caller_and_frame(NodeId(node as u32))?;
            Some((TraceId::from_node(caller), frame.0 as usize))
        })
    }

    /// For each trace, the sum of `of` over its frames.
    #[must_use]
    pub fn sum_frames(&self, mut of: impl FnMut(ContextFrame, &StackFrame) -> u64) -> TraceSums {
        let each = self.frames.iter().map(|(frame, shown)| of(*frame, shown));
        let each: Vec<u64> = each.collect();
        let mut sums: Vec<u64> = Vec::with_capacity(self.len());
        for (caller, frame) in self.callers_and_frames(0) {
            let above = sums.get(caller.to_index()).copied().unwrap_or(0);
            let own = each.get(frame).copied().unwrap_or(0);
            sums.push(above.saturating_add(own));
        }
        TraceSums(sums)
    }

    /// The content id of a trace (docs/reference/content-ids.md), equal in every run. Shared frames are hashed once.
    pub fn stack_id(&mut self, trace: TraceId) -> StackId {
        let code = &self.profile.code;
        let new = self.frames.get(self.frame_ids.len()..).unwrap_or_default();
        let new = new.iter();
        let new = new.map(|(frame, shown)| code.frame_id(*frame, shown, ContentDetail::ByLine));
        self.frame_ids.extend(new);
        let mut stacks = std::mem::take(&mut self.stacks);
        for (caller, frame) in self.callers_and_frames(stacks.len()) {
            let above = stacks.get(caller.to_index()).copied();
            let above = above.unwrap_or(StackId::EMPTY);
            let own = self.frame_ids.get(frame);
            stacks.push(own.map_or(above, |own| above.with_callee(*own)));
        }
        self.stacks = stacks;
        let stack = self.stacks.get(trace.to_index()).copied();
        stack.unwrap_or(StackId::EMPTY)
    }

    /// The content id of a trace without its innermost frame.
    pub fn callers_stack_id(&mut self, trace: TraceId) -> StackId {
        let callers = self.tree.caller_and_frame(trace.to_node());
        callers.map_or(StackId::EMPTY, |(callers, _)| {
            self.stack_id(TraceId::from_node(callers))
        })
    }

    /// Visits each trace once, after its callers and before its next sibling: `begin` before its callees, `end` after
    /// them.
    ///
    /// # Errors
    /// Errors of `begin` and `end`.
    pub fn visit_traces<E>(
        &self,
        visitor: &mut impl FnMut(TraceVisit) -> Result<(), E>,
    ) -> Result<(), E> {
        let below = ChildLinks::new(self);
        let mut open: Vec<TraceId> = Vec::new();
        let mut next = below.first_child(TraceId::EMPTY);
        loop {
            if let Some(trace) = next {
                visitor(TraceVisit::Begin(trace))?;
                open.push(trace);
                next = below.first_child(trace);
            } else if let Some(trace) = open.pop() {
                visitor(TraceVisit::End(trace))?;
                next = below.next_sibling(trace);
            } else {
                return Ok(());
            }
        }
    }
}

/// Finds the trace of a path.
struct TraceFold<'f> {
    profile: &'f Profile,
    tree: &'f mut CallTree,
    frames: &'f mut Vec<(ContextFrame, StackFrame)>,
    numbers: &'f mut HashMap<ContextFrame, u32>,
}

impl PathFold for TraceFold<'_> {
    type Value = CallersTrace;
    const EMPTY: CallersTrace = NO_CALLERS;
    const MEMO_SPACING: u64 = 1;

    fn push_frame(
        &mut self,
        callers: CallersTrace,
        frame: ContextFrame,
    ) -> Result<CallersTrace, DecodeError> {
        let code = &self.profile.code;
        let trace = match code.is_submission_frame(frame) {
            true => TraceId::EMPTY,
            false if !self.profile.scope.contains_frame(frame) => callers.trace,
            false => {
                let number = *self.numbers.entry(frame).or_insert_with(|| {
                    self.frames.push((frame, code.resolve_frame(frame)));
                    self.frames.len() as u32 - 1
                });
                let caller = callers.trace.to_node();
                let node = self.tree.get_or_insert_child(caller, TreeFrameKey(number));
                // Memory holds fewer than four billion nodes.
                TraceId::from_node(node.unwrap_or(caller))
            }
        };
        let depth = callers.depth.saturating_add(1);
        Ok(CallersTrace { trace, depth })
    }
}

/// See [`TraceTree::visit_traces`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceVisit {
    Begin(TraceId),
    End(TraceId),
}

/// The children of each node, in the order of insertion.
struct ChildLinks {
    /// The first child of each node; the last entry is that of the empty trace.
    first_children: Vec<TraceId>,
    /// The next node with the same caller, by node.
    next_siblings: Vec<TraceId>,
}

impl ChildLinks {
    fn new(traces: &TraceTree<'_>) -> Self {
        let length = traces.len();
        let mut first = vec![TraceId::EMPTY; length + 1];
        let mut beside = vec![TraceId::EMPTY; length];
        let callers = traces.callers_and_frames(0).map(|(caller, _)| caller);
        let callers: Vec<TraceId> = callers.collect();
        for (number, caller) in callers.iter().enumerate().rev() {
            let at = caller.to_index().min(length);
            if let (Some(first), Some(beside)) = (first.get_mut(at), beside.get_mut(number)) {
                *beside = std::mem::replace(first, TraceId(number as u32));
            }
        }
        ChildLinks {
            first_children: first,
            next_siblings: beside,
        }
    }

    fn first_child(&self, of: TraceId) -> Option<TraceId> {
        let at = of.to_index().min(self.next_siblings.len());
        self.first_children
            .get(at)
            .copied()
            .filter(|trace| *trace != TraceId::EMPTY)
    }

    fn next_sibling(&self, of: TraceId) -> Option<TraceId> {
        let beside = self.next_siblings.get(of.to_index()).copied();
        beside.filter(|trace| *trace != TraceId::EMPTY)
    }
}

/// See [`TraceTree::list_frames`].
#[derive(Clone, Copy)]
pub struct FrameList<'t> {
    traces: &'t TraceTree<'t>,
    trace: TraceId,
    max_frames: usize,
}

impl<'t> FrameList<'t> {
    pub fn iter(&self) -> impl Iterator<Item = &'t StackFrame> + use<'t> {
        self.traces.stack_frames(self.trace).take(self.max_frames)
    }
}

impl Serialize for FrameList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// See [`TraceTree::sum_frames`].
pub struct TraceSums(Vec<u64>);

impl TraceSums {
    #[must_use]
    pub fn trace_sum(&self, trace: TraceId) -> u64 {
        self.0.get(trace.to_index()).copied().unwrap_or(0)
    }
}
