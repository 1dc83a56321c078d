//! All limits of the format. The writer keeps them; the reader refuses data that exceeds them.

/// The longest text of a record in bytes; longer texts are cut at a character. Two stack traces of 10,000 frames fit.
pub const MAX_TEXT: usize = 2 << 20;
/// The longest record body in bytes: two texts and some numbers.
pub const MAX_RECORD: usize = 5 << 20;
/// The largest payload of a block in bytes.
pub const MAX_CAPACITY: u32 = 1 << 30;
/// The largest payload of a block of records, in bytes: a block has 64 KB, or one record.
pub const MAX_RECORDS_BLOCK: u32 = 6 << 20;
/// The largest number of counters in one block.
pub const MAX_CELLS: u32 = 1 << 24;
/// The largest number of entries of a line table: the limit of one attribute of a class file.
pub const MAX_LINES: usize = 65_535;
/// The largest number of bytes that a writer allocates behind its last block; a packed log has no more zeros there.
pub const MAX_ROOM: u64 = 64 << 20;
