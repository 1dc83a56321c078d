//! The versioned graph and how a number is decoded in it.
//!
//! Invariants, checked by [`Graph::apply`] before anything changes:
//! - Node (v, m) owns `[0, capacity)`; slot 0 means "the sub-path begins here".
//! - An additive transition into a node owns `[av, av + capacity of its caller)`, `av >= 1`, and
//!   these intervals are disjoint. So capacity strictly grows along additive transitions: walking
//!   back, callId shrinks at every step.
//! - An additive transition stays within its epoch (the versions from one base to the next), so
//!   the anchor field keeps its meaning.
//! - An anchor's parent was known before the anchor. So walking back ends.

mod anchors;
mod check;
mod node;
mod survey;
mod sweep;

use std::ops::RangeInclusive;

use self::anchors::Anchors;
use self::node::{Incoming, Nodes};
pub(crate) use self::survey::{Survey, ascending};
pub use self::sweep::Gone;
use crate::{
    Anchor, AnchorId, Base, Change, ContextId, DecodeError, Effect, GraphError, Layout, MethodId,
    Missing, Node, SiteId, Transition, Version,
};

/// A caller in a decoded context: the method and the place in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    pub site: SiteId,
    pub method: MethodId,
}

/// All that is known about numbers: built by the encoder, and again from the log.
#[derive(Clone, Debug)]
pub struct Graph {
    layout: Layout,
    epochs: Vec<Epoch>,
    nodes: Nodes,
    /// The newest version in use, 0 before the first base.
    newest: Version,
    transitions: usize,
}

#[derive(Clone, Debug)]
struct Epoch {
    base: Version,
    /// Of numbers of its versions.
    layout: Layout,
    anchors: Anchors,
}

/// An anchor: 20 bytes. A thread's first frame has no parent and [`SiteId::ENTRY`].
#[derive(Clone, Copy, Debug)]
struct Origin {
    /// The upper and the lower half of its number: together they would be aligned to 8 bytes.
    parent: [u32; 2],
    site: SiteId,
    caller: MethodId,
    head: MethodId,
}

impl Origin {
    fn parent(&self) -> ContextId {
        let [upper, lower] = self.parent.map(u64::from);
        ContextId(upper << 32 | lower)
    }
}

impl Graph {
    /// More frames than this are a damaged log, not a stack.
    pub const MAX_FRAMES: usize = 1 << 22;

    #[must_use]
    pub fn new(layout: Layout) -> Graph {
        Graph {
            layout,
            epochs: Vec::new(),
            nodes: Nodes::default(),
            newest: Version(0),
            transitions: 0,
        }
    }

    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Of numbers of this version; none before the first base.
    pub(crate) fn layout_of(&self, version: Version) -> Option<Layout> {
        Some(self.epoch(version)?.layout)
    }

    /// # Errors
    /// If the change contradicts the ones before it; the graph is then as it was.
    pub fn apply(&mut self, change: Change) -> Result<(), GraphError> {
        self.check(change)?;
        self.commit(change);
        Ok(())
    }

    /// The callers of `last` in context `id`, innermost first; none if it is a thread's entry.
    ///
    /// # Errors
    /// If the number is not one that this graph gives to `last`.
    pub fn decode(&self, id: ContextId, last: MethodId) -> Result<Vec<Frame>, DecodeError> {
        let mut frames = Vec::new();
        let mut at = (id, last);
        while let Some((parent, frame)) = self.caller(at.0, at.1)? {
            if frames.len() == Self::MAX_FRAMES {
                return Err(DecodeError::TooDeep);
            }
            frames.push(frame);
            at = (parent, frame.method);
        }
        Ok(frames)
    }

    /// One step back: the caller of `method` in context `id`, and the caller's own context; none if
    /// it is a thread's entry. Every path of such steps ends, but only [`decode`](Self::decode)
    /// refuses those of more than [`MAX_FRAMES`](Self::MAX_FRAMES).
    ///
    /// # Errors
    /// If this step shows that the number is not one that this graph gives to `method`; steps
    /// further back may still fail.
    pub fn caller(
        &self,
        id: ContextId,
        method: MethodId,
    ) -> Result<Option<(ContextId, Frame)>, DecodeError> {
        if !self.layout.fits(id) {
            return Err(unknown(id, Missing::Number));
        }
        let version = self.layout.version(id);
        let layout = self.layout_of(version);
        let layout = layout.ok_or_else(|| unknown(id, Missing::Base(version)))?;
        match layout.call(id) {
            0 => self.parent(id, method),
            call => self.source(layout, id, method, call).map(Some),
        }
    }

