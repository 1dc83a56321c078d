//! The versioned graph, and decoding of numbers in it.
//!
//! Invariants, checked by [`VersionedGraph::apply_change`] before anything changes:
//! - Node (v, m) owns `[0, capacity)`; slot 0 means "the sub-path begins here".
//! - An additive transition into a node owns `[av, av + capacity of its caller)`, `av >= 1`. These intervals are
//!   disjoint. So capacity strictly grows along additive transitions, and callId shrinks at every step back.
//! - An additive transition stays within its epoch (the versions from one base to the next), so the anchor field keeps
//!   its meaning.
//! - An anchor's parent was known before the anchor. So walking back ends.

mod anchors;
mod check;
mod node;
mod survey;
mod sweep;

use std::ops::RangeInclusive;

use self::anchors::AnchorStore;
use self::node::{IncomingInterval, NodeTable};
pub(crate) use self::survey::{LivenessSurvey, sort_ascending};
pub use self::sweep::DeadCode;
use crate::{
    Anchor, AnchorId, Base, ContextId, ContextLayout, DecodeError, GraphChange, GraphError,
    GraphNode, MethodId, MissingReference, SiteId, Transition, TransitionEffect, Version,
};

/// A caller in a decoded context: the method and the call site.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ContextFrame {
    pub site: SiteId,
    pub method: MethodId,
}

/// All facts about numbers: built by the encoder, and again from the log.
#[derive(Clone, Debug)]
pub struct VersionedGraph {
    layout: ContextLayout,
    epochs: Vec<GraphEpoch>,
    nodes: NodeTable,
    /// The newest version in use, 0 before the first base.
    newest: Version,
    transitions: usize,
}

#[derive(Clone, Debug)]
struct GraphEpoch {
    base: Version,
    /// The layout of numbers of its versions.
    layout: ContextLayout,
    anchors: AnchorStore,
}

/// The origin of an anchor: 20 bytes. A thread's first frame has no parent and [`SiteId::ENTRY`].
#[derive(Clone, Copy, Debug)]
struct AnchorOrigin {
    /// The upper and the lower half of the parent's number; one u64 would be aligned to 8 bytes.
    parent: [u32; 2],
    site: SiteId,
    caller: MethodId,
    head: MethodId,
}

impl AnchorOrigin {
    fn parent_context(&self) -> ContextId {
        let [upper, lower] = self.parent.map(u64::from);
        ContextId(upper << 32 | lower)
    }
}

impl VersionedGraph {
    /// More frames than this are a damaged log, not a stack.
    pub const MAX_FRAMES: usize = 1 << 22;

    #[must_use]
    pub fn new(layout: ContextLayout) -> VersionedGraph {
        VersionedGraph {
            layout,
            epochs: Vec::new(),
            nodes: NodeTable::default(),
            newest: Version(0),
            transitions: 0,
        }
    }

    #[must_use]
    pub fn layout(&self) -> ContextLayout {
        self.layout
    }

    /// Returns the layout of numbers of this version; none before the first base.
    pub(crate) fn layout_of(&self, version: Version) -> Option<ContextLayout> {
        Some(self.epoch_of(version)?.layout)
    }

    /// Applies a change.
    ///
    /// # Errors
    /// The change contradicts earlier ones; the graph is then unchanged.
    pub fn apply_change(&mut self, change: GraphChange) -> Result<(), GraphError> {
        self.check_change(change)?;
        self.commit_change(change);
        Ok(())
    }

    /// Returns the callers of `last` in context `id`, innermost first; none if it is a thread's entry.
    ///
    /// # Errors
    /// This graph does not give the number to `last`.
    pub fn decode_context(
        &self,
        id: ContextId,
        last: MethodId,
    ) -> Result<Vec<ContextFrame>, DecodeError> {
        let mut frames = Vec::new();
        let mut at = (id, last);
        while let Some((parent, frame)) = self.find_caller(at.0, at.1)? {
            if frames.len() == Self::MAX_FRAMES {
                return Err(DecodeError::TooDeep);
            }
            frames.push(frame);
            at = (parent, frame.method);
        }
        Ok(frames)
    }

