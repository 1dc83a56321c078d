//! Memory for the helper class's copies of the ways that lately led to an event: from a frame whose context
//! was known by up to three calls to a site, and the cell there. Java code alone reads and writes them; see
//! `LucceRt.cell`, which says what a line holds.
//!
//! Of two ways with the same hash the later one has the line. Whoever has few contexts has few lines: all
//! memory is in use soon, and is shared with the program in the processor's caches.

use crate::table_memory::Words;

/// Words of a line, and where lines begin: each lies in one line of the processor's caches.
const LINE: usize = 8;
const BYTES: usize = LINE * size_of::<u64>();
const FEWEST: usize = 64;
const MOST: usize = 16384;
/// Of the index, in bytes: one line for as many. Most entries of the index were used once, at start.
const INDEX_PER_LINE: usize = 64;

#[derive(Default)]
pub struct Ways {
    words: Words,
    lines: usize,
}

impl Ways {
    /// Whether there is new memory, empty, because the index has so many bytes now. Nobody may be reading
    /// the old one.
    pub fn grow_for(&mut self, index: usize) -> bool {
        let lines = (index / INDEX_PER_LINE).next_power_of_two();
        let lines = lines.clamp(FEWEST, MOST);
        if lines <= self.lines {
            return false;
        }
        self.words = Words::zeroed((lines + 1) * LINE);
        self.lines = lines;
        true
    }

    /// Of the first line.
    pub fn address(&self) -> u64 {
        (self.words.as_ptr() as usize).next_multiple_of(BYTES) as u64
    }

    /// By how much a hash is shifted right to tell its line.
    pub fn shift(&self) -> u64 {
        (u64::BITS - self.lines.trailing_zeros()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hash_has_a_line_within_the_memory() {
        let mut ways = Ways::default();
        let mut sizes = Vec::new();
        for index in (0..22).map(|power| 64 << power) {
            if !ways.grow_for(index) {
                continue;
            }
            sizes.push(ways.lines);
            let range = ways.words.as_ptr_range();
            for hash in [0, u64::MAX] {
                let line = ways.address() + (hash >> ways.shift()) * BYTES as u64;
                assert!(line >= range.start as u64 && line + BYTES as u64 <= range.end as u64);
                assert_eq!(line % BYTES as u64, 0);
            }
        }
        assert_eq!(sizes, [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]);
    }
}