    fn parent(
        &self,
        id: ContextId,
        method: MethodId,
    ) -> Result<Option<(ContextId, Frame)>, DecodeError> {
        let origin = self.origin(id).map_err(|missing| unknown(id, missing))?;
        if origin.head != method {
            return Err(DecodeError::NotHead {
                id,
                method,
                head: origin.head,
            });
        }
        let frame = Frame {
            site: origin.site,
            method: origin.caller,
        };
        let parent = origin.parent();
        Ok((parent != ContextId::UNKNOWN).then_some((parent, frame)))
    }

    fn source(
        &self,
        layout: Layout,
        id: ContextId,
        method: MethodId,
        call: u64,
    ) -> Result<(ContextId, Frame), DecodeError> {
        let version = layout.version(id);
        let node = self.node(version, method);
        let node = node.ok_or_else(|| unknown(id, Missing::Node(version, method)))?;
        let edge = self.owner(node, call);
        let edge = edge.ok_or_else(|| unknown(id, Missing::Interval(version, method, call)))?;
        let parent = layout.pack(edge.from(), layout.anchor(id), call - edge.av);
        Ok((
            parent,
            Frame {
                site: edge.site(),
                method: edge.caller(),
            },
        ))
    }

    /// The transition whose interval holds `call`.
    fn owner(&self, node: &node::Node, call: u64) -> Option<Incoming> {
        let edge = node.caller_at(call)?;
        (call - edge.av < self.width(edge)?).then_some(edge)
    }

    /// How many numbers a caller owns.
    fn width(&self, edge: Incoming) -> Option<u64> {
        Some(self.node(edge.from(), edge.caller())?.capacity)
    }

    fn origin(&self, id: ContextId) -> Result<&Origin, Missing> {
        let version = self.layout.version(id);
        let epoch = self.epoch(version).ok_or(Missing::Base(version))?;
        let anchor = epoch.layout.anchor(id);
        let missing = Missing::Anchor(epoch.base, anchor);
        epoch.anchors.get(anchor.0 as usize).ok_or(missing)
    }

    fn epoch_index(&self, version: Version) -> Option<usize> {
        self.epochs
            .partition_point(|epoch| epoch.base <= version)
            .checked_sub(1)
    }

    fn epoch(&self, version: Version) -> Option<&Epoch> {
        self.epochs.get(self.epoch_index(version)?)
    }
}

/// What the encoder asks before it chooses.
impl Graph {
    pub(crate) fn node(&self, version: Version, method: MethodId) -> Option<&node::Node> {
        self.nodes.get(version, method)
    }

    /// The nodes of `method` in `versions`, in order.
    pub(crate) fn nodes_of(
        &self,
        method: MethodId,
        versions: RangeInclusive<Version>,
    ) -> impl Iterator<Item = (Version, &node::Node)> {
        self.nodes.range(method, versions)
    }

    /// Whether `[av, av + width)` of the node is free.
    pub(crate) fn is_free(&self, node: &node::Node, av: u64, width: u64) -> bool {
        let Some(end) = av.checked_add(width).filter(|end| *end <= node.capacity) else {
            return false;
        };
        if av >= node.used {
            return true;
        }
        let before = node.caller_at(end - 1);
        let taken = before.and_then(|edge| Some(edge.av + self.width(edge)?));
        av >= taken.unwrap_or(1)
    }

    /// Whether numbering starts at `version`.
    pub(crate) fn is_base(&self, version: Version) -> bool {
        self.epoch(version)
            .is_some_and(|epoch| epoch.base == version)
    }

    pub(crate) fn newest_base(&self) -> Option<Version> {
        Some(self.epochs.last()?.base)
    }