    /// Goes one step back: returns the caller of `method` in context `id`, and the caller's own context.
    ///
    /// Returns none for a thread's entry. Every sequence of such steps ends, but only
    /// [`decode_context`](Self::decode_context) refuses sequences of more than [`MAX_FRAMES`](Self::MAX_FRAMES).
    ///
    /// # Errors
    /// This step shows that the graph does not give the number to `method`; further steps may still fail.
    pub fn find_caller(
        &self,
        id: ContextId,
        method: MethodId,
    ) -> Result<Option<(ContextId, ContextFrame)>, DecodeError> {
        if !self.layout.fits_context(id) {
            return Err(unknown_context(id, MissingReference::Number));
        }
        let version = self.layout.version_of(id);
        let layout = self.layout_of(version);
        let layout = layout.ok_or_else(|| unknown_context(id, MissingReference::Base(version)))?;
        match layout.call_id_of(id) {
            0 => self.anchor_parent(id, method),
            call => self.interval_source(layout, id, method, call).map(Some),
        }
    }

    fn anchor_parent(
        &self,
        id: ContextId,
        method: MethodId,
    ) -> Result<Option<(ContextId, ContextFrame)>, DecodeError> {
        let origin = self
            .anchor_origin(id)
            .map_err(|missing| unknown_context(id, missing))?;
        if origin.head != method {
            return Err(DecodeError::NotHead {
                id,
                method,
                head: origin.head,
            });
        }
        let frame = ContextFrame {
            site: origin.site,
            method: origin.caller,
        };
        let parent = origin.parent_context();
        Ok((parent != ContextId::UNKNOWN).then_some((parent, frame)))
    }

    fn interval_source(
        &self,
        layout: ContextLayout,
        id: ContextId,
        method: MethodId,
        call: u64,
    ) -> Result<(ContextId, ContextFrame), DecodeError> {
        let version = layout.version_of(id);
        let node = self.find_node(version, method);
        let node =
            node.ok_or_else(|| unknown_context(id, MissingReference::Node(version, method)))?;
        let edge = self.owning_interval(node, call);
        let edge = edge.ok_or_else(|| {
            unknown_context(id, MissingReference::Interval(version, method, call))
        })?;
        let parent =
            layout.pack_context(edge.source_version(), layout.anchor_of(id), call - edge.av);
        Ok((
            parent,
            ContextFrame {
                site: edge.site(),
                method: edge.caller(),
            },
        ))
    }

    /// Returns the transition whose interval holds `call`.
    fn owning_interval(&self, node: &node::NodeIntervals, call: u64) -> Option<IncomingInterval> {
        let edge = node.caller_at(call)?;
        (call - edge.av < self.interval_width(edge)?).then_some(edge)
    }

    /// Returns how many numbers a caller owns.
    fn interval_width(&self, edge: IncomingInterval) -> Option<u64> {
        Some(
            self.find_node(edge.source_version(), edge.caller())?
                .capacity,
        )
    }

    fn anchor_origin(&self, id: ContextId) -> Result<&AnchorOrigin, MissingReference> {
        let version = self.layout.version_of(id);
        let epoch = self
            .epoch_of(version)
            .ok_or(MissingReference::Base(version))?;
        let anchor = epoch.layout.anchor_of(id);
        let missing = MissingReference::Anchor(epoch.base, anchor);
        epoch.anchors.get(anchor.0 as usize).ok_or(missing)
    }

    fn epoch_index(&self, version: Version) -> Option<usize> {
        self.epochs
            .partition_point(|epoch| epoch.base <= version)
            .checked_sub(1)
    }

    fn epoch_of(&self, version: Version) -> Option<&GraphEpoch> {
        self.epochs.get(self.epoch_index(version)?)
    }
}

/// Queries of the encoder before it chooses a transition.
impl VersionedGraph {
    pub(crate) fn find_node(
        &self,
        version: Version,
        method: MethodId,
    ) -> Option<&node::NodeIntervals> {
        self.nodes.get(version, method)
    }

    /// Returns the nodes of `method` in `versions`, in order.
    pub(crate) fn method_nodes(
        &self,
        method: MethodId,
        versions: RangeInclusive<Version>,
    ) -> impl Iterator<Item = (Version, &node::NodeIntervals)> {
        self.nodes.nodes_in_range(method, versions)
    }

    /// Whether `[av, av + width)` of the node is free.
    pub(crate) fn is_free(&self, node: &node::NodeIntervals, av: u64, width: u64) -> bool {
        let Some(end) = av.checked_add(width).filter(|end| *end <= node.capacity) else {
            return false;
        };
        if av >= node.used {
            return true;
        }
        let before = node.caller_at(end - 1);
        let taken = before.and_then(|edge| Some(edge.av + self.interval_width(edge)?));
        av >= taken.unwrap_or(1)
    }

    /// Whether a new numbering starts at `version`.
    pub(crate) fn is_base(&self, version: Version) -> bool {
        self.epoch_of(version)
            .is_some_and(|epoch| epoch.base == version)
    }

