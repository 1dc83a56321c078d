//! Limits for reading a log. Users find them in docs/reference/limits.md.
//!
//! Reading takes memory for one block of the log (at most 1 GB, usually 64 KB) and for the profile. The content of a
//! packed log may be far larger than its file, so it has separate limits.

use lucce_export::UnpackLimits;

/// Maximum bytes of an unpacked log: the address space that a log's writer reserves.
const MAX_UNPACKED: u64 = 64 << 30;
/// Bytes of content that every packed log may have, however small the file.
const MIN_CONTENT: u64 = 64 << 20;
/// Bytes of content for each packed byte; logs of real programs have 3 to 12.
const CONTENT_RATIO: u64 = 32;

/// Maximum number of notes of one kind: mismatches, classes without hooks, warnings. A note may have few bytes.
pub const MAX_NOTES: usize = 1 << 20;

/// The limits for a file of `packed` bytes.
#[must_use]
pub fn unpack_limits(packed: u64) -> UnpackLimits {
    UnpackLimits {
        bytes: MAX_UNPACKED,
        content: packed.saturating_mul(CONTENT_RATIO).max(MIN_CONTENT),
    }
}
