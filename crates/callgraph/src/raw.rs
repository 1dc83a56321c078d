//! Where readers in other languages find what, in words of 8 bytes: see [`RawTables`](crate::RawTables). The agent's build
//! reads this file, too, and makes constants of the helper class of it.

/// Hashes are products with it: their high bits count.
pub const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
/// The second of two words that are hashed together is rotated left by so many bits.
pub const ROTATION: u32 = 32;

/// The block: where the calls' transition table is, how far to shift a number right to get its version, where the
/// anchor table is.
pub const CALLS: usize = 0;
pub const VERSION_SHIFT: usize = 1;
pub const ANCHORS: usize = 2;

/// A table: how far to shift a hash right, the number of its entries less one, and where they begin.
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
pub const ANCHOR_WORDS: usize = 4;
pub const CONTEXT: usize = 0;
pub const PLACE: usize = 1;
pub const TO: usize = 2;