    pub(crate) fn newest_base(&self) -> Option<Version> {
        Some(self.epochs.last()?.base)
    }

    /// Returns the newest base and its next anchor; none if no anchor is left.
    pub(crate) fn next_anchor(&self) -> Option<(Version, AnchorId)> {
        let epoch = self.epochs.last()?;
        let count = epoch.anchors.len() as u64;
        // Anchors have 32 bits at most.
        (count < epoch.layout.anchor_count()).then_some((epoch.base, AnchorId(count as u32)))
    }

    /// Returns the layout from this base on; none if it leaves no room for anchors or for callIds.
    fn layout_from(&self, base: Base) -> Option<ContextLayout> {
        match base.anchor_bits {
            None => Some(self.layout),
            Some(bits) => self.layout.with_anchor_bits(bits),
        }
    }

    /// Returns the version that a fresh base would have.
    pub(crate) fn next_base(&self) -> Option<Version> {
        (self.newest < self.layout.max_version()).then_some(Version(self.newest.0 + 1))
    }

    /// Returns the last version of an epoch that has ended; none for the newest epoch.
    pub(crate) fn epoch_end(&self, version: Version) -> Option<Version> {
        let next = self.epochs.get(self.epoch_index(version)? + 1)?;
        Some(Version(next.base.0 - 1))
    }

    /// Whether `id` can be a context of `method`: its node, range and anchor are known.
    pub(crate) fn holds_context(&self, id: ContextId, method: MethodId) -> bool {
        let version = self.layout.version_of(id);
        let (Some(node), Some(epoch)) = (self.find_node(version, method), self.epoch_of(version))
        else {
            return false;
        };
        let anchor = epoch.layout.anchor_of(id).0 as usize;
        self.layout.fits_context(id)
            && epoch.layout.call_id_of(id) < node.capacity
            && anchor < epoch.anchors.len()
    }
}

/// Sizes of the graph.
impl VersionedGraph {
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    #[must_use]
    pub fn transition_count(&self) -> usize {
        self.transitions
    }

    #[must_use]
    pub fn anchor_count(&self) -> usize {
        self.epochs.iter().map(|epoch| epoch.anchors.len()).sum()
    }

    #[must_use]
    pub fn version_count(&self) -> usize {
        self.newest.0 as usize
    }

    #[must_use]
    pub fn base_count(&self) -> usize {
        self.epochs.len()
    }

    /// Returns the allocated bytes, without the allocator's overhead.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let anchors = self.epochs.iter().map(|epoch| epoch.anchors.memory_bytes());
        self.nodes.memory_bytes() + anchors.sum::<usize>()
    }
}

/// The effects of [`VersionedGraph::apply_change`], for changes that were checked.
impl VersionedGraph {
    pub(crate) fn commit_change(&mut self, change: GraphChange) {
        match change {
            GraphChange::Base(base @ Base { version, .. }) => {
                self.epochs.push(GraphEpoch {
                    base: version,
                    layout: self.layout_from(base).unwrap_or(self.layout),
                    anchors: AnchorStore::default(),
                });
                self.newest = version;
            }
            GraphChange::Node(node) => self.commit_node(node),
            GraphChange::Transition(transition) => self.commit_transition(transition),
            GraphChange::Anchor(anchor) => self.commit_anchor(anchor),
        }
    }

    fn commit_node(
        &mut self,
        GraphNode {
            version,
            method,
            capacity,
        }: GraphNode,
    ) {
        self.nodes
            .insert(method, node::NodeIntervals::new(version, capacity));
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
        let TransitionEffect::Additive { to, av } = effect else {
            return;
        };
        let width = self.find_node(from, caller).map_or(0, |node| node.capacity);
        let edge = IncomingInterval::new(av, from, site, caller);
        self.nodes.add_interval((to, callee), edge, width);
    }

    fn commit_anchor(&mut self, Anchor { head, parent, .. }: Anchor) {
        let entry = (ContextId::UNKNOWN, SiteId::ENTRY, MethodId(0));
        let (parent, site, caller) = parent.unwrap_or(entry);
        if let Some(epoch) = self.epochs.last_mut() {
            epoch.anchors.push(AnchorOrigin {
                parent: [(parent.0 >> 32) as u32, parent.0 as u32],
                site,
                caller,
                head,
            });
        }
    }
}

#[cold]
fn unknown_context(id: ContextId, missing: MissingReference) -> DecodeError {
    DecodeError::Unknown { id, missing }
}
