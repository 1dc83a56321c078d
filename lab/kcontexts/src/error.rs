//! What calls cannot be.

use std::fmt;

use crate::ids::{CallLabel, TraceThreadId};

/// Why a stream of calls is none, or does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KContextError {
    /// An exit without an enter.
    NothingToLeave(TraceThreadId),
    /// An event outside of all calls.
    NothingEntered(TraceThreadId),
    /// A label that was not announced; the second number is how many were.
    UnknownLabel(CallLabel, u32),
    /// A forest has at most 2^32 - 1 nodes.
    TooManyNodes,
    /// Slabs of no height, or contexts longer than the slabs they are to be read from.
    Height,
}

impl fmt::Display for KContextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KContextError::NothingToLeave(TraceThreadId(thread)) => {
                write!(f, "thread {thread} leaves a call that it did not enter")
            }
            KContextError::NothingEntered(TraceThreadId(thread)) => {
                write!(f, "thread {thread} has an event outside of all calls")
            }
            KContextError::UnknownLabel(CallLabel(label), known) => {
                write!(f, "label {label} of {known} is called")
            }
            KContextError::TooManyNodes => f.write_str("more nodes than a forest can hold"),
            KContextError::Height => {
                f.write_str("slabs of height k give contexts of length 1 to k only")
            }
        }
    }
}

impl std::error::Error for KContextError {}
