//! The cost of an encoding.

use std::time::Duration;

/// A snapshot; all counts since the encoding was created. Fields that an encoding does not have are 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EncodingStatistics {
    /// Nodes of the numbered call graph.
    pub nodes: u64,
    pub edges: u64,
    /// The largest number that a context can have.
    pub max_id: u64,
    /// Bytes in memory: graph, tables, dictionaries. Threads' own stacks are not included.
    pub memory_bytes: u64,
    /// Bytes logged for decoding.
    pub log_bytes: u64,
    /// How often no number was left.
    pub unnumbered: u64,
    /// Number of pushes and pops of encoding stacks.
    pub stack_operations: u64,
    /// Number of interned contexts.
    pub anchors: u64,
    /// Number of calls whose number was computed, and how many of them anchored.
    pub steps: u64,
    pub anchoring: u64,
    /// How often the graph was renumbered, and how long that took.
    pub re_encodings: u64,
    pub re_encoding_time: Duration,
    /// Contexts that share their number with another one.
    pub collisions: u64,
    /// The state after each renumbering, oldest first.
    pub progress: Vec<ReEncodingProgress>,
    /// Other counts, by name.
    pub other_counts: Vec<(&'static str, u64)>,
}

/// The graph after a renumbering (DACCE's Figure 9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReEncodingProgress {
    /// Number of calls before it.
    pub calls: u64,
    /// Number of contexts sampled before it.
    pub samples: u64,
    pub nodes: u64,
    pub edges: u64,
    pub max_id: u64,
}
