//! Interned texts. Names repeat in thousands of methods; a separate string for each would take more memory than the log
//! has bytes.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use hashbrown::HashTable;

/// The number of a text in [`TextInterner`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct TextId(u32);

impl TextId {
    /// As a plain number, for fields that also have a value for "none".
    pub(super) fn to_u32(self) -> u32 {
        self.0
    }

    pub(super) fn from_u32(number: u32) -> TextId {
        TextId(number)
    }
}

#[derive(Default)]
pub(super) struct TextInterner {
    /// All texts, concatenated.
    text: String,
    /// The end of each text.
    ends: Vec<usize>,
    index: HashTable<u32>,
    hasher: RandomState,
}

impl TextInterner {
    /// Returns the id of a text. Distinguishes up to `u32::MAX` texts; a log with more would exceed any disk.
    pub(super) fn intern_text(&mut self, text: &str) -> TextId {
        let TextInterner {
            text: all,
            ends,
            index: known,
            hasher,
        } = self;
        let hash = hasher.hash_one(text);
        if let Some(found) = known.find(hash, |at| text_at(all, ends, *at) == text) {
            return TextId(*found);
        }
        let id = u32::try_from(ends.len()).unwrap_or(u32::MAX);
        all.push_str(text);
        ends.push(all.len());
        known.insert_unique(hash, id, |at| hasher.hash_one(text_at(all, ends, *at)));
        TextId(id)
    }

    /// Returns the text of an id. Empty: this interner has no such id.
    pub(super) fn get(&self, id: TextId) -> &str {
        text_at(&self.text, &self.ends, id.0)
    }
}

fn text_at<'t>(all: &'t str, ends: &[usize], at: u32) -> &'t str {
    let at = at as usize;
    let end = |at: usize| ends.get(at).copied();
    let start = at.checked_sub(1).map_or(Some(0), end);
    let range = start.zip(end(at));
    range
        .and_then(|(start, end)| all.get(start..end))
        .unwrap_or_default()
}

#[cfg(test)]
mod interner_tests {
    use super::*;

    #[test]
    fn equal_texts_are_one() {
        let mut texts = TextInterner::default();
        let all: Vec<String> = (0..2000).map(|n| format!("name{}", n % 1000)).collect();
        let ids: Vec<TextId> = all.iter().map(|text| texts.intern_text(text)).collect();
        assert_eq!(ids[..1000], ids[1000..]);
        assert!(
            all.iter()
                .zip(&ids)
                .all(|(text, id)| texts.get(*id) == text)
        );
        let empty = texts.intern_text("");
        assert_eq!(texts.intern_text(""), empty);
        assert_eq!(texts.get(empty), "");
        assert_eq!(texts.get(TextId::from_u32(7_000_000)), "");
    }
}
