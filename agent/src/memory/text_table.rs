//! Interned texts: each text once, by number.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::memory::bit_set::BitSet;
use crate::memory::grow_only_array::GrowOnlyArray;

/// The number of a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct InternedText(pub u32);

/// The table. All texts are stored one after the other.
pub struct TextTable {
    bytes: GrowOnlyArray<u8>,
    /// Start and length of each text.
    positions: GrowOnlyArray<(u32, u32)>,
    /// Removed texts.
    gone: BitSet,
    /// Number of texts in the table.
    live: usize,
    /// By hash; 0: empty. The length is a power of two, and at most three quarters are used.
    ///
    /// ```text
    /// [high half of the hash << 32 | number of the text plus 1]
    /// ```
    by_hash: Box<[u64]>,
}

const MOST_BYTES: usize = 1 << 30;
const MOST: usize = 1 << 26;
const FIRST: usize = 1 << 10;

impl Default for TextTable {
    fn default() -> TextTable {
        TextTable {
            bytes: GrowOnlyArray::new(MOST_BYTES),
            positions: GrowOnlyArray::new(MOST),
            gone: BitSet::default(),
            live: 0,
            by_hash: vec![0; FIRST].into(),
        }
    }
}

impl TextTable {
    /// The number of a text, a new one at its first occurrence. `None`: there is no room.
    pub fn intern_text(&mut self, text: &str) -> Option<InternedText> {
        if (self.live + 1) * 4 > self.by_hash.len() * 3 {
            self.rebuild_table(self.by_hash.len() * 2);
        }
        let at = match self.locate_text(text) {
            Ok(known) => return Some(known),
            Err(at) => at,
        };
        let start = u32::try_from(self.bytes.len()).ok()?;
        if self.positions.len() == self.positions.capacity() {
            return None;
        }
        self.bytes.extend(text.as_bytes())?;
        self.positions
            .push((start, u32::try_from(text.len()).ok()?))?;
        self.live += 1;
        let count = self.positions.len() as u32;
        if let Some(place) = self.by_hash.get_mut(at) {
            *place = hash_text(text.as_bytes()) & HASH_MASK | u64::from(count);
        }
        Some(InternedText(count - 1))
    }

    /// The number of a text. `None`: the table does not have it.
    pub fn find_text(&self, text: &str) -> Option<InternedText> {
        self.locate_text(text).ok()
    }

    /// The text of a number; empty if it was removed.
    pub fn resolve_text(&self, name: InternedText) -> &str {
        std::str::from_utf8(self.text_bytes(name)).unwrap_or("")
    }

    fn text_bytes(&self, name: InternedText) -> &[u8] {
        let (start, len) = match self.gone.contains(name.0) {
            true => (0, 0),
            false => self
                .positions
                .get(name.0 as usize)
                .copied()
                .unwrap_or((0, 0)),
        };
        let (start, len) = (start as usize, len as usize);
        self.bytes.as_slice().get(start..start + len).unwrap_or(&[])
    }

    /// Removes all other texts, whose numbers are never used again. A removed text that returns gets a new number.
    pub fn retain_texts(&mut self, names: &BitSet) {
        let listed = self.by_hash.iter().copied().filter_map(entry_number);
        let gone: Vec<u32> = listed.filter(|name| !names.contains(*name)).collect();
        for name in &gone {
            let at = *name as usize;
            if let Some(&(start, len)) = self.positions.get(at) {
                let start = start as usize;
                self.bytes.drop_rows(start..start + len as usize);
            }
            self.positions.drop_rows(at..at + 1);
            self.gone.insert(*name);
        }
        self.live -= gone.len();
        let fits = |size: &usize| self.live * 4 <= size * 2;
        let sizes = std::iter::successors(Some(FIRST), |size| Some(size * 2));
        let size = sizes.into_iter().find(fits).unwrap_or(FIRST);
        self.rebuild_table(size);
    }

