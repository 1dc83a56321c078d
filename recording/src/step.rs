//! What happened in a run, one thing after the other.

use lucce_callgraph::{Frame, MethodId, SiteId};

/// A thread of a recording; they are counted from 0, in the order in which they started.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct ThreadId(pub u32);

/// `caller` calls `callee` at `site`. A thread's first frame is called by nobody: its site is
/// [`SiteId::ENTRY`] and its caller [`Edge::NOBODY`]. An event calls [`MethodId::EVENT`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Edge {
    pub site: SiteId,
    pub caller: MethodId,
    pub callee: MethodId,
}

impl Edge {
    pub const NOBODY: MethodId = MethodId(0);

    /// Of a thread's first frame.
    #[must_use]
    pub const fn entry(callee: MethodId) -> Edge {
        Edge {
            site: SiteId::ENTRY,
            caller: Edge::NOBODY,
            callee,
        }
    }

    /// Of an event at `place`.
    #[must_use]
    pub const fn event(place: Frame) -> Edge {
        Edge {
            site: place.site,
            caller: place.method,
            callee: MethodId::EVENT,
        }
    }

    /// The calling frame.
    #[must_use]
    pub const fn place(self) -> Frame {
        Frame {
            site: self.site,
            method: self.caller,
        }
    }

    #[must_use]
    pub fn is_entry(self) -> bool {
        self.caller == Edge::NOBODY
    }
}

/// Where a thread comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// The thread that started it. That thread's stack, at this point of the recording, is the
    /// context of the start. `None`: the VM started it, or nobody knows.
    pub parent: Option<ThreadId>,
    /// How many steps the parent had made.
    pub position: u64,
}

/// One step of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The thread's first step.
    Start(Start),
    Enter(Edge),
    /// Something that wants to know its context; the edge's callee is [`MethodId::EVENT`].
    Event(Edge),
    /// The innermost frame returns.
    Exit,
    /// An exception ended this many frames, at least 1.
    Unwind(u32),
}
