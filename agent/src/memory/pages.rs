//! Memory of tables: pages that go back to the system once a table has moved. Other threads may still be reading
//! the encoder's.
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
/// A large page: what the processor remembers of where pages are reaches further with these. Look-ups in a large
/// table go anywhere, and each would ask for another small page.
const LARGE_PAGE: usize = 2 << 20;

/// So many bytes of zeros, which will be in use everywhere soon: whole large pages of them are such, if the
/// system has any. The first page is a small one: it has the table's header, which outlives the rest.
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
    // SAFETY: pages of the mapping just made, beside the table's.
    unsafe {
        unmap_pages(range.start(), start);
        unmap_pages(end, range.start() + range.bytes().next_multiple_of(PAGE));
    }
    // SAFETY: pages of the mapping just made. If the system has no large ones, they stay small.
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
        // SAFETY: as promised.
        unsafe { libc::munmap(ptr::with_exposed_provenance_mut(from), to - from) };
    }
}

/// Pages of the system's.
pub struct SystemPages;

/// What [`SystemPages`] has given out.
static RESERVED_RANGES: WatchedMutex<Vec<MappedRange>> = WatchedMutex::new(Vec::new());

/// No thread has the address of any of these pages any more: the encoder is gone, and no Java code has read them.
pub fn unmap_all() {
    let given = std::mem::take(&mut *RESERVED_RANGES.lock());
    for range in given {
        let end = (range.start() + range.bytes()).next_multiple_of(PAGE);
        // SAFETY: mappings of ours, as promised.
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
            // SAFETY: pages of a mapping of ours; who reads them reads zeros. If the system refuses,
            // they stay as they are.
            unsafe { advise_pages(start, to - from, libc::MADV_DONTNEED) };
        }
    }
}

/// Words of a table that is in use by one thread: large ones are pages, which go back to the system with it. What
/// `malloc` has had once it may keep.
pub enum TableWords {
    Heap(Box<[AtomicU64]>),
    Mapped(OwnedMapping),
}

/// Pages that are given back.
pub struct OwnedMapping(MappedRange);

impl TableWords {
    /// So many zeros.
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
                // SAFETY: a mapping of zeros, of this size, as long as `self` is there.
                unsafe { std::slice::from_raw_parts(start, range.bytes() / size_of::<AtomicU64>()) }
            }
        }
    }
}

impl Drop for OwnedMapping {
    fn drop(&mut self) {
        let OwnedMapping(range) = *self;
        // SAFETY: the mapping was this one's, which is not borrowed any more.
        unsafe { unmap_pages(range.start(), range.start() + range.bytes()) };
    }
}

#[cfg(test)]
mod tests {
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
