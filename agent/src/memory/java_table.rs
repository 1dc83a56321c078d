//! Hash tables that Java code reads by their address. One thread at a time writes them, in Java code or here.
//!
//! ```text
//! [shift, mask, 6 words of the owner] and entries of W words, each a u64
//! ```
//!
//! The first word of an entry is 0 if the entry is empty. An entry of hash h lies at `h >> shift` or after it, before
//! the next empty entry. At most seven eighths of all entries are in use. Runs of entries mostly lie in one cache
//! line, and a smaller table stays in the cache more often.

use std::sync::atomic::{AtomicU64, Ordering};

pub use lucce_callgraph::raw::MULTIPLIER;
use lucce_callgraph::raw::{HEADER, MASK, SHIFT};

use crate::memory::pages::TableWords;

/// `FIRST`: entries of the first table, which the first insertion makes.
#[derive(Default)]
pub struct JavaTable<const W: usize, const FIRST: usize> {
    words: TableWords,
    used: usize,
}

impl<const W: usize, const FIRST: usize> JavaTable<W, FIRST> {
    /// A table with its first memory.
    #[cfg(feature = "lab")]
    pub fn with_first_table() -> Self {
        let mut table = JavaTable::default();
        table.grow_table(|_| 0);
        table
    }

    /// The address of the first word; 0: there is no table yet.
    pub fn table_address(&self) -> u64 {
        match self.words.is_empty() {
            true => 0,
            false => self.words.as_ptr() as usize as u64,
        }
    }

    pub fn byte_count(&self) -> usize {
        self.words.len() * size_of::<AtomicU64>()
    }

    /// The entry of this hash for which `is` returns true.
    pub fn find_entry(&self, hash: u64, is: impl Fn(&[u64; W]) -> bool) -> Option<[u64; W]> {
        let entry = load_entry(self.locate_entry(hash, is)?);
        (entry[0] != 0).then_some(entry)
    }

    /// Replaces the entry of this hash for which `is` returns true, or adds `entry`. `hash_of` computes the hash of
    /// any entry. If there is a new table, readers may still have the address of the old one, which is returned.
    pub fn insert_entry(
        &mut self,
        entry: [u64; W],
        hash_of: impl Fn(&[u64; W]) -> u64,
        is: impl Fn(&[u64; W]) -> bool,
    ) -> Option<TableWords> {
        let hash = hash_of(&entry);
        let is_present = self.find_entry(hash, &is).is_some();
        let outgrown = (!is_present && self.free_entries() == 0).then(|| self.grow_table(hash_of));
        self.used += usize::from(!is_present);
        self.store_entry(hash, entry, is);
        outgrown
    }

    /// The number of entries for which there is room.
    pub fn free_entries(&self) -> usize {
        (self.entry_capacity() / 8 * 7).saturating_sub(self.used)
    }

    /// Counts entries that Java code has added where [`JavaTable::free_entries`] leaves room.
    pub fn count_added_entries(&mut self, entries: usize) {
        self.used += entries;
    }

    /// Whether the next entry needs a larger table.
    pub fn is_full(&self) -> bool {
        self.entry_capacity() > 0 && self.free_entries() == 0
    }

    /// Keeps only the entries for which `keep` returns true, in new memory. The owner's words stay. No thread may
    /// still read the old table. `keep` returns one answer for each entry that it gets.
    pub fn retain(
        &mut self,
        keep: impl FnOnce(&[[u64; W]]) -> Vec<bool>,
        hash_of: impl Fn(&[u64; W]) -> u64,
    ) {
        if self.entry_capacity() == 0 {
            return;
        }
        let mut kept: Vec<[u64; W]> = Vec::new();
        self.for_each_entry(|entry| kept.push(entry));
        let mut answers = keep(&kept).into_iter();
        kept.retain(|_| answers.next().unwrap_or(true));
        // Half full, or at least half of the old size: more entries will follow.
        let fits = (kept.len() * 2).next_power_of_two().max(FIRST);
        let size = fits
            .max(self.entry_capacity() / 2)
            .min(self.entry_capacity());
        let old = std::mem::replace(&mut self.words, TableWords::zeroed(HEADER + size * W));
        self.set_word(SHIFT, u64::from(64 - size.trailing_zeros()));
        self.set_word(MASK, size as u64 - 1);
        let header = old.get(..HEADER).unwrap_or_default();
        for (word, value) in header.iter().enumerate().skip(2) {
            self.set_word(word, value.load(Ordering::Relaxed));
        }
        self.used = kept.len();
        for entry in kept {
            self.store_entry(hash_of(&entry), entry, |_| false);
        }
    }

