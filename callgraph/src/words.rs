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
//! A table that has outgrown its memory moves to a new one; the old one stays for readers that
//! still hold its address. Sizes double, so all old ones together are smaller than the newest.

use crate::sync::{AtomicU64, AtomicUsize, OnceLock, Ordering};

const HEADER: usize = 8;
const ALIGNMENT: usize = 64;
const GENERATIONS: usize = 40;

pub(crate) const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// One generation of a table with entries of `WORDS` words.
pub(crate) struct Words<const WORDS: usize> {
    memory: Box<[AtomicU64]>,
    /// Where the header begins in `memory`.
    start: usize,
    shift: u32,
    mask: usize,
}

impl<const WORDS: usize> Words<WORDS> {
    /// `slots` is a power of two, at least 2.
    pub(crate) fn new(slots: usize) -> Self {
        let length = slots * WORDS + HEADER + ALIGNMENT / size_of::<u64>() - 1;
        let memory: Box<[AtomicU64]> = (0..length).map(|_| AtomicU64::new(0)).collect();
        let misaligned = memory.as_ptr() as usize % ALIGNMENT;
        let start = (ALIGNMENT - misaligned) % ALIGNMENT / size_of::<u64>();
        let words = Words {
            memory,
            start,
            shift: 64 - slots.trailing_zeros(),
            mask: slots - 1,
        };
        // Relaxed: nobody else sees this memory before publish().
        words.memory[start].store(u64::from(words.shift), Ordering::Relaxed);
        words.memory[start + 1].store(words.mask as u64, Ordering::Relaxed);
        words
    }

    pub(crate) fn slots(&self) -> usize {
        self.mask + 1
    }

    pub(crate) fn bytes(&self) -> usize {
        self.memory.len() * size_of::<u64>()
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

    fn address(&self) -> u64 {
        self.memory[self.start..].as_ptr() as usize as u64
    }
}

/// All generations of one table. Only the holder of the encoder's mutex publishes.
pub(crate) struct Generations<const WORDS: usize> {
    all: [OnceLock<Words<WORDS>>; GENERATIONS],
    newest: AtomicUsize,
    first: Words<WORDS>,
}

impl<const WORDS: usize> Generations<WORDS> {
    pub(crate) fn new(slots: usize, address: &AtomicU64) -> Self {
        let first = Words::new(slots);
        // Relaxed: nobody else sees the encoder yet.
        address.store(first.address(), Ordering::Relaxed);
        Generations {
            all: [const { OnceLock::new() }; GENERATIONS],
            newest: AtomicUsize::new(0),
            first,
        }
    }

    #[inline]
    pub(crate) fn newest(&self) -> &Words<WORDS> {
        // Acquire: pairs with the Release in publish(), the entries copied before are seen.
        let index = self.newest.load(Ordering::Acquire);
        let later = index.checked_sub(1).and_then(|index| self.all[index].get());
        later.unwrap_or(&self.first)
    }

    /// Replaces the newest generation; false if there are too many already.
    pub(crate) fn publish(&self, words: Words<WORDS>, address: &AtomicU64) -> bool {
        // Relaxed: only the mutex's holder writes it.
        let index = self.newest.load(Ordering::Relaxed);
        let Some(place) = self.all.get(index) else {
            return false;
        };
        let words = place.get_or_init(|| words);
        // Release: pairs with the Acquire in newest().
        self.newest.store(index + 1, Ordering::Release);
        // Release: pairs with the foreign reader's acquiring load of the table's address.
        address.store(words.address(), Ordering::Release);
        true
    }

    pub(crate) fn bytes(&self) -> usize {
        let later: usize = self
            .all
            .iter()
            .filter_map(OnceLock::get)
            .map(Words::bytes)
            .sum();
        later + self.first.bytes()
    }
}