    /// The newest base and its next anchor; none if it has none left.
    pub(crate) fn next_anchor(&self) -> Option<(Version, AnchorId)> {
        let epoch = self.epochs.last()?;
        let count = epoch.anchors.len() as u64;
        // Anchors have 32 bits at most.
        (count < epoch.layout.anchors()).then_some((epoch.base, AnchorId(count as u32)))
    }

    /// Of numbers from this base on; none if it leaves no room for anchors, or for callIds.
    fn layout_from(&self, base: Base) -> Option<Layout> {
        match base.anchor_bits {
            None => Some(self.layout),
            Some(bits) => self.layout.with_anchor_bits(bits),
        }
    }

    /// The version that a fresh base would have.
    pub(crate) fn next_base(&self) -> Option<Version> {
        (self.newest < self.layout.max_version()).then_some(Version(self.newest.0 + 1))
    }

    /// The last version of an epoch that has ended; none for the newest.
    pub(crate) fn epoch_end(&self, version: Version) -> Option<Version> {
        let next = self.epochs.get(self.epoch_index(version)? + 1)?;
        Some(Version(next.base.0 - 1))
    }

    /// Whether `id` can be a context of `method`: its node, range and anchor are known.
    pub(crate) fn holds(&self, id: ContextId, method: MethodId) -> bool {
        let version = self.layout.version(id);
        let (Some(node), Some(epoch)) = (self.node(version, method), self.epoch(version)) else {
            return false;
        };
        let anchor = epoch.layout.anchor(id).0 as usize;
        self.layout.fits(id)
            && epoch.layout.call(id) < node.capacity
            && anchor < epoch.anchors.len()
    }
}

/// How large the graph is.
impl Graph {
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    #[must_use]
    pub fn transitions(&self) -> usize {
        self.transitions
    }

    #[must_use]
    pub fn anchors(&self) -> usize {
        self.epochs.iter().map(|epoch| epoch.anchors.len()).sum()
    }

    #[must_use]
    pub fn versions(&self) -> usize {
        self.newest.0 as usize
    }

    #[must_use]
    pub fn bases(&self) -> usize {
        self.epochs.len()
    }

    /// What was allocated, without the allocator's own bookkeeping.
    #[must_use]
    pub fn memory(&self) -> usize {
        let anchors = self.epochs.iter().map(|epoch| epoch.anchors.bytes());
        self.nodes.bytes() + anchors.sum::<usize>()
    }
}

/// The effects of [`Graph::apply`]; the change was checked.
impl Graph {
    pub(crate) fn commit(&mut self, change: Change) {
        match change {
            Change::Base(base @ Base { version, .. }) => {
                self.epochs.push(Epoch {
                    base: version,
                    layout: self.layout_from(base).unwrap_or(self.layout),
                    anchors: Anchors::default(),
                });
                self.newest = version;
            }
            Change::Node(node) => self.commit_node(node),
            Change::Transition(transition) => self.commit_transition(transition),
            Change::Anchor(anchor) => self.commit_anchor(anchor),
        }
    }

    fn commit_node(
        &mut self,
        Node {
            version,
            method,
            capacity,
        }: Node,
    ) {
        self.nodes
            .insert(method, node::Node::new(version, capacity));
        self.newest = self.newest.max(version);
    }

    fn commit_transition(&mut self, transition: Transition) {
        self.transitions += 1;
        let Transition {
            version: from,
            site,
            caller,
            callee,
            effect,
        } = transition;
        let Effect::Additive { to, av } = effect else {
            return;
        };
        let width = self.node(from, caller).map_or(0, |node| node.capacity);
        let edge = Incoming::new(av, from, site, caller);
        self.nodes.add((to, callee), edge, width);
    }

    fn commit_anchor(&mut self, Anchor { head, parent, .. }: Anchor) {
        let entry = (ContextId::UNKNOWN, SiteId::ENTRY, MethodId(0));
        let (parent, site, caller) = parent.unwrap_or(entry);
        if let Some(epoch) = self.epochs.last_mut() {
            epoch.anchors.push(Origin {
                parent: [(parent.0 >> 32) as u32, parent.0 as u32],
                site,
                caller,
                head,
            });
        }
    }
}

#[cold]
fn unknown(id: ContextId, missing: Missing) -> DecodeError {
    DecodeError::Unknown { id, missing }
}
