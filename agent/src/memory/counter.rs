//! Counts that nothing depends on.

use std::sync::atomic::{AtomicU64, Ordering};

/// Adds one; what the counter was before.
pub fn increment_counter(counter: &AtomicU64) -> u64 {
    counter.fetch_add(1, Ordering::Relaxed)
}
