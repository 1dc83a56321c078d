//! Statistics on which no other memory depends.

use std::sync::atomic::{AtomicU64, Ordering};

/// Adds one, and returns the old value.
pub fn increment_counter(counter: &AtomicU64) -> u64 {
    counter.fetch_add(1, Ordering::Relaxed)
}
