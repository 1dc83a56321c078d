//! Maps (context, site, callee) to the anchored context. The table may forget entries, but never answers wrongly.
//!
//! ```text
//! entry: [ ctx, site << 24 | callee, to ]        to = 0: empty
//! ```
//!
//! The holder of the encoder's mutex is the only writer. It fills an entry in the order ctx, key, `to`, each with
//! Release. A reader loads `to`, ctx and key, each with Acquire, and then `to` again. If both values of `to` are equal,
//! ctx and key belong to it.
//!
//! Proof: an entry is reused only after `to` was cleared. A reader that sees a ctx or key of a later use has
//! synchronized with a store after the clearing. So its second load of `to` sees 0 or a later `to`. No value of `to` is
//! written twice, because each one is a new anchor.
//!
//! A table at its budget forgets all entries in place. A forgotten context then gets a second number; if that happens
//! often, the budget grows (`forgotten_anchors`).

use crate::raw::{ANCHOR_WORDS, CONTEXT, PLACE, ROTATION, TO};
use crate::sync::{AtomicU64, AtomicUsize, FIRST_SLOTS, Ordering};
use crate::table_memory::{MemorySource, TableGeneration, TableGenerations};
use crate::{ContextId, MethodId, SiteId};

/// A call of `callee` at `site` by the frame with the number `context`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnchorKey {
    context: u64,
    site_and_callee: u64,
}

impl AnchorKey {
    #[inline]
    pub(crate) fn new(context: ContextId, site: SiteId, callee: MethodId) -> AnchorKey {
        let place = u64::from(site.0) << MethodId::BITS | u64::from(callee.0);
        AnchorKey {
            context: context.0,
            site_and_callee: place,
        }
    }

    /// Packs site and callee into one word.
    pub(crate) fn site_and_callee(self) -> u64 {
        self.site_and_callee
    }

    /// Key of a thread's first frame: no context has the number 0.
    #[inline]
    pub(crate) fn from_thread_entry(head: MethodId) -> AnchorKey {
        AnchorKey::new(ContextId::UNKNOWN, SiteId::ENTRY, head)
    }

    #[inline]
    fn hash_word(self) -> u64 {
        self.context ^ self.site_and_callee.rotate_left(ROTATION)
    }
}

pub(crate) struct AnchorTable {
    generations: TableGenerations<ANCHOR_WORDS>,
    /// `len` and `budget` are written only by the mutex's holder.
    budget: AtomicUsize,
    len: AtomicUsize,
}

