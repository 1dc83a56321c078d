//! The ids that all crates share, each a newtype, and how their bits are used.

use std::fmt;

/// A method of one loaded class. At most [`MethodId::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct MethodId(pub u32);

impl MethodId {
    /// 24 bits, so that version, site and callee fit one 64-bit key.
    pub const BITS: u32 = 24;
    /// The pseudo-method that an event "calls": its number alone decodes to the whole trace.
    pub const EVENT: MethodId = MethodId((1 << Self::BITS) - 1);
    /// The largest id of a real method.
    pub const MAX: u32 = Self::EVENT.0 - 1;
}

/// A position in a method that calls something or has an event. 0 is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct SiteId(pub u32);

impl SiteId {
    /// 28 bits, so that version, site and callee fit one 64-bit key.
    pub const BITS: u32 = 28;
    /// No site: a frame that has not called anything yet.
    pub const NONE: SiteId = SiteId(0);
    /// The slot below a thread's first frame: there is no caller.
    pub const ENTRY: SiteId = SiteId((1 << Self::BITS) - 1);
    /// The largest id of a real site.
    pub const MAX: u32 = Self::ENTRY.0 - 1;
}

/// A thread of the program. Threads are counted from 0, in the order of their starts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct ProgramThreadId(pub u32);

/// A version of the graph. 0 is never used, so that no number is 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Version(pub u32);

/// An interned context from which numbering restarts; unique within its base version.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct AnchorId(pub u32);

/// A calling context's number: `version | anchor | callId`, most significant first. 0 is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ContextId(pub u64);

impl ContextId {
    /// No context is known: there is no agent, or the graph's log is full.
    pub const UNKNOWN: ContextId = ContextId(0);
}

impl fmt::Debug for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
