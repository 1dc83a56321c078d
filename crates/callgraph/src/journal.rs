//! The changes that the encoder reports to its log, in order, before any number depends on them.

use crate::{AnchorId, ContextId, MethodId, SiteId, Version};

/// A fresh base version begins: numbering restarts, and anchors are counted from 0 again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Base {
    pub version: Version,
    /// The number of anchor bits in all later numbers; `None`: as in the layout. The version's bits do not change.
    pub anchor_bits: Option<u32>,
}

impl Base {
    /// A base whose numbers have the layout's bits.
    #[must_use]
    pub const fn new(version: Version) -> Base {
        Base {
            version,
            anchor_bits: None,
        }
    }
}

/// Method `method` in version `version` owns the numbers `[0, capacity)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GraphNode {
    pub version: Version,
    pub method: MethodId,
    pub capacity: u64,
}

/// What happens when a frame in version `version` calls `callee` at `site`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    pub version: Version,
    pub site: SiteId,
    /// The method that `site` lies in: its node owns the range that is shifted.
    pub caller: MethodId,
    pub callee: MethodId,
    pub effect: TransitionEffect,
}

/// The effect of a transition on a context's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransitionEffect {
    /// `(version, a, c)` becomes `(to, a, c + av)`.
    Additive { to: Version, av: u64 },
    /// The whole caller context is interned; the callee restarts at callId 0 of a base version.
    Anchoring,
}

/// Anchor `id` of base version `base` stands for `head`, reached from `parent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Anchor {
    pub base: Version,
    pub id: AnchorId,
    pub head: MethodId,
    /// The caller's context and the site it called from; `None`: `head` is a thread's first frame.
    pub parent: Option<(ContextId, SiteId, MethodId)>,
}

/// A change of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraphChange {
    Base(Base),
    Node(GraphNode),
    Transition(Transition),
    Anchor(Anchor),
}

/// The log refused a change, for example because the disk is full. The change must not become visible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalError;

/// Receives every change before it becomes visible to any thread.
pub trait GraphJournal {
    /// Appends a change.
    ///
    /// # Errors
    /// [`JournalError`] if the change could not be made durable; the encoder then drops it.
    fn append_change(&mut self, change: GraphChange) -> Result<(), JournalError>;
}

/// Keeps the changes in memory, for tests and for replay.
impl GraphJournal for Vec<GraphChange> {
    fn append_change(&mut self, change: GraphChange) -> Result<(), JournalError> {
        self.push(change);
        Ok(())
    }
}
