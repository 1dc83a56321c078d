//! What reading a log may take. docs/reference/limits.md says it to users.
//!
//! Reading takes memory for one block of the log (1 GB at most, 64 KB as a rule) and for what the log says. What a packed log
//! says has nothing to do with the file's size, so it has limits of its own.

use lucce_export::UnpackLimits;

/// Bytes of a packed log, unpacked: no log can be larger (addresses that its writer reserves).
const MAX_UNPACKED: u64 = 64 << 30;
/// Content of a small packed log, unpacked, in bytes.
const MIN_CONTENT: u64 = 64 << 20;
/// Bytes of content for each packed byte: logs of real programs have 3 to 12.
const CONTENT_RATIO: u64 = 32;

/// Notes of one kind that are kept of a log: mismatches, classes without hooks, warnings. Each may be of few bytes.
pub const MAX_NOTES: usize = 1 << 20;

/// For a packed file of so many bytes.
#[must_use]
pub fn unpack_limits(packed: u64) -> UnpackLimits {
    UnpackLimits {
        bytes: MAX_UNPACKED,
        content: packed.saturating_mul(CONTENT_RATIO).max(MIN_CONTENT),
    }
}
