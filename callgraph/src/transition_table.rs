//! (version, site, callee) → what to add to the caller's number. Never forgets.
//!
//! ```text
//! entry: [ key, delta ]        key = version << 52 | site << 24 | callee, 0: empty
//!                              delta = u64::MAX: look into the anchor table
//! ```
//!
//! The holder of the encoder's mutex writes delta, then key (Release). A reader that sees the key
//! (Acquire) sees its delta; a reader that does not takes the slow path and looks again.
//!
//! When the graph is numbered anew, the deltas of retired versions all become "look into the anchor
//! table". A reader may still see what was there: that number is right too.

use crate::sync::{AtomicU64, AtomicUsize, FIRST_SLOTS, Ordering};
use crate::words::{Generations, Words};
use crate::{MethodId, SiteId, Version};

/// The delta of a transition that anchors.
pub(crate) const ANCHORING: u64 = u64::MAX;

/// Never 0, because no version is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Key {
    /// None if an id is out of range: it would run into its neighbour and become another key.
    #[inline]
    pub(crate) fn new(version: Version, site: SiteId, callee: MethodId) -> Option<Key> {
        let low = u64::from(site.0) << MethodId::BITS | u64::from(callee.0);
        let key = u64::from(version.0) << (SiteId::BITS + MethodId::BITS) | low;
        (site <= SiteId::ENTRY && callee <= MethodId::EVENT).then_some(Key(key))
    }
}

pub(crate) struct TransitionTable {
    generations: Generations<2>,
    /// Written by the mutex's holder only.
    len: AtomicUsize,
}

impl TransitionTable {
    pub(crate) fn new(address: &AtomicU64) -> Self {
        let generations = Generations::new(FIRST_SLOTS, address);
        TransitionTable {
            generations,
            len: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<u64> {
        for entry in self.generations.newest().probe(key.0) {
            // Acquire: pairs with the Release in put(), so that delta is this key's.
            match entry[0].load(Ordering::Acquire) {
                0 => return None,
                // Relaxed: ordered by the load of the key.
                found if found == key.0 => return Some(entry[1].load(Ordering::Relaxed)),
                _ => {}
            }
        }
        None
    }

    /// The key is new, the caller holds the encoder's mutex.
    pub(crate) fn insert(&self, key: Key, delta: u64, address: &AtomicU64) {
        // Relaxed: only the mutex's holder writes it.
        let len = self.len.load(Ordering::Relaxed) + 1;
        self.len.store(len, Ordering::Relaxed);
        if len * 2 > self.generations.newest().slots() {
            self.grow(address);
        }
        put(self.generations.newest(), key.0, delta);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.generations.bytes()
    }

    /// Every call from a version before `version` anchors from now on. The caller holds the encoder's
    /// mutex.
    pub(crate) fn retire(&self, version: Version) {
        let words = self.generations.newest();
        let first = u64::from(version.0) << (SiteId::BITS + MethodId::BITS);
        for entry in (0..words.slots()).map(|slot| words.entry(slot)) {
            // Relaxed: only the mutex's holder writes keys, and either delta is right for readers.
            if (1..first).contains(&entry[0].load(Ordering::Relaxed)) {
                entry[1].store(ANCHORING, Ordering::Relaxed);
            }
        }
    }

    #[cold]
    fn grow(&self, address: &AtomicU64) {
        let old = self.generations.newest();
        let new = Words::new(old.slots() * 2);
        for entry in (0..old.slots()).map(|slot| old.entry(slot)) {
            // Relaxed: this thread holds the mutex that all writers held.
            match entry[0].load(Ordering::Relaxed) {
                0 => {}
                key => put(&new, key, entry[1].load(Ordering::Relaxed)),
            }
        }
        self.generations.publish(new, address);
    }
}

fn put(words: &Words<2>, key: u64, delta: u64) {
    // Relaxed: only the mutex's holder writes keys.
    let empty = |entry: &&[AtomicU64]| entry[0].load(Ordering::Relaxed) == 0;
    if let Some(entry) = words.probe(key).find(empty) {
        // Relaxed: published by the key.
        entry[1].store(delta, Ordering::Relaxed);
        // Release: pairs with the Acquire in find() and in foreign readers.
        entry[0].store(key, Ordering::Release);
    }
}

/// The reader's protocol alone, without the mutex that orders so much in the whole encoder.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;

    fn key(version: u32) -> Key {
        Key::new(Version(version), SiteId(1), MethodId(1)).unwrap()
    }

    #[test]
    fn a_key_that_is_seen_has_its_delta_and_is_never_lost() {
        loom::model(|| {
            let address = AtomicU64::new(0);
            let table = Arc::new(TransitionTable::new(&address));
            table.insert(key(1), 1, &address);
            let shared = table.clone();
            let reader = loom::thread::spawn(move || {
                assert_eq!(shared.find(key(1)), Some(1));
                for version in [2, 3] {
                    let delta = shared.find(key(version));
                    assert!(delta.is_none() || delta == Some(u64::from(version)));
                }
            });
            // The writer runs first: the model then branches at each store that the reader loads.
            for version in [2, 3] {
                table.insert(key(version), u64::from(version), &address);
            }
            reader.join().unwrap();
        });
    }
}
