//! Memory of the encoder's tables: pages that go back to the system once a table has moved, while
//! threads may still be reading them.
#![allow(
    unsafe_code,
    reason = "maps memory that code of the JVM reads by address"
)]

use std::ptr;
use std::sync::atomic::AtomicU64;

use lucce_callgraph::TableMemory;

use crate::memory::reserve;

const PAGE: usize = 4096;

/// Pages of the system's.
pub struct Pages;

impl TableMemory for Pages {
    fn zeroed(&self, words: usize) -> Option<&'static [AtomicU64]> {
        let bytes = words.checked_mul(size_of::<AtomicU64>())?;
        let range = reserve(bytes, bytes)?;
        let start = ptr::with_exposed_provenance::<AtomicU64>(range.start);
        // SAFETY: a fresh mapping of zeros, of this size, that is never unmapped.
        Some(unsafe { std::slice::from_raw_parts(start, words) })
    }

    fn forget(&self, words: &'static [AtomicU64]) {
        let bytes = words.as_ptr_range();
        let from = bytes.start.addr().next_multiple_of(PAGE);
        let to = bytes.end.addr() / PAGE * PAGE;
        if from < to {
            let start = ptr::with_exposed_provenance_mut(from);
            // SAFETY: pages of a mapping of ours; who reads them reads zeros. If the system refuses,
            // they stay as they are.
            unsafe { libc::madvise(start, to - from, libc::MADV_DONTNEED) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn whole_pages_are_forgotten_and_others_stay() {
        let words = Pages.zeroed(4 * 512 + 100).unwrap();
        for word in words {
            word.store(7, Ordering::Relaxed);
        }
        Pages.forget(&words[8..]);
        let left = |range: std::ops::Range<usize>| {
            words[range]
                .iter()
                .map(|word| word.load(Ordering::Relaxed))
                .collect::<Vec<_>>()
        };
        assert_eq!(left(0..512), [7; 512]);
        assert_eq!(left(512..2048), [0; 1536]);
        assert_eq!(left(2048..2148), [7; 100]);
    }
}
