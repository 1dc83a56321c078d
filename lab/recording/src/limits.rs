//! Every bound that the format has. The writer keeps them; the reader refuses what exceeds them.

/// The largest block before packing. A thread's buffer is written when it is half of that.
pub const MAX_UNPACKED: usize = 1 << 20;
/// The largest block after packing: deflate may lengthen what cannot be packed by a little.
pub const MAX_PACKED: usize = MAX_UNPACKED + (1 << 16);
/// Different edges of one recording.
pub const MAX_EDGES: u32 = 1 << 24;
/// Threads of one recording.
pub const MAX_THREADS: u32 = 1 << 22;
/// Frames of one thread's stack.
pub const MAX_DEPTH: usize = 1 << 24;
/// The longest thread name; longer ones are cut at a character.
pub const MAX_NAME: usize = 1 << 10;
/// Bytes reserved within a file's limit for the end record.
pub const RESERVE: u64 = 256;