    /// The number of a text, or the position in the table where it belongs.
    fn locate_text(&self, text: &str) -> Result<InternedText, usize> {
        let mask = self.by_hash.len() - 1;
        let hash = hash_text(text.as_bytes());
        let mut at = hash as usize & mask;
        loop {
            let entry = self.by_hash.get(at).copied().unwrap_or(0);
            // Most other texts differ in the hash: their bytes are not read.
            let is_like = (entry ^ hash) & HASH_MASK == 0;
            match entry_number(entry) {
                None => return Err(at),
                Some(found)
                    if is_like && self.text_bytes(InternedText(found)) == text.as_bytes() =>
                {
                    return Ok(InternedText(found));
                }
                Some(_) => at = (at + 1) & mask,
            }
        }
    }

    /// Rebuilds the table with `size` positions, without removed texts.
    fn rebuild_table(&mut self, size: usize) {
        let old = std::mem::replace(&mut self.by_hash, vec![0; size].into());
        for entry in old {
            let Some(name) = entry_number(entry).filter(|name| !self.gone.contains(*name)) else {
                continue;
            };
            let mut at = hash_text(self.text_bytes(InternedText(name))) as usize & (size - 1);
            while self.by_hash[at] != 0 {
                at = (at + 1) & (size - 1);
            }
            self.by_hash[at] = entry;
        }
    }
}

/// The part of a hash that entries of the table have.
const HASH_MASK: u64 = !0 << 32;

/// The number of an entry's text. `None`: the entry is empty.
fn entry_number(entry: u64) -> Option<u32> {
    (entry as u32).checked_sub(1)
}

fn hash_text(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    hasher.finish()
}

#[cfg(test)]
mod text_table_tests {
    use super::*;

    #[test]
    fn each_text_has_one_name() {
        let mut texts = TextTable::default();
        let text = |n: u32| "ä".repeat(n as usize % 7) + &n.to_string();
        assert_eq!(texts.find_text(""), None);
        let empty = texts.intern_text("").unwrap();
        let count = if cfg!(miri) { 100 } else { 5000 };
        let names: Vec<InternedText> = (0..count)
            .map(|n| texts.intern_text(&text(n)).unwrap())
            .collect();
        for (n, name) in (0..).zip(&names) {
            assert_eq!(texts.resolve_text(*name), text(n));
            assert_eq!(texts.find_text(&text(n)), Some(*name));
            assert_eq!(texts.intern_text(&text(n)), Some(*name));
        }
        assert_eq!(
            (texts.resolve_text(empty), texts.find_text("")),
            ("", Some(empty))
        );
        assert_eq!(texts.find_text("5000"), None);
        assert_eq!(texts.positions.len(), count as usize + 1);
    }

    #[test]
    fn what_is_gone_gets_another_name_and_the_rest_stays() {
        let mut texts = TextTable::default();
        let text = |n: u32| format!("some text {n}");
        let mut live: Vec<(u32, InternedText)> = Vec::new();
        let (rounds, each) = if cfg!(miri) { (3, 20) } else { (20, 1000) };
        for round in 0..rounds {
            for n in round * each..(round + 1) * each {
                live.push((n, texts.intern_text(&text(n)).unwrap()));
            }
            let (kept, gone): (Vec<_>, Vec<_>) = live.iter().partition(|(n, _)| n % 10 == 3);
            let mut names = BitSet::default();
            for (_, InternedText(name)) in &kept {
                names.insert(*name);
            }
            texts.retain_texts(&names);
            assert_eq!(texts.live, kept.len());
            assert!(texts.by_hash.len() <= 8 * kept.len().max(FIRST));
            for (n, name) in &kept {
                assert_eq!(
                    (texts.find_text(&text(*n)), texts.resolve_text(*name)),
                    (Some(*name), &*text(*n))
                );
            }
            for (n, name) in &gone {
                assert_eq!(
                    (texts.find_text(&text(*n)), texts.resolve_text(*name)),
                    (None, "")
                );
            }
            live = kept;
        }
        let again = texts.intern_text(&text(4)).unwrap();
        assert_eq!(
            (again.0, texts.resolve_text(again)),
            (rounds * each, "some text 4")
        );
    }
}