impl AnchorTable {
    pub(crate) fn new(budget: usize, address: &AtomicU64, source: MemorySource) -> Self {
        let generations = TableGenerations::new(FIRST_SLOTS, address, source);
        AnchorTable {
            generations,
            budget: AtomicUsize::new(budget.max(1)),
            len: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub(crate) fn find(&self, call: AnchorKey) -> Option<ContextId> {
        for entry in self
            .generations
            .newest_generation()
            .probe_slots(call.hash_word())
        {
            // Acquire: pairs with the Release of `to` in `insert`, so ctx and key are visible.
            let to = entry[TO].load(Ordering::Acquire);
            if to == 0 {
                return None;
            }
            // Acquire: pairs with the Releases in `insert`, so that an earlier clearing is visible below.
            let context = entry[CONTEXT].load(Ordering::Acquire);
            let place = entry[PLACE].load(Ordering::Acquire);
            // Relaxed: ordered by the two loads above.
            if (AnchorKey {
                context,
                site_and_callee: place,
            }) == call
                && entry[TO].load(Ordering::Relaxed) == to
            {
                return Some(ContextId(to));
            }
        }
        None
    }

    /// Inserts a call that is not in the table. The caller holds the encoder's mutex; `to` is a new anchor.
    pub(crate) fn insert(&self, call: AnchorKey, to: ContextId, address: &AtomicU64) {
        // Relaxed: only the mutex's holder writes it.
        let len = self.len.load(Ordering::Relaxed);
        let kept = self.make_room(len, address);
        self.len.store(kept + 1, Ordering::Relaxed);
        store_entry(self.generations.newest_generation(), call, to.0);
    }

    /// Whether the next insertion forgets everything. The caller holds the encoder's mutex.
    pub(crate) fn is_full(&self) -> bool {
        // Relaxed: only the mutex's holder writes what is read here.
        self.len.load(Ordering::Relaxed) >= self.budget()
    }

    /// Doubles the budget. The caller holds the encoder's mutex.
    pub(crate) fn double_budget(&self) {
        // Relaxed: only the mutex's holder reads or writes it.
        let budget = self.budget.load(Ordering::Relaxed);
        self.budget
            .store(budget.saturating_mul(2), Ordering::Relaxed);
    }

    pub(crate) fn budget(&self) -> usize {
        // Relaxed: a limit on which no other data depends.
        self.budget.load(Ordering::Relaxed)
    }

    /// Forgets all entries. The caller holds the encoder's mutex.
    pub(crate) fn clear(&self) {
        clear_entries(self.generations.newest_generation());
        // Relaxed: only the mutex's holder writes it.
        self.len.store(0, Ordering::Relaxed);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.generations.memory_bytes()
    }

    /// Makes room for an entry and returns how many entries are left.
    fn make_room(&self, len: usize, address: &AtomicU64) -> usize {
        if len >= self.budget() {
            clear_entries(self.generations.newest_generation());
            return 0;
        }
        if (len + 1) * 4 > self.generations.newest_generation().slot_count() * 3 {
            self.grow_table(address);
        }
        len
    }

    #[cold]
    fn grow_table(&self, address: &AtomicU64) {
        let old = self.generations.newest_generation();
        let new = self.generations.allocate_larger();
        for entry in (0..old.slot_count()).map(|slot| old.entry(slot)) {
            // Relaxed: this thread holds the mutex that all writers held.
            let [context, place, to] =
                [CONTEXT, PLACE, TO].map(|word| entry[word].load(Ordering::Relaxed));
            if to != 0 {
                store_entry(
                    &new,
                    AnchorKey {
                        context,
                        site_and_callee: place,
                    },
                    to,
                );
            }
        }
        self.generations.publish_generation(new, address);
    }
}

#[cold]
fn clear_entries(words: &TableGeneration<ANCHOR_WORDS>) {
    for slot in 0..words.slot_count() {
        // Relaxed: ordered before the entry's next use by the Releases in `insert`.
        words.entry(slot)[TO].store(0, Ordering::Relaxed);
    }
}

fn store_entry(words: &TableGeneration<ANCHOR_WORDS>, call: AnchorKey, to: u64) {
    // Relaxed: only the mutex's holder writes entries.
    let empty = |entry: &&[AtomicU64]| entry[TO].load(Ordering::Relaxed) == 0;
    if let Some(entry) = words.probe_slots(call.hash_word()).find(empty) {
        // Release: pairs with the Acquires in `find`; a reader that sees these values sees `to` cleared.
        entry[CONTEXT].store(call.context, Ordering::Release);
        entry[PLACE].store(call.site_and_callee, Ordering::Release);
        // Release: pairs with the Acquire of `to` in `find` and in foreign readers.
        entry[TO].store(to, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod anchor_table_tests {
    use super::*;

    #[test]
    fn the_table_stays_within_its_budget_and_forgets() {
        let (budget, address) = (2000, AtomicU64::new(0));
        let table = AnchorTable::new(budget, &address, None);
        for context in 1..=20_000u64 {
            let call = AnchorKey::new(ContextId(context), SiteId(1), MethodId(1));
            table.insert(call, ContextId(context + 7), &address);
            assert_eq!(table.find(call), Some(ContextId(context + 7)));
            // After growth at most half of the slots of 24 bytes are full; outgrown generations need as much again.
            assert!(table.memory_bytes() <= 2 * 2 * (2 * budget + 16) * 24);
        }
        let first = AnchorKey::new(ContextId(1), SiteId(1), MethodId(1));
        assert_eq!(table.find(first), None);
    }
}

/// Tests the reader's protocol alone, without the mutex that orders most accesses of the whole encoder.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::raw::MULTIPLIER;
    use loom::sync::Arc;

    /// Calls that all begin in the same slot, of the model's 2 slots and of the 4 after growth.
    fn colliding() -> impl Iterator<Item = AnchorKey> {
        let calls = (1..).map(|ctx| AnchorKey::new(ContextId(ctx), SiteId(1), MethodId(1)));
        calls.filter(|call| call.hash_word().wrapping_mul(MULTIPLIER) >> 62 == 1)
    }

    /// Runs the writer first: the model then branches at each of its stores that a reader loads.
    fn check(
        budget: usize,
        inserts: &'static [(usize, u64)],
        read: fn(&AnchorTable, &[AnchorKey]),
    ) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let address = AtomicU64::new(0);
            let table = Arc::new(AnchorTable::new(budget, &address, None));
            let calls: Vec<AnchorKey> = colliding().take(3).collect();
            table.insert(calls[0], ContextId(10), &address);
            let (shared, known) = (table.clone(), calls.clone());
            let reader = loom::thread::spawn(move || read(&shared, &known));
            for &(call, to) in inserts {
                table.insert(calls[call], ContextId(to), &address);
            }
            reader.join().unwrap();
        });
    }

    #[test]
    fn a_reader_never_takes_one_calls_answer_for_anothers() {
        check(1, &[(1, 21), (0, 12)], |table, calls| {
            let anchors = [0, 1].map(|call| table.find(calls[call]).map_or(0, |to| to.0));
            assert!(
                [0, 10, 12].contains(&anchors[0]) && [0, 21].contains(&anchors[1]),
                "{anchors:?}"
            );
        });
    }

    #[test]
    fn a_growing_table_keeps_every_answer() {
        check(100, &[(1, 11), (2, 12)], |table, calls| {
            assert_eq!(table.find(calls[0]), Some(ContextId(10)));
            let last = table.find(calls[2]);
            assert!(last.is_none() || last == Some(ContextId(12)));
        });
    }
}
