//! Tags of the program, such as the endpoint of a request: sets of (key, value) pairs, by number.
//!
//! A thread counts events under a set of tags in counters of that set. So events with tags cost the same as others,
//! and sums over all tags are exact. Each set is reached from the surrounding set by one pair; an existing key gets
//! the new value.
//!
//! Programs can make tags of anything, so all tables are bounded. Of each key, [`MOST_VALUES`] values are
//! distinguished; later values become one value, [`REST_VALUE`]. Beyond [`MOST_KEYS`] keys or [`MOST_SETS`] sets
//! nothing more is distinguished: events stay under the surrounding tags. Each limit is reported to the user once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::memory::locks::WatchedRwLock;

/// A set of tags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct TagSet(u32);

impl TagSet {
    /// The empty set.
    pub const NONE: TagSet = TagSet(0);

    /// The set with this number, which [`TagSet::number`] returned.
    pub fn from_number(number: u32) -> TagSet {
        TagSet(number)
    }

    pub fn number(self) -> u32 {
        self.0
    }
}

/// The value that stands for all values beyond the limit.
pub const REST_VALUE: &str = "(rest)";
/// Maximum length of a key or a value, in UTF-16 units. A longer value becomes [`REST_VALUE`]; a longer key is
/// refused.
pub const LONGEST: usize = 200;
const MOST_KEYS: usize = 16;
const MOST_VALUES: usize = 256;
const MOST_SETS: usize = 4096;

/// Key and value.
pub type TagPair = (Arc<str>, Arc<str>);

/// A limit that was reached and is reported to the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TagLimit {
    Keys,
    Values,
    Sets,
    Nested,
}

impl TagLimit {
    /// The warning, one line.
    pub fn warning_text(self, key: &str) -> String {
        match self {
            TagLimit::Keys => {
                format!("tags have more than {MOST_KEYS} keys: `{key}` tells nothing apart")
            }
            TagLimit::Values => format!(
                "tag `{key}` has more than {MOST_VALUES} values, or one of more than {LONGEST} characters: the rest is one value, {REST_VALUE}"
            ),
            TagLimit::Sets => format!(
                "tags have more than {MOST_SETS} combinations: some values of `{key}` tell nothing apart"
            ),
            TagLimit::Nested => {
                format!("tags are not closed: one more `{key}` tells nothing apart")
            }
        }
    }
}

/// All sets of tags, by number.
#[derive(Default)]
pub struct TagRegistry {
    table: WatchedRwLock<TagSetTable>,
    /// A bit for each [`TagLimit`] that was reported.
    reported: AtomicU32,
}

#[derive(Default)]
struct TagSetTable {
    /// By number; the first set is empty.
    sets: Vec<TagSetEntry>,
    by_pairs: HashMap<Arc<[TagPair]>, TagSet>,
    /// Distinguished values of each key.
    values: HashMap<Arc<str>, HashSet<Arc<str>>>,
}

struct TagSetEntry {
    /// In the order of their keys.
    pairs: Arc<[TagPair]>,
    /// The set that each further pair leads to.
    next: HashMap<Arc<str>, HashMap<Arc<str>, TagSet>>,
}

impl TagRegistry {
    /// The set with one more pair, and the limit that was reached, if any.
    pub fn add_tag(&self, outer: TagSet, key: &str, value: &str) -> (TagSet, Option<TagLimit>) {
        let read = self.table.read();
        if let Some(known) = read.find_set(outer, key, value) {
            return (known, None);
        }
        drop(read);
        let mut table = self.table.write();
        table.insert_tag(outer, key, value)
    }

    /// The pairs of a set.
    pub fn pairs(&self, set: TagSet) -> Arc<[TagPair]> {
        let table = self.table.read();
        let set = table.sets.get(set.0 as usize);
        set.map_or_else(
            || Arc::new([]) as Arc<[TagPair]>,
            |set| Arc::clone(&set.pairs),
        )
    }

    /// Whether this limit must be reported now: at its first call only.
    pub fn is_first_report(&self, bound: TagLimit) -> bool {
        let bit = 1 << bound as u32;
        self.reported.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}

impl TagSetTable {
    fn find_set(&self, outer: TagSet, key: &str, value: &str) -> Option<TagSet> {
        let next = self.sets.get(outer.0 as usize)?.next.get(key)?;
        if let Some(known) = next.get(value) {
            return Some(*known);
        }
        let values = self.values.get(key)?;
        let is_rest = values.len() >= MOST_VALUES && !values.contains(value);
        next.get(REST_VALUE).copied().filter(|_| is_rest)
    }

