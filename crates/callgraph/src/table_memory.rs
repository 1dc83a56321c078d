//! The memory of a lock-free table, which others can read through one pointer.
//!
//! ```text
//! address, 64-byte aligned     address + 64
//! +-------+------+---------+  +---------+---------+-----
//! | shift | mask | 0  (x6) |  | entry 0 | entry 1 | …      each word a u64
//! +-------+------+---------+  +---------+---------+-----
//! ```
//!
//! The first slot of a hash is `hash * MULTIPLIER >> shift`, the next ones `+ 1 & mask`. Tables are at most three
//! quarters full, so probing soon ends at an empty slot. A table that has outgrown its memory moves to a new one; the
//! old one stays for readers that still hold its address. Sizes double, so all old ones together are smaller than the
//! newest.
//!
//! Memory that can be released (see [`TableMemory`]) is released, except for the header. A thread that still reads
//! there may find any entry, or any part of an entry, to be 0.

use std::ops::Deref;

use crate::raw::{HEADER, MASK, MULTIPLIER, SHIFT};
use crate::sync::{AtomicU64, AtomicUsize, FIRST_SLOTS, OnceLock, Ordering};

/// Memory that lasts as long as the process, for tables that are read by address.
pub trait TableMemory: Send + Sync {
    /// Allocates `words` zeros. `None`: no such memory is available, and the heap is used.
    fn allocate_zeroed(&self, words: usize) -> Option<&'static [AtomicU64]>;

    /// Releases words that will not be written any more; from now on they may be read as 0.
    fn release_words(&self, words: &'static [AtomicU64]);
}

/// `None`: the heap, where nothing is released.
pub(crate) type MemorySource = Option<&'static dyn TableMemory>;

enum TableStorage {
    Heap(Box<[AtomicU64]>),
    Static(&'static [AtomicU64]),
}

impl TableStorage {
    fn allocate_zeroed(words: usize, source: MemorySource) -> TableStorage {
        match source.and_then(|source| source.allocate_zeroed(words)) {
            Some(memory) => TableStorage::Static(memory),
            None => TableStorage::Heap((0..words).map(|_| AtomicU64::new(0)).collect()),
        }
    }
}

impl Deref for TableStorage {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        match self {
            TableStorage::Heap(memory) => memory,
            TableStorage::Static(memory) => memory,
        }
    }
}

const ALIGNMENT: usize = 64;
/// How many times a table may grow.
const GROWTHS: usize = 40;
/// How many times a table may grow, or be rebuilt without dead code. Only tables whose memory can be released are rebuilt.
const GENERATIONS: usize = if cfg!(loom) { GROWTHS } else { 1024 };
const PAGE: usize = 4096;

/// One generation of a table with entries of `WORDS` words.
pub(crate) struct TableGeneration<const WORDS: usize> {
    memory: TableStorage,
    /// The index of the header in `memory`.
    start: usize,
    shift: u32,
    mask: usize,
}

impl<const WORDS: usize> TableGeneration<WORDS> {
    /// Allocates `slots` entries; a power of two, at least 2.
    fn new(slots: usize, source: MemorySource) -> Self {
        let length = slots * WORDS + HEADER + ALIGNMENT / size_of::<u64>() - 1;
        let memory = TableStorage::allocate_zeroed(length, source);
        let misaligned = memory.as_ptr() as usize % ALIGNMENT;
        let start = (ALIGNMENT - misaligned) % ALIGNMENT / size_of::<u64>();
        let words = TableGeneration {
            memory,
            start,
            shift: 64 - slots.trailing_zeros(),
            mask: slots - 1,
        };
        // Relaxed: no other thread sees this memory before publish().
        words.memory[start + SHIFT].store(u64::from(words.shift), Ordering::Relaxed);
        words.memory[start + MASK].store(words.mask as u64, Ordering::Relaxed);
        words
    }

    pub(crate) fn slot_count(&self) -> usize {
        self.mask + 1
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory.len() * size_of::<u64>()
    }

    /// Returns the bytes that remain of an old generation: of released memory, the header's page.
    fn bytes_when_old(&self) -> usize {
        match self.memory {
            TableStorage::Heap(_) => self.memory_bytes(),
            TableStorage::Static(_) => self.memory_bytes().min(PAGE),
        }
    }

