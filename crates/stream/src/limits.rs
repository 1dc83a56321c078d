//! All limits of the format. The writer keeps them; the reader refuses data that exceeds them.

/// Bytes of a thread's first block, and of its largest ones: each block is twice as large as the one before.
pub const FIRST_BLOCK: u64 = 1 << 10;
pub const LARGEST_BLOCK: u64 = 64 << 10;
/// The longest thread name in bytes; longer names are cut at a character.
pub const MAX_NAME: usize = 1 << 10;
/// Bytes of addresses reserved for the file; it cannot become larger.
pub const ADDRESSES: u64 = 256 << 30;