    fn insert_tag(&mut self, outer: TagSet, key: &str, value: &str) -> (TagSet, Option<TagLimit>) {
        if self.sets.is_empty() {
            let pairs: Arc<[TagPair]> = Arc::new([]);
            self.by_pairs.insert(Arc::clone(&pairs), TagSet::NONE);
            self.sets.push(TagSetEntry::from_pairs(pairs));
        }
        if !self.values.contains_key(key) && self.values.len() >= MOST_KEYS {
            return (outer, Some(TagLimit::Keys));
        }
        let (pair, bound) = self.intern_pair(key, value);
        match self.find_or_create_set(outer, &pair) {
            Some(set) => (set, bound),
            // The surrounding set stays exact.
            None => (outer, Some(TagLimit::Sets)),
        }
    }

    /// The distinguished pair for this key and value.
    fn intern_pair(&mut self, key: &str, value: &str) -> (TagPair, Option<TagLimit>) {
        let entry = self.values.get_key_value(key);
        let key: Arc<str> = entry.map_or_else(|| key.into(), |(key, _)| Arc::clone(key));
        let values = self.values.entry(Arc::clone(&key)).or_default();
        if let Some(entry) = values.get(value) {
            return ((key, Arc::clone(entry)), None);
        }
        if value == REST_VALUE {
            return ((key, REST_VALUE.into()), None);
        }
        if values.len() >= MOST_VALUES || value.encode_utf16().count() > LONGEST {
            return ((key, REST_VALUE.into()), Some(TagLimit::Values));
        }
        let value: Arc<str> = value.into();
        values.insert(Arc::clone(&value));
        ((key, value), None)
    }

    /// The set with this pair. `None`: too many sets.
    fn find_or_create_set(&mut self, outer: TagSet, (key, value): &TagPair) -> Option<TagSet> {
        let around = self.sets.get(outer.0 as usize)?;
        let others = around.pairs.iter().filter(|(known, _)| known != key);
        let mut pairs: Vec<TagPair> = others.cloned().collect();
        pairs.push((Arc::clone(key), Arc::clone(value)));
        pairs.sort_unstable();
        let set = match self.by_pairs.get(pairs.as_slice()) {
            Some(known) => *known,
            None if self.sets.len() >= MOST_SETS => return None,
            None => {
                let set = TagSet(self.sets.len() as u32);
                let pairs: Arc<[TagPair]> = pairs.into();
                self.by_pairs.insert(Arc::clone(&pairs), set);
                self.sets.push(TagSetEntry::from_pairs(pairs));
                set
            }
        };
        let around = self.sets.get_mut(outer.0 as usize)?;
        let next = around.next.entry(Arc::clone(key)).or_default();
        next.insert(Arc::clone(value), set);
        Some(set)
    }
}

impl TagSetEntry {
    fn from_pairs(pairs: Arc<[TagPair]>) -> TagSetEntry {
        TagSetEntry {
            pairs,
            next: HashMap::new(),
        }
    }
}

/// The open tags of one thread, each with its number.
#[derive(Default)]
pub struct OpenTags {
    last: u64,
    /// Numbers with the set around each tag, outermost first.
    open: Vec<(u64, TagSet)>,
    now: TagSet,
}

/// A program with more open tags does not close them.
const MOST_OPEN: usize = 256;

impl OpenTags {
    /// Numbers begin after `last`.
    pub fn with_last_number(last: u64) -> OpenTags {
        OpenTags {
            last,
            ..OpenTags::default()
        }
    }

    /// No open tags within a set that code of another thread has opened.
    pub fn within_set(set: TagSet) -> OpenTags {
        OpenTags {
            now: set,
            ..OpenTags::default()
        }
    }

    /// Replaces the open tags by none, within `set`. Returns the old ones. Numbers continue.
    pub fn replace_by_set(&mut self, set: TagSet) -> OpenTags {
        let inner = OpenTags {
            last: self.last,
            open: Vec::new(),
            now: set,
        };
        std::mem::replace(self, inner)
    }

    /// Restores the tags that [`OpenTags::replace_by_set`] returned. Returns the set before.
    pub fn restore(&mut self, outer: OpenTags) -> TagSet {
        let before = self.now;
        let last = self.last;
        *self = OpenTags { last, ..outer };
        before
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub fn current_set(&self) -> TagSet {
        self.now
    }

    pub fn is_full(&self) -> bool {
        self.open.len() >= MOST_OPEN
    }

    /// Opens a tag that leads to `set`. Returns the number that closes it.
    pub fn open_tag(&mut self, set: TagSet) -> u64 {
        self.last += 1;
        self.open.push((self.last, self.now));
        self.now = set;
        self.last
    }

    /// Closes a tag and all tags opened within it. Returns the set after it. `None`: it is not open.
    pub fn close_tag(&mut self, number: u64) -> Option<TagSet> {
        let at = self.open.iter().rposition(|(open, _)| *open == number)?;
        let (_, outer) = *self.open.get(at)?;
        self.open.truncate(at);
        self.now = outer;
        Some(outer)
    }
}

#[cfg(test)]
mod tags_tests {
    use super::*;

