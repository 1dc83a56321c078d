//! Maps (version, site, callee) to what is added to the caller's number. The table forgets only dead code.
//!
//! ```text
//! entry: [ key, delta ]        key = version << 52 | site << 24 | callee, 0: empty
//!                              delta = u64::MAX: look into the anchor table
//! ```
//!
//! The holder of the encoder's mutex writes delta, then key (Release). A reader that sees the key (Acquire) sees its
//! delta; a reader that does not see it takes the slow path and looks again.
//!
//! In released memory, a reader may see a key with the delta 0, which is no answer.
//!
//! When the graph is renumbered, the deltas of all retired versions become "look into the anchor table". A reader may
//! still see the previous delta: that number is right as well.

pub(crate) use crate::raw::ANCHORING;
use crate::raw::{DELTA, KEY, TRANSITION_WORDS};
use crate::sync::{AtomicU64, AtomicUsize, FIRST_SLOTS, Ordering};
use crate::table_memory::{MemorySource, TableGeneration, TableGenerations};
use crate::{DeadCode, MethodId, SiteId, Version};

/// Never 0, because no version is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransitionKey(u64);

impl TransitionKey {
    /// Packs the key. `None`: an id is out of range; it would overlap its neighbour and become another key.
    #[inline]
    pub(crate) fn new(version: Version, site: SiteId, callee: MethodId) -> Option<TransitionKey> {
        let low = u64::from(site.0) << MethodId::BITS | u64::from(callee.0);
        let key = u64::from(version.0) << (SiteId::BITS + MethodId::BITS) | low;
        (site <= SiteId::ENTRY && callee <= MethodId::EVENT).then_some(TransitionKey(key))
    }

    fn site(self) -> SiteId {
        SiteId((self.0 >> MethodId::BITS) as u32 & SiteId::ENTRY.0)
    }

    fn callee(self) -> MethodId {
        MethodId(self.0 as u32 & MethodId::EVENT.0)
    }

    #[inline]
    pub(crate) fn is_event(self) -> bool {
        self.0 as u32 & MethodId::EVENT.0 == MethodId::EVENT.0
    }
}

pub(crate) struct TransitionTable {
    generations: TableGenerations<TRANSITION_WORDS>,
    /// Written only by the mutex's holder.
    len: AtomicUsize,
}

