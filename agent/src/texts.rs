//! Texts, each once, by number.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::rows::Rows;

/// Which text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Name(u32);

/// All texts lie behind each other.
pub struct Texts {
    bytes: Rows<u8>,
    /// Where each one ends.
    ends: Rows<u32>,
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
            ends: Rows::new(MOST),
            by_hash: vec![0; FIRST].into(),
        }
    }
}

impl Texts {
    /// Its number, new if nobody has asked for it yet. `None`: there is no room.
    pub fn name(&mut self, text: &str) -> Option<Name> {
        if (self.ends.len() + 1) * 4 > self.by_hash.len() * 3 {
            self.grow();
        }
        let at = match self.place(text) {
            Ok(known) => return Some(known),
            Err(at) => at,
        };
        let end = u32::try_from(self.bytes.len() + text.len()).ok()?;
        if self.ends.len() == self.ends.room() {
            return None;
        }
        self.bytes.extend(text.as_bytes())?;
        self.ends.push(end)?;
        let count = self.ends.len() as u32;
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
        let at = name.0 as usize;
        let end_of = |at: usize| self.ends.get(at).map_or(0, |end| *end as usize);
        let start = at.checked_sub(1).map_or(0, end_of);
        self.bytes.all().get(start..end_of(at)).unwrap_or(&[])
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

    fn grow(&mut self) {
        let mask = self.by_hash.len() * 2 - 1;
        let mut larger: Box<[u32]> = vec![0; mask + 1].into();
        for name in 0..self.ends.len() as u32 {
            let mut at = hash(self.bytes_of(Name(name))) & mask;
            while larger[at] != 0 {
                at = (at + 1) & mask;
            }
            larger[at] = name + 1;
        }
        self.by_hash = larger;
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
        let names: Vec<Name> = (0..5000).map(|n| texts.name(&text(n)).unwrap()).collect();
        for (n, name) in (0..).zip(&names) {
            assert_eq!(texts.text(*name), text(n));
            assert_eq!(texts.find(&text(n)), Some(*name));
            assert_eq!(texts.name(&text(n)), Some(*name));
        }
        assert_eq!((texts.text(empty), texts.find("")), ("", Some(empty)));
        assert_eq!(texts.find("5000"), None);
        assert_eq!(texts.ends.len(), 5001);
    }
}
