//! Texts, each once, by number.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::memory::bits::Bits;
use crate::memory::rows::Rows;

/// Which text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Name(pub u32);

/// All texts lie behind each other.
pub struct Texts {
    bytes: Rows<u8>,
    /// Where each one begins, and its length.
    places: Rows<(u32, u32)>,
    /// Those that are gone.
    gone: Bits,
    /// How many are in the table.
    live: usize,
    /// Their numbers, plus 1, by hash; 0: empty. As many as a power of two, three quarters of which are used at most.
    by_hash: Box<[u32]>,
}

const MOST_BYTES: usize = 1 << 30;
const MOST: usize = 1 << 26;
const FIRST: usize = 1 << 10;

impl Default for Texts {
    fn default() -> Texts {
        Texts {
            bytes: Rows::new(MOST_BYTES),
            places: Rows::new(MOST),
            gone: Bits::default(),
            live: 0,
            by_hash: vec![0; FIRST].into(),
        }
    }
}

impl Texts {
    /// The text's number, a new one at its first time. `None`: there is no room.
    pub fn name(&mut self, text: &str) -> Option<Name> {
        if (self.live + 1) * 4 > self.by_hash.len() * 3 {
            self.rebuild(self.by_hash.len() * 2);
        }
        let at = match self.place(text) {
            Ok(known) => return Some(known),
            Err(at) => at,
        };
        let start = u32::try_from(self.bytes.len()).ok()?;
        if self.places.len() == self.places.room() {
            return None;
        }
        self.bytes.extend(text.as_bytes())?;
        self.places.push((start, u32::try_from(text.len()).ok()?))?;
        self.live += 1;
        let count = self.places.len() as u32;
        if let Some(place) = self.by_hash.get_mut(at) {
            *place = count;
        }
        Some(Name(count - 1))
    }

    pub fn find(&self, text: &str) -> Option<Name> {
        self.place(text).ok()
    }

    pub fn text(&self, name: Name) -> &str {
        std::str::from_utf8(self.bytes_of(name)).unwrap_or("")
    }

    fn bytes_of(&self, name: Name) -> &[u8] {
        let (start, len) = match self.gone.has(name.0) {
            true => (0, 0),
            false => self.places.get(name.0 as usize).copied().unwrap_or((0, 0)),
        };
        let (start, len) = (start as usize, len as usize);
        self.bytes.all().get(start..start + len).unwrap_or(&[])
    }

    /// All others are never asked for by their numbers again. A text that comes again gets another one.
    pub fn keep(&mut self, names: &Bits) {
        let known = self.by_hash.iter().filter_map(|name| name.checked_sub(1));
        let gone: Vec<u32> = known.filter(|name| !names.has(*name)).collect();
        for name in &gone {
            let at = *name as usize;
            if let Some(&(start, len)) = self.places.get(at) {
                let start = start as usize;
                self.bytes.drop_rows(start..start + len as usize);
            }
            self.places.drop_rows(at..at + 1);
            self.gone.set(*name);
        }
        self.live -= gone.len();
        let fits = |size: &usize| self.live * 4 <= size * 2;
        let sizes = std::iter::successors(Some(FIRST), |size| Some(size * 2));
        let size = sizes.into_iter().find(fits).unwrap_or(FIRST);
        self.rebuild(size);
    }

    /// The text's number, or where in the table it belongs.
    fn place(&self, text: &str) -> Result<Name, usize> {
        let mask = self.by_hash.len() - 1;
        let mut at = hash(text.as_bytes()) & mask;
        loop {
            match self.by_hash.get(at).copied().unwrap_or(0).checked_sub(1) {
                None => return Err(at),
                Some(found) if self.bytes_of(Name(found)) == text.as_bytes() => {
                    return Ok(Name(found));
                }
                Some(_) => at = (at + 1) & mask,
            }
        }
    }

    /// A table of so many places, with what is in the old one and not gone.
    fn rebuild(&mut self, size: usize) {
        let old = std::mem::replace(&mut self.by_hash, vec![0; size].into());
        for entry in old.into_iter().filter(|entry| *entry != 0) {
            let name = entry - 1;
            if self.gone.has(name) {
                continue;
            }
            let mut at = hash(self.bytes_of(Name(name))) & (size - 1);
            while self.by_hash[at] != 0 {
                at = (at + 1) & (size - 1);
            }
            self.by_hash[at] = entry;
        }
    }
}

fn hash(text: &[u8]) -> usize {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    hasher.finish() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_has_one_name() {
        let mut texts = Texts::default();
        let text = |n: u32| "ä".repeat(n as usize % 7) + &n.to_string();
        assert_eq!(texts.find(""), None);
        let empty = texts.name("").unwrap();
        let count = if cfg!(miri) { 100 } else { 5000 };
        let names: Vec<Name> = (0..count).map(|n| texts.name(&text(n)).unwrap()).collect();
        for (n, name) in (0..).zip(&names) {
            assert_eq!(texts.text(*name), text(n));
            assert_eq!(texts.find(&text(n)), Some(*name));
            assert_eq!(texts.name(&text(n)), Some(*name));
        }
        assert_eq!((texts.text(empty), texts.find("")), ("", Some(empty)));
        assert_eq!(texts.find("5000"), None);
        assert_eq!(texts.places.len(), count as usize + 1);
    }

    #[test]
    fn what_is_gone_gets_another_name_and_the_rest_stays() {
        let mut texts = Texts::default();
        let text = |n: u32| format!("some text {n}");
        let mut live: Vec<(u32, Name)> = Vec::new();
        let (rounds, each) = if cfg!(miri) { (3, 20) } else { (20, 1000) };
        for round in 0..rounds {
            for n in round * each..(round + 1) * each {
                live.push((n, texts.name(&text(n)).unwrap()));
            }
            let (kept, gone): (Vec<_>, Vec<_>) = live.iter().partition(|(n, _)| n % 10 == 3);
            let mut names = Bits::default();
            for (_, Name(name)) in &kept {
                names.set(*name);
            }
            texts.keep(&names);
            assert_eq!(texts.live, kept.len());
            assert!(texts.by_hash.len() <= 8 * kept.len().max(FIRST));
            for (n, name) in &kept {
                assert_eq!(
                    (texts.find(&text(*n)), texts.text(*name)),
                    (Some(*name), &*text(*n))
                );
            }
            for (n, name) in &gone {
                assert_eq!((texts.find(&text(*n)), texts.text(*name)), (None, ""));
            }
            live = kept;
        }
        let again = texts.name(&text(4)).unwrap();
        assert_eq!((again.0, texts.text(again)), (rounds * each, "some text 4"));
    }
}
