//! Traces as a tree of frames: what traces share is walked once and kept once.
//!
//! ```text
//! main ── work ── work ── work     four traces of a recursion: four frames, where four lists would have ten
//!  └ 1     └ 2     └ 3     └ 4
//! ```
//! A trace is a node, its frames are those of the node and of the nodes above. So a log of deep stacks takes memory by
//! the number of different frames, which its own records told, and not by the sum of all traces' lengths. Frames
//! that are out of scope are no nodes, and the frames that submitted a task are not above its own.

use std::collections::HashMap;
use std::iter::successors;

use lucce_callgraph::{ContextId, DecodeError, Frame, Graph, MethodId};
use lucce_contentid::{Detail, FrameId, StackId};
use serde::{Serialize, Serializer};

use crate::frame::StackFrame;
use crate::profile::{MethodInContext, Profile};

/// A node: a frame with its callers. [`Trace::EMPTY`] has none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Trace(u32);

impl Trace {
    pub const EMPTY: Trace = Trace(u32::MAX);

    /// Its place in [`Traces::nodes`].
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// All callers of a place that are shown, and how many there are in truth.
#[derive(Clone, Copy)]
struct Callers {
    trace: Trace,
    depth: u32,
}

const NONE: Callers = Callers {
    trace: Trace::EMPTY,
    depth: 0,
};

/// `frame` is an index into the different frames.
#[derive(Clone, Copy)]
struct Node {
    caller: Trace,
    frame: u32,
}

/// The traces that were asked for.
pub struct Traces<'p> {
    profile: &'p Profile,
    /// Callers come before what they call.
    nodes: Vec<Node>,
    /// The different frames, what they are called, and where each is in this list.
    frames: Vec<(Frame, StackFrame)>,
    numbers: HashMap<Frame, u32>,
    known: HashMap<MethodInContext, Callers>,
    /// By frame and by node, their content ids: of those that there were when an id was asked for last.
    frame_ids: Vec<FrameId>,
    stacks: Vec<StackId>,
    /// The frames of one walk, empty between walks, kept for its memory.
    path: Vec<(MethodInContext, Frame)>,
}

impl<'p> Traces<'p> {
    #[must_use]
    pub fn new(profile: &'p Profile) -> Self {
        Traces {
            profile,
            nodes: Vec::new(),
            frames: Vec::new(),
            numbers: HashMap::new(),
            known: HashMap::new(),
            frame_ids: Vec::new(),
            stacks: Vec::new(),
            path: Vec::new(),
        }
    }

    /// The trace of an event's number.
    ///
    /// # Errors
    /// The log does not know this number.
    pub fn of(&mut self, id: ContextId) -> Result<Trace, DecodeError> {
        let callers = self.walk_up((id, MethodId::EVENT))?;
        let callers = self.fold_down(callers);
        match callers.depth as usize > Graph::MAX_FRAMES {
            true => Err(DecodeError::TooDeep),
            false => Ok(callers.trace),
        }
    }

    /// To the nearest callers that are known. Behind them no step can fail: a walk went there.
    fn walk_up(&mut self, mut at: MethodInContext) -> Result<Callers, DecodeError> {
        self.path.clear();
        loop {
            if let Some(known) = self.known.get(&at) {
                return Ok(*known);
            }
            let Some((parent, frame)) = self.profile.graph.caller(at.0, at.1)? else {
                return Ok(NONE);
            };
            if self.path.len() >= Graph::MAX_FRAMES {
                return Err(DecodeError::TooDeep);
            }
            self.path.push((at, frame));
            at = (parent, frame.method);
        }
    }

    fn fold_down(&mut self, mut callers: Callers) -> Callers {
        while let Some((at, frame)) = self.path.pop() {
            let depth = callers.depth.saturating_add(1);
            let trace = match self.profile.code.is_between(frame) {
                true => Trace::EMPTY,
                false => self.joined(callers.trace, frame),
            };
            callers = Callers { trace, depth };
            self.known.insert(at, callers);
        }
        callers
    }

    fn joined(&mut self, caller: Trace, frame: Frame) -> Trace {
        let number = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        if !self.profile.scope.holds(frame) || number == Trace::EMPTY.0 {
            return caller;
        }
        let frame = self.number(frame);
        self.nodes.push(Node { caller, frame });
        Trace(number)
    }

    fn number(&mut self, frame: Frame) -> u32 {
        *self.numbers.entry(frame).or_insert_with(|| {
            self.frames.push((frame, self.profile.code.frame(frame)));
            self.frames.len() as u32 - 1
        })
    }

    fn named(&self, trace: Trace) -> impl Iterator<Item = &(Frame, StackFrame)> {
        let node = |trace: Trace| self.nodes.get(trace.index()).copied();
        let nodes = successors(node(trace), move |below| node(below.caller));
        nodes.filter_map(|node| self.frames.get(node.frame as usize))
    }

    /// Innermost first.
    pub fn frames(&self, trace: Trace) -> impl Iterator<Item = Frame> {
        self.named(trace).map(|(frame, _)| *frame)
    }

    /// Whether no frame is shown.
    #[must_use]
    pub fn is_outside(&self, trace: Trace) -> bool {
        self.nodes.get(trace.index()).is_none()
    }

    /// What they are called.
    pub fn shown(&self, trace: Trace) -> impl Iterator<Item = &StackFrame> {
        self.named(trace).map(|(_, shown)| shown)
    }

