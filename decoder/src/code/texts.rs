//! Texts, each kept once: names repeat in thousands of methods, and a text of its own for each would take more memory than
//! the log has bytes.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use hashbrown::HashTable;

/// A text of [`Texts`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct TextId(u32);

impl TextId {
    /// For what is kept beside it in one number.
    pub(super) fn number(self) -> u32 {
        self.0
    }

    pub(super) fn of(number: u32) -> TextId {
        TextId(number)
    }
}

#[derive(Default)]
pub(super) struct Texts {
    /// One behind the other.
    all: String,
    /// Where each ends.
    ends: Vec<usize>,
    known: HashTable<u32>,
    hasher: RandomState,
}

impl Texts {
    /// No more than `u32::MAX` are told apart; a log of that many is larger than any disk that holds logs.
    pub(super) fn id(&mut self, text: &str) -> TextId {
        let Texts {
            all,
            ends,
            known,
            hasher,
        } = self;
        let hash = hasher.hash_one(text);
        if let Some(found) = known.find(hash, |at| get(all, ends, *at) == text) {
            return TextId(*found);
        }
        let id = u32::try_from(ends.len()).unwrap_or(u32::MAX);
        all.push_str(text);
        ends.push(all.len());
        known.insert_unique(hash, id, |at| hasher.hash_one(get(all, ends, *at)));
        TextId(id)
    }

    /// Empty: none of these texts.
    pub(super) fn get(&self, id: TextId) -> &str {
        get(&self.all, &self.ends, id.0)
    }
}

fn get<'t>(all: &'t str, ends: &[usize], at: u32) -> &'t str {
    let at = at as usize;
    let end = |at: usize| ends.get(at).copied();
    let start = at.checked_sub(1).map_or(Some(0), end);
    let range = start.zip(end(at));
    range
        .and_then(|(start, end)| all.get(start..end))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one() {
        let mut texts = Texts::default();
        let all: Vec<String> = (0..2000).map(|n| format!("name{}", n % 1000)).collect();
        let ids: Vec<TextId> = all.iter().map(|text| texts.id(text)).collect();
        assert_eq!(ids[..1000], ids[1000..]);
        assert!(
            all.iter()
                .zip(&ids)
                .all(|(text, id)| texts.get(*id) == text)
        );
        let empty = texts.id("");
        assert_eq!(texts.id(""), empty);
        assert_eq!(texts.get(empty), "");
        assert_eq!(texts.get(TextId::of(7_000_000)), "");
    }
}
