//! Memory of tables: pages that go back to the system when a table has moved. Other threads may still be reading the
//! encoder's tables.
#![allow(
    unsafe_code,
    reason = "maps memory that code of the JVM reads by address"
)]

use std::ops::Deref;
use std::ptr;
use std::sync::atomic::AtomicU64;

use lucce_callgraph::TableMemory;

use crate::memory::address_space::{MappedRange, advise_pages, reserve_memory};
use crate::memory::locks::WatchedMutex;

const PAGE: usize = 4096;
/// Size of a large page. Look-ups in a large table are scattered, and each would need another entry of the TLB; large
/// pages need fewer entries.
const LARGE_PAGE: usize = 2 << 20;

/// Reserves `bytes` bytes of zeros, all of which will be in use soon. Whole large pages of them are large pages, if
/// the system has any. The first page is small: it holds the table's header, which outlives the rest.
fn reserve_table(bytes: usize) -> Option<MappedRange> {
    if bytes < LARGE_PAGE || cfg!(miri) {
        return reserve_memory(bytes, bytes);
    }
    let most = bytes.checked_add(LARGE_PAGE + PAGE)?;
    let range = reserve_memory(most, most)?;
    let large = (range.start() + PAGE).next_multiple_of(LARGE_PAGE);
    let start = large - PAGE;
    let end = (start + bytes).next_multiple_of(PAGE);
    let table = range.sub_range(start, bytes)?;
    // SAFETY: pages of the mapping just made, outside of the table.
    unsafe {
        unmap_pages(range.start(), start);
        unmap_pages(end, range.start() + range.bytes().next_multiple_of(PAGE));
    }
    // SAFETY: pages of the mapping just made. If the system has no large pages, they stay small.
    unsafe {
        advise_pages(
            ptr::with_exposed_provenance_mut(large),
            (bytes - PAGE) / LARGE_PAGE * LARGE_PAGE,
            libc::MADV_HUGEPAGE,
        );
    }
    Some(table)
}

/// Unmaps pages.
///
/// # Safety
/// They are whole pages of a mapping to which no reference exists yet, or none any more.
unsafe fn unmap_pages(from: usize, to: usize) {
    if from < to {
        // SAFETY: the caller passes whole pages of a mapping to which no reference exists.
        unsafe { libc::munmap(ptr::with_exposed_provenance_mut(from), to - from) };
    }
}

/// Pages from the system, for the tables of the encoder.
pub struct SystemPages;

/// The ranges that [`SystemPages`] has handed out.
static RESERVED_RANGES: WatchedMutex<Vec<MappedRange>> = WatchedMutex::new(Vec::new());

/// Unmaps all ranges. No thread has the address of any of their pages: the encoder is gone, and no Java code has read
/// them.
pub fn unmap_all() {
    let given = std::mem::take(&mut *RESERVED_RANGES.lock());
    for range in given {
        let end = (range.start() + range.bytes()).next_multiple_of(PAGE);
        // SAFETY: `SystemPages` made these mappings. The encoder is gone, so no reference to them exists.
        unsafe { unmap_pages(range.start(), end) };
    }
}

impl TableMemory for SystemPages {
    fn allocate_zeroed(&self, words: usize) -> Option<&'static [AtomicU64]> {
        let bytes = words.checked_mul(size_of::<AtomicU64>())?;
        let range = reserve_table(bytes)?;
        let mut given = RESERVED_RANGES.lock();
        given.push(range);
        drop(given);
        let start = ptr::with_exposed_provenance::<AtomicU64>(range.start());
        // SAFETY: a fresh mapping of zeros, of this size, that is unmapped when the encoder is gone.
        Some(unsafe { std::slice::from_raw_parts(start, words) })
    }

    fn release_words(&self, words: &'static [AtomicU64]) {
        let bytes = words.as_ptr_range();
        let from = bytes.start.addr().next_multiple_of(PAGE);
        let to = bytes.end.addr() / PAGE * PAGE;
        if from < to {
            let start = ptr::with_exposed_provenance_mut(from);
            // SAFETY: pages of a mapping that the agent has made; their readers read zeros. If the system refuses,
            // the pages stay unchanged.
            unsafe { advise_pages(start, to - from, libc::MADV_DONTNEED) };
        }
    }
}

/// Words of a table that one thread uses. Large tables are pages that go back to the system with the table, because
/// `malloc` may keep memory that was freed.
pub enum TableWords {
    Heap(Box<[AtomicU64]>),
    Mapped(OwnedMapping),
}

/// Pages that are unmapped when dropped.
pub struct OwnedMapping(MappedRange);

impl TableWords {
    /// `words` zero words.
    pub fn zeroed(words: usize) -> TableWords {
        const LARGE: usize = 64 << 10;
        let bytes = words.saturating_mul(size_of::<AtomicU64>());
        let mapped = (bytes >= LARGE).then(|| reserve_table(bytes)).flatten();
        match mapped {
            Some(range) => TableWords::Mapped(OwnedMapping(range)),
            None => TableWords::Heap((0..words).map(|_| AtomicU64::new(0)).collect()),
        }
    }
}

impl Default for TableWords {
    fn default() -> TableWords {
        TableWords::Heap(Box::default())
    }
}

impl Deref for TableWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        match self {
            TableWords::Heap(words) => words,
            TableWords::Mapped(OwnedMapping(range)) => {
                let start = ptr::with_exposed_provenance::<AtomicU64>(range.start());
                // SAFETY: a mapping of zeros, of this size, as long as `self` exists.
                unsafe { std::slice::from_raw_parts(start, range.bytes() / size_of::<AtomicU64>()) }
            }
        }
    }
}

impl Drop for OwnedMapping {
    fn drop(&mut self) {
        let OwnedMapping(range) = *self;
        // SAFETY: this mapping's own pages, which nothing borrows any more.
        unsafe { unmap_pages(range.start(), range.start() + range.bytes()) };
    }
}

#[cfg(test)]
mod pages_tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn words_are_zeros_that_can_be_written_small_or_large() {
        let large = if cfg!(miri) { 10_000 } else { 1_000_000 };
        for count in [0, 1, 100, 4096, large] {
            let words = TableWords::zeroed(count);
            assert_eq!(words.len(), count);
            for (n, word) in words.iter().enumerate() {
                assert_eq!(word.swap(n as u64, Ordering::Relaxed), 0);
            }
            let sum: u64 = words.iter().map(|word| word.load(Ordering::Relaxed)).sum();
            assert_eq!(sum, count as u64 * (count as u64).saturating_sub(1) / 2);
        }
    }

    #[test]
    fn whole_pages_are_forgotten_and_others_stay() {
        let words = SystemPages.allocate_zeroed(4 * 512 + 100).unwrap();
        for word in words {
            word.store(7, Ordering::Relaxed);
        }
        SystemPages.release_words(&words[8..]);
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
