//! Sizes of the encoder, and what it could not do.

use std::time::Duration;

/// A snapshot; all counts since the encoder was created.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EncoderStats {
    pub nodes: usize,
    pub transitions: usize,
    pub anchors: usize,
    pub versions: usize,
    pub bases: usize,
    /// How often the mutex was taken to find a number.
    pub slow_lookups: u64,
    /// How often `ContextId::UNKNOWN` was returned.
    pub unknown: u64,
    /// Changes that the journal refused.
    pub refused: u64,
    /// How often the graph was renumbered, and how long that took.
    pub re_encodings: u64,
    pub re_encoding_time: Duration,
    /// Tables (old generations included) and graph, in bytes.
    pub memory_bytes: usize,
}
