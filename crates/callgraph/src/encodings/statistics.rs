//! What an encoding cost.

use std::time::Duration;

/// A snapshot; all counts since the encoding was made. What an encoding does not have is 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EncodingStatistics {
    /// Of the call graph that is numbered.
    pub nodes: u64,
    pub edges: u64,
    /// The largest number that a context can have.
    pub max_id: u64,
    /// Bytes in memory: graph, tables, dictionaries. Threads' own stacks are not counted.
    pub memory_bytes: u64,
    /// Bytes that were logged so that numbers can be decoded.
    pub log_bytes: u64,
    /// How often there was no number to give.
    pub unnumbered: u64,
    /// Pushes and pops of encoding stacks.
    pub stack_operations: u64,
    /// Interned contexts.
    pub anchors: u64,
    /// Calls whose number was computed, and those of them that anchored.
    pub steps: u64,
    pub anchoring: u64,
    /// How often everything was numbered anew, and what that took.
    pub re_encodings: u64,
    pub re_encoding_time: Duration,
    /// Contexts that share their number with another one.
    pub collisions: u64,
    /// How numbers came to be, where they change: oldest first.
    pub progress: Vec<ReEncodingProgress>,
    /// Other counts, by name.
    pub other_counts: Vec<(&'static str, u64)>,
}

/// The graph after a renumbering (DACCE's Figure 9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReEncodingProgress {
    /// Calls before it.
    pub calls: u64,
    /// Contexts that were collected before it.
    pub samples: u64,
    pub nodes: u64,
    pub edges: u64,
    pub max_id: u64,
}
