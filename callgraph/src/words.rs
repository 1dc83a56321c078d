//! The memory of a lock-free table, readable by others through one pointer.
//!
//! ```text
//! address, 64-byte aligned     address + 64
//! +-------+------+---------+  +---------+---------+-----
//! | shift | mask | 0  (x6) |  | entry 0 | entry 1 | …      each word a u64
//! +-------+------+---------+  +---------+---------+-----
//! ```
//!
//! The first slot of a hash is `hash * MULTIPLIER >> shift`, the next ones `+ 1 & mask`.
//! Tables are at most three quarters full, so probing ends at an empty slot soon.
//! A table that has outgrown its memory moves to a new one; the old one stays for readers that
//! still hold its address. Sizes double, so all old ones together are smaller than the newest.
//! Memory that can be forgotten (see [`TableMemory`]) is, but for the header: a thread that still reads
//! there may find any entry, or any part of one, to be 0.

use std::ops::Deref;

use crate::raw::{HEADER, MASK, MULTIPLIER, SHIFT};
use crate::sync::{AtomicU64, AtomicUsize, FIRST_SLOTS, OnceLock, Ordering};

/// Memory that lasts as long as the process, for tables that are read by address.
pub trait TableMemory: Send + Sync {
    /// So many zeros. None: there is no such memory; the heap will do.
    fn zeroed(&self, words: usize) -> Option<&'static [AtomicU64]>;

    /// The words will not be written any more, and may be read as 0 from now on.
    fn forget(&self, words: &'static [AtomicU64]);
}

/// None: the heap. Nothing is forgotten there.
pub(crate) type Source = Option<&'static dyn TableMemory>;

enum Held {
    Heap(Box<[AtomicU64]>),
    Lasting(&'static [AtomicU64]),
}

impl Held {
    fn zeroed(words: usize, source: Source) -> Held {
        match source.and_then(|source| source.zeroed(words)) {
            Some(memory) => Held::Lasting(memory),
            None => Held::Heap((0..words).map(|_| AtomicU64::new(0)).collect()),
        }
    }
}

impl Deref for Held {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        match self {
            Held::Heap(memory) => memory,
            Held::Lasting(memory) => memory,
        }
    }
}

const ALIGNMENT: usize = 64;
/// How many tables may outgrow each other, and how often one is made anew without what is gone.
const GROWTHS: usize = 40;
const GENERATIONS: usize = if cfg!(loom) { GROWTHS } else { 1024 };
const PAGE: usize = 4096;

/// One generation of a table with entries of `WORDS` words.
pub(crate) struct Words<const WORDS: usize> {
    memory: Held,
    /// Where the header begins in `memory`.
    start: usize,
    shift: u32,
    mask: usize,
}

impl<const WORDS: usize> Words<WORDS> {
    /// `slots` is a power of two, at least 2.
    fn new(slots: usize, source: Source) -> Self {
        let length = slots * WORDS + HEADER + ALIGNMENT / size_of::<u64>() - 1;
        let memory = Held::zeroed(length, source);
        let misaligned = memory.as_ptr() as usize % ALIGNMENT;
        let start = (ALIGNMENT - misaligned) % ALIGNMENT / size_of::<u64>();
        let words = Words {
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

    pub(crate) fn slots(&self) -> usize {
        self.mask + 1
    }

    pub(crate) fn bytes(&self) -> usize {
        self.memory.len() * size_of::<u64>()
    }

    /// Of memory that is forgotten, the header's page stays.
    fn bytes_when_old(&self) -> usize {
        match self.memory {
            Held::Heap(_) => self.bytes(),
            Held::Lasting(_) => self.bytes().min(PAGE),
        }
    }

    /// Every slot once, in the order in which `hash` probes them.
    #[inline]
    pub(crate) fn probe(&self, hash: u64) -> impl Iterator<Item = &[AtomicU64]> {
        let first = (hash.wrapping_mul(MULTIPLIER) >> self.shift) as usize;
        (0..=self.mask).map(move |step| self.entry(first.wrapping_add(step) & self.mask))
    }

    #[inline]
    pub(crate) fn entry(&self, slot: usize) -> &[AtomicU64] {
        let at = self.start + HEADER + slot * WORDS;
        &self.memory[at..at + WORDS]
    }

    /// The header stays.
    fn forget(&self, source: Source) {
        if let (Held::Lasting(memory), Some(source)) = (&self.memory, source) {
            source.forget(&memory[self.start + HEADER..]);
        }
    }

    fn address(&self) -> u64 {
        self.memory[self.start..].as_ptr() as usize as u64
    }
}

/// All generations of one table. Only the holder of the encoder's mutex publishes.
pub(crate) struct Generations<const WORDS: usize> {
    all: Box<[OnceLock<Words<WORDS>>]>,
    newest: AtomicUsize,
    first: Words<WORDS>,
    source: Source,
}

impl<const WORDS: usize> Generations<WORDS> {
    pub(crate) fn new(slots: usize, address: &AtomicU64, source: Source) -> Self {
        let first = Words::new(slots, source);
        // Relaxed: no other thread sees the encoder yet.
        address.store(first.address(), Ordering::Relaxed);
        Generations {
            all: (0..GENERATIONS).map(|_| OnceLock::new()).collect(),
            newest: AtomicUsize::new(0),
            first,
            source,
        }
    }

    #[inline]
    pub(crate) fn newest(&self) -> &Words<WORDS> {
        // Acquire: pairs with the Release in publish(), the entries copied before are seen.
        let index = self.newest.load(Ordering::Acquire);
        let later = index.checked_sub(1).and_then(|index| self.all[index].get());
        later.unwrap_or(&self.first)
    }

    /// Whether a table may be made anew that has not outgrown its memory, which then must be forgotten.
    pub(crate) fn has_room(&self) -> bool {
        // Relaxed: only the mutex's holder writes it.
        let newest = self.newest.load(Ordering::Relaxed);
        self.source.is_some() && newest + GROWTHS < self.all.len()
    }

    /// Empty memory of at least so many slots.
    pub(crate) fn fitting(&self, slots: usize) -> Words<WORDS> {
        let slots = slots.max(FIRST_SLOTS).next_power_of_two();
        Words::new(slots, self.source)
    }

    /// Empty memory, twice as large as the newest.
    pub(crate) fn larger(&self) -> Words<WORDS> {
        Words::new(self.newest().slots() * 2, self.source)
    }

    /// Replaces the newest generation; false if there are too many already.
    pub(crate) fn publish(&self, words: Words<WORDS>, address: &AtomicU64) -> bool {
        // Relaxed: only the mutex's holder writes it.
        let index = self.newest.load(Ordering::Relaxed);
        let Some(place) = self.all.get(index) else {
            return false;
        };
        let old = self.newest();
        let words = place.get_or_init(|| words);
        // Release: pairs with the Acquire in newest().
        self.newest.store(index + 1, Ordering::Release);
        // Release: pairs with the foreign reader's acquiring load of the table's address.
        address.store(words.address(), Ordering::Release);
        old.forget(self.source);
        true
    }

    pub(crate) fn bytes(&self) -> usize {
        let later = self.all.iter().filter_map(OnceLock::get);
        let all = [&self.first].into_iter().chain(later);
        let newest = self.newest().address();
        let tables = all.map(|words| match words.address() == newest {
            true => words.bytes(),
            false => words.bytes_when_old(),
        });
        tables.sum::<usize>() + self.all.len() * size_of::<OnceLock<Words<WORDS>>>()
    }
}