impl TransitionTable {
    pub(crate) fn new(address: &AtomicU64, source: MemorySource) -> Self {
        let generations = TableGenerations::new(FIRST_SLOTS, address, source);
        TransitionTable {
            generations,
            len: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub(crate) fn find(&self, key: TransitionKey) -> Option<u64> {
        for entry in self.generations.newest_generation().probe_slots(key.0) {
            // Acquire: pairs with the Release in `insert`, so that delta belongs to this key.
            match entry[KEY].load(Ordering::Acquire) {
                0 => return None,
                found if found == key.0 => {
                    // Relaxed: ordered by the load of the key. No delta is 0: this memory was released in between, and
                    // a newer generation has the entry.
                    let delta = entry[DELTA].load(Ordering::Relaxed);
                    return (delta != 0).then_some(delta);
                }
                _ => {}
            }
        }
        None
    }

    /// Inserts a new key. The caller holds the encoder's mutex.
    pub(crate) fn insert(&self, key: TransitionKey, delta: u64, address: &AtomicU64) {
        // Relaxed: only the mutex's holder writes it.
        let len = self.len.load(Ordering::Relaxed) + 1;
        self.len.store(len, Ordering::Relaxed);
        if len * 4 > self.generations.newest_generation().slot_count() * 3 {
            self.grow_table(address);
        }
        store_entry(self.generations.newest_generation(), key.0, delta);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.generations.memory_bytes()
    }

    /// Makes every call from a version before `version` anchor from now on. The caller holds the encoder's mutex.
    pub(crate) fn retire_before(&self, version: Version) {
        let words = self.generations.newest_generation();
        let first = u64::from(version.0) << (SiteId::BITS + MethodId::BITS);
        for entry in (0..words.slot_count()).map(|slot| words.entry(slot)) {
            // Relaxed: only the mutex's holder writes keys, and either delta is right for readers.
            if (1..first).contains(&entry[KEY].load(Ordering::Relaxed)) {
                entry[DELTA].store(ANCHORING, Ordering::Relaxed);
            }
        }
    }

    /// Moves the live entries to memory that fits them, if that is smaller. The caller holds the encoder's mutex.
    pub(crate) fn sweep_dead_code(&self, gone: &dyn DeadCode, address: &AtomicU64) {
        let old = self.generations.newest_generation();
        let is_left = |entry: &&[AtomicU64]| {
            // Relaxed: only the mutex's holder writes keys.
            let key = TransitionKey(entry[KEY].load(Ordering::Relaxed));
            key.0 != 0 && !gone.is_site_dead(key.site()) && !gone.is_method_dead(key.callee())
        };
        let entries = || (0..old.slot_count()).map(|slot| old.entry(slot));
        let left = entries().filter(is_left).count();
        // Relaxed: only the mutex's holder writes it.
        let len = self.len.load(Ordering::Relaxed);
        // If little is dead, the entries may stay: outgrown memory is not used again.
        if left * 4 > len * 3 || !self.generations.has_room() {
            return;
        }
        // Later entries will need this room again, or half of it.
        let slots = match left * 32 < old.slot_count() {
            true => old.slot_count() / 2,
            false => old.slot_count(),
        };
        let new = self.generations.allocate_fitting(slots);
        for entry in entries().filter(is_left) {
            // Relaxed: this thread holds the mutex that all writers held.
            let [key, delta] = [KEY, DELTA].map(|word| entry[word].load(Ordering::Relaxed));
            store_entry(&new, key, delta);
        }
        self.len.store(left, Ordering::Relaxed);
        self.generations.publish_generation(new, address);
    }

    #[cold]
    fn grow_table(&self, address: &AtomicU64) {
        let old = self.generations.newest_generation();
        let new = self.generations.allocate_larger();
        for entry in (0..old.slot_count()).map(|slot| old.entry(slot)) {
            // Relaxed: this thread holds the mutex that all writers held.
            match entry[KEY].load(Ordering::Relaxed) {
                0 => {}
                key => store_entry(&new, key, entry[DELTA].load(Ordering::Relaxed)),
            }
        }
        self.generations.publish_generation(new, address);
    }
}

fn store_entry(words: &TableGeneration<TRANSITION_WORDS>, key: u64, delta: u64) {
    // Relaxed: only the mutex's holder writes keys.
    let empty = |entry: &&[AtomicU64]| entry[KEY].load(Ordering::Relaxed) == 0;
    if let Some(entry) = words.probe_slots(key).find(empty) {
        // Relaxed: published by the key.
        entry[DELTA].store(delta, Ordering::Relaxed);
        // Release: pairs with the Acquire in `find` and in foreign readers.
        entry[KEY].store(key, Ordering::Release);
    }
}

/// Tests the reader's protocol alone, without the mutex that orders most accesses of the whole encoder.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;

    fn key(version: u32) -> TransitionKey {
        TransitionKey::new(Version(version), SiteId(1), MethodId(1)).unwrap()
    }

    #[test]
    fn a_key_that_is_seen_has_its_delta_and_is_never_lost() {
        loom::model(|| {
            let address = AtomicU64::new(0);
            let table = Arc::new(TransitionTable::new(&address, None));
            table.insert(key(1), 1, &address);
            let shared = table.clone();
            let reader = loom::thread::spawn(move || {
                assert_eq!(shared.find(key(1)), Some(1));
                for version in [2, 3] {
                    let delta = shared.find(key(version));
                    assert!(delta.is_none() || delta == Some(u64::from(version)));
                }
            });
            // Runs the writer first: the model then branches at each store that the reader loads.
            for version in [2, 3] {
                table.insert(key(version), u64::from(version), &address);
            }
            reader.join().unwrap();
        });
    }

    /// Releases memory at once, in the order that is worst for readers.
    struct Forgetting;

    impl crate::TableMemory for Forgetting {
        fn allocate_zeroed(&self, words: usize) -> Option<&'static [AtomicU64]> {
            let aligned = Aligned(std::array::from_fn(|_| AtomicU64::new(0)));
            Box::leak(Box::new(aligned)).0.get(..words)
        }

        fn release_words(&self, words: &'static [AtomicU64]) {
            // The entries of the first generation: the only one that the model outgrows.
            for word in words.iter().take(2 * FIRST_SLOTS).rev() {
                word.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Every run of the model must use the same words.
    #[repr(align(64))]
    struct Aligned([AtomicU64; 32]);

    #[test]
    fn an_entry_of_forgotten_memory_is_right_or_not_found() {
        loom::model(|| {
            let address = AtomicU64::new(0);
            let table = Arc::new(TransitionTable::new(&address, Some(&Forgetting)));
            table.insert(key(1), 1, &address);
            let shared = table.clone();
            let reader = loom::thread::spawn(move || {
                let delta = shared.find(key(1));
                assert!(delta.is_none() || delta == Some(1), "{delta:?}");
            });
            // The second key makes the table grow.
            for version in [2, 3] {
                table.insert(key(version), u64::from(version), &address);
            }
            reader.join().unwrap();
            assert_eq!(table.find(key(1)), Some(1));
        });
    }
}
