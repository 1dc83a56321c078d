//! Edges of the call graph.

use crate::{Frame, MethodId, SiteId};

/// `caller` calls `callee` at `site`. A thread's first frame has no caller: its site is
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
