//! Why a change or a number was rejected.

use std::fmt;

use crate::{AnchorId, ContextId, MethodId, Version};

/// A number that this graph cannot decode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// The graph lacks data for the number, or for one through which it was reached.
    Unknown {
        id: ContextId,
        missing: MissingReference,
    },
    /// The number's anchor has another head than the requested method.
    NotHead {
        id: ContextId,
        method: MethodId,
        head: MethodId,
    },
    /// More frames than any thread has.
    TooDeep,
}

/// The data that the graph lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingReference {
    /// It is [`ContextId::UNKNOWN`], or no number of this layout.
    Number,
    /// No base version is at or before it.
    Base(Version),
    Node(Version, MethodId),
    /// The node exists but no transition owns this callId.
    Interval(Version, MethodId, u64),
    Anchor(Version, AnchorId),
}

/// A change that contradicts earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraphError {
    /// A version that is 0, exceeds the layout, or precedes the first base.
    Version(Version),
    /// A base must come after every version in use.
    BaseTooEarly(Version),
    /// A base whose numbers would have no anchor or no callId.
    AnchorBits(u32),
    Method(MethodId),
    Site(u32),
    /// A capacity of 0, or above the number of callIds.
    Capacity(u64),
    NodeExists(Version, MethodId),
    NoNode(Version, MethodId),
    /// An additive transition must stay within its base and never go back.
    Backwards(Version, Version),
    /// The interval overlaps another one or slot 0, or exceeds the node.
    Interval {
        to: Version,
        callee: MethodId,
        av: u64,
    },
    /// Anchors must be numbered consecutively within the newest base.
    AnchorOrder(Version, AnchorId),
    /// The anchor's parent is no number that was handed out before.
    Parent(ContextId),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { id, .. } if *id == ContextId::UNKNOWN => {
                f.write_str("0 stands for no context")
            }
            Self::Unknown { missing, .. } => missing.fmt(f),
            Self::NotHead { method, head, .. } => {
                write!(
                    f,
                    "its anchor stands for {}, not for {}",
                    MethodLabel(*head),
                    MethodLabel(*method)
                )
            }
            Self::TooDeep => write!(f, "more frames than any thread has"),
        }
    }
}

impl fmt::Display for MissingReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number => f.write_str("it does not look like numbers of this run"),
            Self::Base(v) => write!(f, "the run has no numbers of version {}", v.0),
            Self::Node(v, m) => {
                write!(
                    f,
                    "the run has no number of version {} for {}",
                    v.0,
                    MethodLabel(*m)
                )
            }
            Self::Interval(v, m, call) => {
                write!(
                    f,
                    "the run has given callId {call} of version {} to no call of {}",
                    v.0,
                    MethodLabel(*m)
                )
            }
            Self::Anchor(v, a) => {
                write!(f, "the run has no anchor {} in version {}", a.0, v.0)
            }
        }
    }
}

/// Displays a method as the graph knows it.
struct MethodLabel(MethodId);

impl fmt::Display for MethodLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            MethodId::EVENT => f.write_str("an event"),
            MethodId(number) => write!(f, "method {number}"),
        }
    }
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(v) => write!(f, "version {} cannot be", v.0),
            Self::BaseTooEarly(v) => write!(f, "base {} is not after all versions in use", v.0),
            Self::AnchorBits(bits) => write!(f, "anchors of {bits} bits leave no room"),
            Self::Method(m) => write!(f, "method {} is out of range", m.0),
            Self::Site(s) => write!(f, "site {s} is out of range"),
            Self::Capacity(c) => write!(f, "capacity {c} is out of range"),
            Self::NodeExists(v, m) => write!(f, "method {} exists in version {}", m.0, v.0),
            Self::NoNode(v, m) => write!(f, "method {} is not known in version {}", m.0, v.0),
            Self::Backwards(v, to) => write!(f, "no transition from version {} to {}", v.0, to.0),
            Self::Interval { to, callee, av } => {
                write!(
                    f,
                    "interval at {av} of method {} in version {} is taken",
                    callee.0, to.0
                )
            }
            Self::AnchorOrder(v, a) => write!(f, "anchor {} of base {} is out of order", a.0, v.0),
            Self::Parent(id) => write!(f, "anchor's parent {id} is not known"),
        }
    }
}

impl std::error::Error for DecodeError {}
impl std::error::Error for GraphError {}