    /// For JSON: at most so many frames, innermost first.
    #[must_use]
    pub fn listed(&self, trace: Trace, most: usize) -> Listed<'_> {
        let traces = self;
        Listed {
            traces,
            trace,
            most,
        }
    }

    /// How many frames there are in all, those that traces share once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All frames with their callers' traces: callers come first.
    pub fn nodes(&self) -> impl Iterator<Item = (Option<Trace>, Frame, &StackFrame)> {
        self.nodes_from(0)
    }

    /// The frames that were met since there were `first` of them, with their callers' traces.
    pub fn nodes_from(
        &self,
        first: usize,
    ) -> impl Iterator<Item = (Option<Trace>, Frame, &StackFrame)> {
        let nodes = self.nodes.get(first..).unwrap_or_default();
        nodes.iter().filter_map(|node| {
            let (frame, shown) = self.frames.get(node.frame as usize)?;
            let caller = (node.caller != Trace::EMPTY).then_some(node.caller);
            Some((caller, *frame, shown))
        })
    }

    /// By trace, the sum of what its frames are worth.
    #[must_use]
    pub fn sums(&self, mut of: impl FnMut(Frame, &StackFrame) -> u64) -> Sums {
        let each = self.frames.iter().map(|(frame, shown)| of(*frame, shown));
        let each: Vec<u64> = each.collect();
        let mut sums: Vec<u64> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let above = sums.get(node.caller.index()).copied().unwrap_or(0);
            let own = each.get(node.frame as usize).copied().unwrap_or(0);
            sums.push(above.saturating_add(own));
        }
        Sums(sums)
    }

    /// The content id of a trace (docs/content-ids.md), equal in every run. What traces share is hashed once.
    pub fn stack(&mut self, trace: Trace) -> StackId {
        let code = &self.profile.code;
        let new = self.frames.get(self.frame_ids.len()..).unwrap_or_default();
        let new = new.iter();
        let new = new.map(|(frame, shown)| code.frame_id(*frame, shown, Detail::ByLine));
        self.frame_ids.extend(new);
        for node in self.nodes.get(self.stacks.len()..).unwrap_or_default() {
            let above = self.stacks.get(node.caller.index()).copied();
            let above = above.unwrap_or(StackId::EMPTY);
            let own = self.frame_ids.get(node.frame as usize);
            self.stacks.push(own.map_or(above, |own| above.then(*own)));
        }
        let found = self.stacks.get(trace.index()).copied();
        found.unwrap_or(StackId::EMPTY)
    }

    /// Every trace once, each after its callers' and before that of the next frame beside it: `begin` when it
    /// begins, `end` when all that it calls has ended.
    ///
    /// # Errors
    /// Those of the two.
    pub fn walk<E>(&self, visitor: &mut impl FnMut(Visit) -> Result<(), E>) -> Result<(), E> {
        let below = Below::new(&self.nodes);
        let mut open: Vec<Trace> = Vec::new();
        let mut next = below.first(Trace::EMPTY);
        loop {
            if let Some(trace) = next {
                visitor(Visit::Begin(trace))?;
                open.push(trace);
                next = below.first(trace);
            } else if let Some(trace) = open.pop() {
                visitor(Visit::End(trace))?;
                next = below.beside(trace);
            } else {
                return Ok(());
            }
        }
    }
}

/// See [`Traces::walk`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Visit {
    Begin(Trace),
    End(Trace),
}

/// The nodes below each node, in the order in which they were made.
struct Below {
    /// By node, its first one; the last is that of no node.
    first: Vec<Trace>,
    /// By node, the next one that has the same caller.
    beside: Vec<Trace>,
}

impl Below {
    fn new(nodes: &[Node]) -> Self {
        let mut first = vec![Trace::EMPTY; nodes.len() + 1];
        let mut beside = vec![Trace::EMPTY; nodes.len()];
        for (number, node) in nodes.iter().enumerate().rev() {
            let at = node.caller.index().min(nodes.len());
            if let (Some(first), Some(beside)) = (first.get_mut(at), beside.get_mut(number)) {
                *beside = std::mem::replace(first, Trace(number as u32));
            }
        }
        Below { first, beside }
    }

    fn first(&self, of: Trace) -> Option<Trace> {
        let at = of.index().min(self.beside.len());
        self.first
            .get(at)
            .copied()
            .filter(|trace| *trace != Trace::EMPTY)
    }

    fn beside(&self, of: Trace) -> Option<Trace> {
        let beside = self.beside.get(of.index()).copied();
        beside.filter(|trace| *trace != Trace::EMPTY)
    }
}

/// See [`Traces::listed`].
#[derive(Clone, Copy)]
pub struct Listed<'t> {
    traces: &'t Traces<'t>,
    trace: Trace,
    most: usize,
}

impl<'t> Listed<'t> {
    pub fn iter(&self) -> impl Iterator<Item = &'t StackFrame> + use<'t> {
        self.traces.shown(self.trace).take(self.most)
    }
}

impl Serialize for Listed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// See [`Traces::sums`].
pub struct Sums(Vec<u64>);

impl Sums {
    #[must_use]
    pub fn of(&self, trace: Trace) -> u64 {
        self.0.get(trace.index()).copied().unwrap_or(0)
    }
}
