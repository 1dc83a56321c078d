//! What Java code must know to write entries: the agent's build reads this file, too, and writes it into the
//! helper class.

/// Where the fields of a thread's place lie in it; see `place`.
pub const PLACE_NEXT: usize = 0;
pub const PLACE_END: usize = 8;
pub const PLACE_CLOCK: usize = 16;

/// The block's clock reaches so far: 2⁴⁰ ns are 18 minutes.
pub const TIME_BITS: u32 = 40;
pub const WORD: usize = 8;
/// The longest entry.
pub const LONGEST: usize = 3 * WORD;
/// In an entry's first word.
pub const HAS_VALUE: u64 = 1 << 63;
