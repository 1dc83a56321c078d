//! Where a thread is.

use lucce_callgraph::{MethodId, SiteId};

/// A place where an event may happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventLocation {
    /// The innermost frame's context as its thread's events have it: a number, or with `tracking=cct` a node of
    /// the thread's tree.
    pub context: u64,
    /// The method and line at which that frame is.
    pub site: SiteId,
    pub method: MethodId,
}