    /// Visits all entries in unspecified order.
    pub fn for_each_entry(&self, each: impl FnMut([u64; W])) {
        let used = self.words.get(HEADER..).unwrap_or_default();
        let entries = used
            .chunks_exact(W)
            .filter_map(<[AtomicU64]>::first_chunk)
            .map(load_entry);
        entries.filter(|entry| entry[0] != 0).for_each(each);
    }

    /// Sets one of the owner's words, `at` bytes from the table's beginning.
    pub fn set_owner_word(&self, at: usize, value: u64) {
        self.set_word(at / size_of::<AtomicU64>(), value);
    }

    fn set_word(&self, word: usize, value: u64) {
        if let Some(word) = self.words.get(..HEADER).and_then(|words| words.get(word)) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn entry_capacity(&self) -> usize {
        self.words.len().saturating_sub(HEADER) / W
    }

    /// The entry for which `is` returns true, or the empty entry where it belongs. `None`: there is no table.
    fn locate_entry(&self, hash: u64, is: impl Fn(&[u64; W]) -> bool) -> Option<&[AtomicU64; W]> {
        let shift = self.words.get(SHIFT)?.load(Ordering::Relaxed);
        let mut slot = (hash >> shift) as usize;
        loop {
            let at = HEADER + (slot & (self.entry_capacity() - 1)) * W;
            let entry = self.words.get(at..)?.first_chunk()?;
            let content = load_entry(entry);
            if content[0] == 0 || is(&content) {
                return Some(entry);
            }
            slot += 1;
        }
    }

    fn store_entry(&self, hash: u64, entry: [u64; W], is: impl Fn(&[u64; W]) -> bool) {
        let Some(place) = self.locate_entry(hash, is) else {
            return;
        };
        // The first word is written last: it marks the others as written.
        for (word, value) in place.iter().zip(entry).rev() {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn grow_table(&mut self, hash_of: impl Fn(&[u64; W]) -> u64) -> TableWords {
        let entries = (self.entry_capacity() * 2).max(FIRST);
        let words = TableWords::zeroed(HEADER + entries * W);
        let old = std::mem::replace(&mut self.words, words);
        self.set_word(SHIFT, u64::from(64 - entries.trailing_zeros()));
        self.set_word(MASK, entries as u64 - 1);
        let (header, used) = old.split_at_checked(HEADER).unwrap_or_default();
        for (word, value) in header.iter().enumerate().skip(2) {
            self.set_word(word, value.load(Ordering::Relaxed));
        }
        for entry in used.chunks_exact(W).filter_map(<[AtomicU64]>::first_chunk) {
            let entry = load_entry(entry);
            if entry[0] != 0 {
                self.store_entry(hash_of(&entry), entry, |_| false);
            }
        }
        old
    }
}

/// Relaxed: one thread writes, and the table's owner guards what others read.
fn load_entry<const W: usize>(entry: &[AtomicU64; W]) -> [u64; W] {
    std::array::from_fn(|word| entry[word].load(Ordering::Relaxed))
}

#[cfg(test)]
mod java_table_tests {
    use std::collections::HashMap;

    use super::*;

    fn hash(entry: &[u64; 3]) -> u64 {
        // Few different hashes, so that entries follow each other.
        (entry[0] % 50).wrapping_mul(MULTIPLIER)
    }

    #[test]
    fn it_holds_what_a_map_holds() {
        let mut table: JavaTable<3, 4> = JavaTable::default();
        assert_eq!(
            (table.table_address(), table.find_entry(1, |_| true)),
            (0, None)
        );
        let (mut map, mut random, mut moved) = (HashMap::new(), 1_u64, 0);
        // Miri takes a thousand times as long.
        let (times, step) = if cfg!(miri) { (60, 9) } else { (3000, 1) };
        for _ in 0..times {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let (key, value) = (1 + (random >> 40) % 700, random);
            let outgrown = table.insert_entry([key, value, !value], hash, |entry| entry[0] == key);
            moved += u64::from(outgrown.is_some());
            table.set_owner_word(16, moved);
            map.insert(key, value);
        }
        for key in (0..800).step_by(step) {
            let entry = table.find_entry(hash(&[key, 0, 0]), |entry| entry[0] == key);
            let expected = map.get(&key).map(|value| [key, *value, !*value]);
            assert_eq!(entry, expected);
        }
        assert_eq!(table.used, map.len());
        assert!(table.used * 8 <= table.entry_capacity() * 7);
        assert_eq!(
            table.words[MASK].load(Ordering::Relaxed),
            table.entry_capacity() as u64 - 1
        );
        assert_eq!(table.words[2].load(Ordering::Relaxed), moved);
        // The size doubles each time, from 4 on.
        assert_eq!(2_u64 << moved, table.entry_capacity() as u64);
        assert!(moved == 9 || cfg!(miri), "1024 entries in the end");
    }
}
