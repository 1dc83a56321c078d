//! Memory for the helper class's caches of a thread's recent look-ups, one line for each hash. Java code alone reads
//! and writes them.
//!
//! If two entries have the same hash, the later one replaces the earlier. A thread with few contexts has few lines,
//! because all lines are in use soon and compete with the program for the processor's caches.

use crate::memory::pages::TableWords;
use crate::memory::shared_layout::{COPY_BITS, PATH_BITS, entry_words};

/// Recent call paths: from a frame with known context, over at most three calls, to an event's site, with the counter
/// there. The format of a line is in `LucceRtPaths.findCounter`.
pub type RecentPathCache = JavaCache<{ entry_words(PATH_BITS) }>;
/// Transitions of the graph. The format of a line is in `LucceRtContexts.stepOver`.
pub type TransitionCache = JavaCache<{ entry_words(COPY_BITS) }>;

/// Sites of objects whose class the code does not name. The format of a line is in `LucceRtObjects.typedSite`. A type of
/// its own, because it grows differently from [`TransitionCache`].
#[derive(Default)]
pub struct TypedSiteCache(JavaCache<{ entry_words(COPY_BITS) }>);

/// A cache with lines of `LINE` words.
#[derive(Default)]
pub struct JavaCache<const LINE: usize> {
    words: TableWords,
    lines: usize,
}

impl RecentPathCache {
    /// Grows the cache for an index of `index` bytes. Returns whether there is new, empty memory. No thread may be
    /// reading the old memory.
    ///
    /// Most entries of an index are used once, at start, and 16,384 paths are almost all that most programs repeat.
    /// Compilers, with a million contexts, repeat more.
    pub fn grow_for(&mut self, index: usize) -> bool {
        let lines = (index / 64).min(16384).max(index / 512);
        self.grow_lines(lines.clamp(64, 65536))
    }
}

impl TransitionCache {
    /// Like [`RecentPathCache::grow_for`].
    pub fn grow_for(&mut self, index: usize) -> bool {
        self.grow_lines((index / 1024).clamp(2048, 16384))
    }
}

impl TypedSiteCache {
    /// Like [`RecentPathCache::grow_for`].
    pub fn grow_for(&mut self, index: usize) -> bool {
        self.0.grow_lines((index / 1024).clamp(256, 8192))
    }

    /// The address of the first line. Its low zero bits hold the binary logarithm of the number of lines.
    pub fn address_and_bits(&self) -> u64 {
        self.0.first_line_address() | (u64::BITS as u64 - self.0.hash_shift())
    }
}

impl<const LINE: usize> JavaCache<LINE> {
    const BYTES: usize = LINE * size_of::<u64>();

    fn grow_lines(&mut self, lines: usize) -> bool {
        let lines = lines.next_power_of_two();
        if lines <= self.lines {
            return false;
        }
        self.words = TableWords::zeroed((lines + 1) * LINE);
        self.lines = lines;
        true
    }

    /// The address of the first line. Each line lies in one line of the processor's caches.
    pub fn first_line_address(&self) -> u64 {
        (self.words.as_ptr() as usize).next_multiple_of(Self::BYTES) as u64
    }

    /// The right shift that turns a hash into the index of its line.
    pub fn hash_shift(&self) -> u64 {
        (u64::BITS - self.lines.trailing_zeros()).into()
    }
}

#[cfg(test)]
mod java_caches_tests {
    use super::*;

    /// The numbers of lines for a growing index.
    fn sizes<const LINE: usize>(grow_for: fn(&mut JavaCache<LINE>, usize) -> bool) -> Vec<usize> {
        let mut copies = JavaCache::<LINE>::default();
        let bytes = 8 * LINE as u64;
        let mut sizes = Vec::new();
        for index in (0..24).map(|power| 64 << power) {
            if !grow_for(&mut copies, index) {
                continue;
            }
            sizes.push(copies.lines);
            let range = copies.words.as_ptr_range();
            for hash in [0, u64::MAX] {
                let line = copies.first_line_address() + (hash >> copies.hash_shift()) * bytes;
                assert!(line >= range.start as u64 && line + bytes <= range.end as u64);
                assert_eq!(line % bytes, 0);
            }
        }
        sizes
    }

    #[test]
    fn every_hash_has_a_line_within_the_memory() {
        let powers: Vec<usize> = (6..=16).map(|power| 1 << power).collect();
        assert_eq!(sizes(RecentPathCache::grow_for), powers);
        assert_eq!(sizes(TransitionCache::grow_for), [2048, 4096, 8192, 16384]);
    }

    #[test]
    fn the_number_of_typed_sites_lies_beside_their_address() {
        let mut typed = TypedSiteCache::default();
        for (index, bits) in [(0, 8), (1 << 20, 10), (1 << 30, 13)] {
            assert!(typed.grow_for(index));
            assert_eq!(
                typed.address_and_bits(),
                typed.0.first_line_address() + bits
            );
            assert_eq!(typed.0.lines, 1 << bits);
        }
        assert!(!typed.grow_for(1 << 30));
    }
}