    fn texts(tags: &TagRegistry, set: TagSet) -> Vec<String> {
        let pairs = tags.pairs(set);
        pairs
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect()
    }

    #[test]
    fn sets_are_equal_in_whatever_order_their_tags_come() {
        let tags = TagRegistry::default();
        let (a, none) = tags.add_tag(TagSet::NONE, "a", "1");
        assert_eq!(
            (tags.add_tag(TagSet::NONE, "a", "1"), none),
            ((a, None), None)
        );
        let (ab, _) = tags.add_tag(a, "b", "2");
        let (b, _) = tags.add_tag(TagSet::NONE, "b", "2");
        assert_eq!(tags.add_tag(b, "a", "1").0, ab);
        assert_eq!(texts(&tags, ab), ["a=1", "b=2"]);
        // The innermost value counts.
        let (other, _) = tags.add_tag(ab, "a", "3");
        assert_eq!(texts(&tags, other), ["a=3", "b=2"]);
        assert!(texts(&tags, TagSet::NONE).is_empty());
    }

    #[test]
    fn what_is_too_much_is_one_value() {
        let tags = TagRegistry::default();
        let of = |value: usize| tags.add_tag(TagSet::NONE, "id", &value.to_string());
        let mut sets: Vec<_> = (0..MOST_VALUES).map(|value| of(value).0).collect();
        sets.sort_unstable();
        sets.dedup();
        assert_eq!(sets.len(), MOST_VALUES);
        let (rest, bound) = of(MOST_VALUES);
        assert_eq!(texts(&tags, rest), ["id=(rest)"]);
        assert_eq!(bound, Some(TagLimit::Values));
        assert_eq!(of(MOST_VALUES + 1), (rest, None));
        assert_eq!(texts(&tags, of(7).0), ["id=7"]);
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(tags.add_tag(TagSet::NONE, "id", &long).0, rest);
        assert!(tags.is_first_report(TagLimit::Values) && !tags.is_first_report(TagLimit::Values));
        assert!(tags.is_first_report(TagLimit::Keys));
    }

    #[test]
    fn keys_and_sets_are_bounded() {
        let tags = TagRegistry::default();
        let outer = tags.add_tag(TagSet::NONE, "k0", "v").0;
        for key in 1..MOST_KEYS {
            let (set, bound) = tags.add_tag(outer, &format!("k{key}"), "v");
            assert_eq!((set == outer, bound), (false, None));
        }
        assert_eq!(
            tags.add_tag(outer, "more", "v"),
            (outer, Some(TagLimit::Keys))
        );
        for n in 0..2 * MOST_SETS {
            let (first, _) = tags.add_tag(outer, "k1", &(n % 200).to_string());
            let (second, bound) = tags.add_tag(first, "k2", &(n / 200).to_string());
            assert_eq!(second == first, bound == Some(TagLimit::Sets));
        }
        let table = tags.table.read();
        assert_eq!(table.sets.len(), MOST_SETS);
    }

    #[test]
    fn tags_close_in_any_order_and_once() {
        let (a, b) = (TagSet(1), TagSet(2));
        let mut open = OpenTags::default();
        let first = open.open_tag(a);
        let second = open.open_tag(b);
        assert_eq!(open.current_set(), b);
        assert_eq!(open.close_tag(first), Some(TagSet::NONE));
        assert_eq!(open.close_tag(second), None);
        assert_eq!(
            (open.current_set(), open.close_tag(first)),
            (TagSet::NONE, None)
        );
    }

    #[test]
    fn a_task_has_its_own_tags_meanwhile() {
        let (own, of_task, within) = (TagSet(1), TagSet(2), TagSet(3));
        let mut open = OpenTags::default();
        let first = open.open_tag(own);
        let outer = open.replace_by_set(of_task);
        assert_eq!(open.current_set(), of_task);
        // The thread's own tags are not open in the task.
        assert_eq!(open.close_tag(first), None);
        let second = open.open_tag(within);
        assert_ne!(first, second);
        assert_eq!(open.restore(outer), within);
        assert_eq!(open.current_set(), own);
        assert_eq!(open.close_tag(second), None);
        assert_eq!(open.close_tag(first), Some(TagSet::NONE));
    }
}
