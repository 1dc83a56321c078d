//! The location of an event.

use lucce_callgraph::{MethodId, SiteId};

/// A location at which an event may happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventLocation {
    /// The context of the innermost frame, as its thread keeps it: a number, or with `tracking=cct` a node of the
    /// thread's tree.
    pub context: u64,
    /// The method and line of that frame.
    pub site: SiteId,
    pub method: MethodId,
}
