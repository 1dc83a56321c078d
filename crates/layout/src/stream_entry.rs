//! The constants that Java code needs to write entries of the stream of events.

/// Offsets of the fields of a thread's cursor; see `stream::event_cursor`.
pub const PLACE_NEXT: usize = 0;
pub const PLACE_END: usize = 8;
pub const PLACE_CLOCK: usize = 16;

/// Range of the block's times: 2⁴⁰ ns are 18 minutes.
pub const TIME_BITS: u32 = 40;
pub const WORD: usize = 8;
/// The longest entry in bytes.
pub const LONGEST: usize = 3 * WORD;
/// A bit of an entry's first word.
pub const HAS_VALUE: u64 = 1 << 63;
