//! Offsets for readers in other languages, in words of 8 bytes: see [`RawTables`](crate::RawTables).
//!
//! The agent's build makes constants of the helper classes from them.

/// Hashes are products with this factor: their high bits count.
pub const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
/// The second of two words that are hashed together is rotated left by this many bits.
pub const ROTATION: u32 = 32;

/// The block: the address of the calls' transition table, the right shift that extracts a number's version, the address
/// of the anchor table, and that of the events' transition table.
pub const CALLS: usize = 0;
pub const VERSION_SHIFT: usize = 1;
pub const ANCHORS: usize = 2;
pub const EVENTS: usize = 3;

/// A table: the right shift of a hash, the number of its entries less one, and the start of the entries.
pub const SHIFT: usize = 0;
pub const MASK: usize = 1;
pub const HEADER: usize = 8;

/// An entry of a transition table.
pub const TRANSITION_WORDS: usize = 2;
pub const KEY: usize = 0;
pub const DELTA: usize = 1;
/// The delta of a transition that anchors.
pub const ANCHORING: u64 = u64::MAX;

/// An entry of the anchor table.
pub const ANCHOR_WORDS: usize = 3;
pub const CONTEXT: usize = 0;
pub const PLACE: usize = 1;
pub const TO: usize = 2;
