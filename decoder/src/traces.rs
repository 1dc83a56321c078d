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

use lucce_callgraph::{ContextFrame, ContextId, DecodeError, MethodId, VersionedGraph};
use lucce_contentid::{ContentDetail, FrameId, StackId};
use serde::{Serialize, Serializer};

use crate::frame::StackFrame;
use crate::profile::{MethodInContext, Profile};

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

/// A node; `frame` is an index into the different frames.
#[derive(Clone, Copy)]
struct TraceNode {
    caller: TraceId,
    frame: u32,
}

/// The inserted traces.
pub struct TraceTree<'p> {
    profile: &'p Profile,
    /// Nodes; callers precede callees.
    nodes: Vec<TraceNode>,
    /// The different frames with their resolved names, and the index of each.
    frames: Vec<(ContextFrame, StackFrame)>,
    numbers: HashMap<ContextFrame, u32>,
    memos: HashMap<MethodInContext, CallersTrace>,
    /// Content ids by frame and by node, computed when an id is requested.
    frame_ids: Vec<FrameId>,
    stacks: Vec<StackId>,
    /// The frames of one walk. Empty between walks; kept to reuse its memory.
    path: Vec<(MethodInContext, ContextFrame)>,
}

impl<'p> TraceTree<'p> {
    #[must_use]
    pub fn new(profile: &'p Profile) -> Self {
        TraceTree {
            profile,
            nodes: Vec::new(),
            frames: Vec::new(),
            numbers: HashMap::new(),
            memos: HashMap::new(),
            frame_ids: Vec::new(),
            stacks: Vec::new(),
            path: Vec::new(),
        }
    }

    /// Decodes an event's context id and adds its trace.
    ///
    /// # Errors
    /// The log does not explain this context id.
    pub fn insert_trace(&mut self, id: ContextId) -> Result<TraceId, DecodeError> {
        let callers = self.walk_up((id, MethodId::EVENT))?;
        let callers = self.fold_down(callers);
        match callers.depth as usize > VersionedGraph::MAX_FRAMES {
            true => Err(DecodeError::TooDeep),
            false => Ok(callers.trace),
        }
    }

    /// Walks to the nearest known callers. Above them no step can fail, since an earlier walk went there.
    fn walk_up(&mut self, mut at: MethodInContext) -> Result<CallersTrace, DecodeError> {
        self.path.clear();
        loop {
            if let Some(known) = self.memos.get(&at) {
                return Ok(*known);
            }
            let Some((parent, frame)) = self.profile.graph.find_caller(at.0, at.1)? else {
                return Ok(NO_CALLERS);
            };
            if self.path.len() >= VersionedGraph::MAX_FRAMES {
                return Err(DecodeError::TooDeep);
            }
            self.path.push((at, frame));
            at = (parent, frame.method);
        }
    }

    fn fold_down(&mut self, mut callers: CallersTrace) -> CallersTrace {
        while let Some((at, frame)) = self.path.pop() {
            let depth = callers.depth.saturating_add(1);
            let trace = match self.profile.code.is_submission_frame(frame) {
                true => TraceId::EMPTY,
                false => self.push_frame(callers.trace, frame),
            };
            callers = CallersTrace { trace, depth };
            self.memos.insert(at, callers);
        }
        callers
    }

    fn push_frame(&mut self, caller: TraceId, frame: ContextFrame) -> TraceId {
        let number = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        if !self.profile.scope.contains_frame(frame) || number == TraceId::EMPTY.0 {
            return caller;
        }
        let frame = self.number_frame(frame);
        self.nodes.push(TraceNode { caller, frame });
        TraceId(number)
    }

    fn number_frame(&mut self, frame: ContextFrame) -> u32 {
        *self.numbers.entry(frame).or_insert_with(|| {
            self.frames
                .push((frame, self.profile.code.resolve_frame(frame)));
            self.frames.len() as u32 - 1
        })
    }

    fn frames_with_names(
        &self,
        trace: TraceId,
    ) -> impl Iterator<Item = &(ContextFrame, StackFrame)> {
        let node = |trace: TraceId| self.nodes.get(trace.to_index()).copied();
        let nodes = successors(node(trace), move |below| node(below.caller));
        nodes.filter_map(|node| self.frames.get(node.frame as usize))
    }

    /// The frames of a trace, innermost first.
    pub fn frames_of_trace(&self, trace: TraceId) -> impl Iterator<Item = ContextFrame> {
        self.frames_with_names(trace).map(|(frame, _)| *frame)
    }

    /// Whether the trace has no frame in scope.
    #[must_use]
    pub fn is_outside(&self, trace: TraceId) -> bool {
        self.nodes.get(trace.to_index()).is_none()
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
        self.nodes.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
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
        let nodes = self.nodes.get(first..).unwrap_or_default();
        nodes.iter().filter_map(|node| {
            let (frame, shown) = self.frames.get(node.frame as usize)?;
            let caller = (node.caller != TraceId::EMPTY).then_some(node.caller);
            Some((caller, *frame, shown))
        })
    }

    /// For each trace, the sum of `of` over its frames.
    #[must_use]
    pub fn sum_frames(&self, mut of: impl FnMut(ContextFrame, &StackFrame) -> u64) -> TraceSums {
        let each = self.frames.iter().map(|(frame, shown)| of(*frame, shown));
        let each: Vec<u64> = each.collect();
        let mut sums: Vec<u64> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let above = sums.get(node.caller.to_index()).copied().unwrap_or(0);
            let own = each.get(node.frame as usize).copied().unwrap_or(0);
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
        for node in self.nodes.get(self.stacks.len()..).unwrap_or_default() {
            let above = self.stacks.get(node.caller.to_index()).copied();
            let above = above.unwrap_or(StackId::EMPTY);
            let own = self.frame_ids.get(node.frame as usize);
            self.stacks
                .push(own.map_or(above, |own| above.with_callee(*own)));
        }
        let found = self.stacks.get(trace.to_index()).copied();
        found.unwrap_or(StackId::EMPTY)
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
        let below = ChildLinks::new(&self.nodes);
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
    fn new(nodes: &[TraceNode]) -> Self {
        let mut first = vec![TraceId::EMPTY; nodes.len() + 1];
        let mut beside = vec![TraceId::EMPTY; nodes.len()];
        for (number, node) in nodes.iter().enumerate().rev() {
            let at = node.caller.to_index().min(nodes.len());
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
