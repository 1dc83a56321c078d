//! Every bound that the format has. The writer keeps them; the reader refuses what exceeds them.

/// The longest text of a record; longer ones are cut at a character. Two stack traces of 10,000
/// frames fit.
pub const MAX_TEXT: usize = 2 << 20;
/// The longest record body: two texts and some numbers.
pub const MAX_RECORD: usize = 5 << 20;
/// The largest payload of a block.
pub const MAX_CAPACITY: u32 = 1 << 30;
/// The largest payload of a block of records, in bytes: a block has 64 KB, or one record.
pub const MAX_RECORDS_BLOCK: u32 = 6 << 20;
/// The most cells of one counters block.
pub const MAX_CELLS: u32 = 1 << 24;
/// The most entries of a line table: what one attribute of a class file can hold.
pub const MAX_LINES: usize = 65_535;
/// The most bytes that a writer has obtained behind its last block; a packed log has no more zeros there.
pub const MAX_ROOM: u64 = 64 << 20;