    /// Returns every slot once, in the order in which `hash` probes them.
    #[inline]
    pub(crate) fn probe_slots(&self, hash: u64) -> impl Iterator<Item = &[AtomicU64]> {
        let first = (hash.wrapping_mul(MULTIPLIER) >> self.shift) as usize;
        (0..=self.mask).map(move |step| self.entry(first.wrapping_add(step) & self.mask))
    }

    #[inline]
    pub(crate) fn entry(&self, slot: usize) -> &[AtomicU64] {
        let at = self.start + HEADER + slot * WORDS;
        &self.memory[at..at + WORDS]
    }

    /// Releases the entries; the header stays.
    fn release_entries(&self, source: MemorySource) {
        if let (TableStorage::Static(memory), Some(source)) = (&self.memory, source) {
            source.release_words(&memory[self.start + HEADER..]);
        }
    }

    fn header_address(&self) -> u64 {
        self.memory[self.start..].as_ptr() as usize as u64
    }
}

/// All generations of one table. Only the holder of the encoder's mutex publishes.
pub(crate) struct TableGenerations<const WORDS: usize> {
    later: Box<[OnceLock<TableGeneration<WORDS>>]>,
    newest: AtomicUsize,
    first: TableGeneration<WORDS>,
    source: MemorySource,
}

impl<const WORDS: usize> TableGenerations<WORDS> {
    pub(crate) fn new(slots: usize, address: &AtomicU64, source: MemorySource) -> Self {
        let first = TableGeneration::new(slots, source);
        // Relaxed: no other thread sees the encoder yet.
        address.store(first.header_address(), Ordering::Relaxed);
        let later = source.map_or(GROWTHS, |_| GENERATIONS);
        TableGenerations {
            later: (0..later).map(|_| OnceLock::new()).collect(),
            newest: AtomicUsize::new(0),
            first,
            source,
        }
    }

    #[inline]
    pub(crate) fn newest_generation(&self) -> &TableGeneration<WORDS> {
        // Acquire: pairs with the Release in `publish_generation`, so the entries copied before are visible.
        let index = self.newest.load(Ordering::Acquire);
        let later = index
            .checked_sub(1)
            .and_then(|index| self.later[index].get());
        later.unwrap_or(&self.first)
    }

    /// Whether a table that has not outgrown its memory may be rebuilt; the old memory must then be released.
    pub(crate) fn has_room(&self) -> bool {
        // Relaxed: only the mutex's holder writes it.
        let newest = self.newest.load(Ordering::Relaxed);
        self.source.is_some() && newest + GROWTHS < self.later.len()
    }

    /// Allocates empty memory of at least `slots` slots.
    pub(crate) fn allocate_fitting(&self, slots: usize) -> TableGeneration<WORDS> {
        let slots = slots.max(FIRST_SLOTS).next_power_of_two();
        TableGeneration::new(slots, self.source)
    }

    /// Allocates empty memory, twice as large as the newest.
    pub(crate) fn allocate_larger(&self) -> TableGeneration<WORDS> {
        TableGeneration::new(self.newest_generation().slot_count() * 2, self.source)
    }

    /// Replaces the newest generation; false if there are too many already.
    pub(crate) fn publish_generation(
        &self,
        words: TableGeneration<WORDS>,
        address: &AtomicU64,
    ) -> bool {
        // Relaxed: only the mutex's holder writes it.
        let index = self.newest.load(Ordering::Relaxed);
        let Some(place) = self.later.get(index) else {
            return false;
        };
        let old = self.newest_generation();
        let words = place.get_or_init(|| words);
        // Release: pairs with the Acquire in `newest`.
        self.newest.store(index + 1, Ordering::Release);
        // Release: pairs with the foreign reader's acquiring load of the table's address.
        address.store(words.header_address(), Ordering::Release);
        old.release_entries(self.source);
        true
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let later = self.later.iter().filter_map(OnceLock::get);
        let all = [&self.first].into_iter().chain(later);
        let newest = self.newest_generation().header_address();
        let tables = all.map(|words| match words.header_address() == newest {
            true => words.memory_bytes(),
            false => words.bytes_when_old(),
        });
        tables.sum::<usize>() + self.later.len() * size_of::<OnceLock<TableGeneration<WORDS>>>()
    }
}
