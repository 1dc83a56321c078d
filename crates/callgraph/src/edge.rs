//! Edges of the call graph.

use crate::{ContextFrame, MethodId, SiteId};

/// A call of `callee` by `caller` at `site`.
///
/// A thread's first frame has no caller: its site is [`SiteId::ENTRY`] and its caller [`CallEdge::NO_CALLER`]. An event
/// calls [`MethodId::EVENT`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct CallEdge {
    pub site: SiteId,
    pub caller: MethodId,
    pub callee: MethodId,
}

impl CallEdge {
    /// In place of the caller of a thread's first frame.
    pub const NO_CALLER: MethodId = MethodId(0);

    /// Returns the edge of a thread's first frame.
    #[must_use]
    pub const fn from_thread_entry(callee: MethodId) -> CallEdge {
        CallEdge {
            site: SiteId::ENTRY,
            caller: CallEdge::NO_CALLER,
            callee,
        }
    }

    /// Returns the edge of an event at `place`.
    #[must_use]
    pub const fn from_event_frame(place: ContextFrame) -> CallEdge {
        CallEdge {
            site: place.site,
            caller: place.method,
            callee: MethodId::EVENT,
        }
    }

    /// Returns the calling frame.
    #[must_use]
    pub const fn caller_frame(self) -> ContextFrame {
        ContextFrame {
            site: self.site,
            method: self.caller,
        }
    }

    /// Whether the callee is a thread's first frame.
    #[must_use]
    pub fn is_entry(self) -> bool {
        self.caller == CallEdge::NO_CALLER
    }
}
