//! Per-thread counters: an index from a thread's (context, site) to counters in the log's mapped pages.
//!
//! Counters outlive their thread: the next thread of the same kind takes them over. So programs that start thread
//! after thread neither look up every context again nor fill the log. Threads are of the same kind if their names
//! differ in digits only. While two such threads live, each has counters of its own.
//!
//! The index is a table for Java code (`java_table`) with these entries; context 0: empty.
//!
//! ```text
//! [context, site's low 20 bits << 44 | counter >> 3]
//! ```
//!
//! A context belongs to one method. Its sites are consecutive, so the low bits distinguish them. `shared_layout`
//! names the other words of the table's header. They are the addresses of the transition cache and of recent call
//! paths, the hash shift of each, and the address of the typed sites. One more is the address of the index of
//! counters by type, with entries `[number, type << 44 | counter >> 3]`.
//!
//! Most counters are added by Java code, in the room that these counters offer (`LucceRtPaths.addKnownCounter`). The agent
//! is called if the room is used up, or if an event needs a record of the log or another kind of counter.
//!
//! A frame with a loop keeps a counter in a local variable, with the number of these counters above its address. No
//! number is used again. So Java code knows whether the thread still uses the same ones: after other tags, for example.
//!
//! Java code alone reads and writes the copies of recent transitions, and the recent call paths (`java_caches`).

#![allow(unsafe_code, reason = "cells of the log by their addresses")]

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, Weak};

use lucce_callgraph::ContextId;
use lucce_stream::EventCursor;
use lucce_tracelog::{AllocationCounter, EventCounter, EventTypeId, ThreadId};

use crate::memory::allocation_weight::AllocationWeight;
use crate::memory::java_caches::{RecentPathCache, TransitionCache, TypedSiteCache};
use crate::memory::java_table::{JavaTable, MULTIPLIER};
use crate::memory::locks::WatchedMutex;
pub use crate::memory::shared_layout::LOW_SITE_BITS as SITE_BITS;
use crate::memory::shared_layout::{self as layout, COUNTER_ALIGNMENT_BITS};
use crate::thread::recent_counters::{RecentCatches, RecentCounters};
use crate::thread::tags::TagSet;

/// Bits of a counter's address, without its lowest [`layout::COUNTER_ALIGNMENT_BITS`].
const CELL_BITS: u32 = 64 - SITE_BITS;
const FIRST_ENTRIES: usize = 64;
const FIRST_CELLS: u32 = 16;
const MOST_CELLS: u32 = 4096;
const MOST_ORIGINS: usize = 16;

/// The counters of one thread at a time, and their indices.
pub struct ThreadCounters {
    /// The name of its threads, with `*` for digits.
    pub kind: String,
    /// See [`ThreadCounters::kept_number`].
    number: u64,
    /// The name of the thread that uses these counters.
    pub name: String,
    /// The tags of all of its events.
    pub tags: TagSet,
    pub is_virtual: bool,
    /// The JNI environment of the thread that uses these counters.
    pub env: usize,
    /// The thread id in the log, from the first event on.
    pub id: Option<ThreadId>,
    /// Whether the log has a record that several threads have used these counters.
    pub shared: bool,
    table: CounterIndex,
    transitions: TransitionCache,
    recent_paths: RecentPathCache,
    typed: TypedSiteCache,
    counters: &'static [AllocationCounter],
    next_counter: usize,
    room: Box<CounterRoom>,
    by_type: CounterIndex,
    /// The last block of counters by type.
    event_counters: &'static [EventCounter],
    next_event_counter: usize,
    /// With `stream=on`: the rest of the last thread's block.
    pub place: EventCursor,
    /// Counters of samples, and the remainder of the objects that they represent.
    pub samples: HashMap<ContextId, &'static AllocationCounter, BuildHasherDefault<NumberHasher>>,
    pub weight: AllocationWeight,
    /// Recently used counters of events that the VM reports.
    pub recent: RecentCounters,
    /// Recently used counters of handlers of exceptions.
    pub recent_catches: RecentCatches,
    /// The context that started the current thread, if known.
    pub origin: ContextId,
    /// Origins that are in the log.
    origins: Vec<ContextId>,
    dropped: Arc<DroppedCounters>,
    /// The sweep count of the graph at the last sweep of each table.
    swept: u64,
    swept_types: u64,
    swept_samples: u64,
}

/// Counters that Java code may add to the index by itself: addresses of the next one and of the end.
///
/// ```text
/// the last block: [used | … | next … end | …]     end − next: at most what the index has room for
/// ```
#[repr(C)]
#[derive(Default)]
struct CounterRoom {
    next: AtomicU64,
    end: AtomicU64,
}

const _: () = assert!(offset_of!(CounterRoom, next) == layout::ROOM_NEXT);
const _: () = assert!(offset_of!(CounterRoom, end) == layout::ROOM_END);
const _: () = assert!(size_of::<AllocationCounter>() == layout::COUNTER_SIZE);

/// Counters for events for which the log has no room. Other threads may read their sums.
#[derive(Default)]
struct DroppedCounters {
    counter: AllocationCounter,
    by_type: EventCounter,
}

impl DroppedCounters {
    fn event_count(&self) -> u64 {
        let counts = [&self.counter.count, &self.by_type.count];
        let each = counts.map(|count| u64::from_le(count.load(Ordering::Relaxed)));
        each.iter().sum()
    }
}

impl ThreadCounters {
    pub fn new(kind: String) -> ThreadCounters {
        ThreadCounters {
            kind,
            number: layout::NOT_KEPT >> layout::KEPT_SHIFT,
            name: String::new(),
            tags: TagSet::NONE,
            is_virtual: false,
            env: 0,
            id: None,
            shared: false,
            table: JavaTable::default(),
            transitions: TransitionCache::default(),
            recent_paths: RecentPathCache::default(),
            typed: TypedSiteCache::default(),
            counters: &[],
            next_counter: 0,
            room: Box::default(),
            by_type: CounterIndex::default(),
            event_counters: &[],
            next_event_counter: 0,
            place: EventCursor::default(),
            samples: HashMap::default(),
            weight: AllocationWeight::default(),
            recent: RecentCounters::default(),
            recent_catches: RecentCatches::default(),
            origin: ContextId::UNKNOWN,
            origins: Vec::new(),
            dropped: Arc::default(),
            swept: 0,
            swept_types: 0,
            swept_samples: 0,
        }
    }

    /// The number of these counters, above the bits of a kept counter; [`layout::NOT_KEPT`]: they have none.
    pub fn kept_number(&self) -> u64 {
        self.number << layout::KEPT_SHIFT
    }

    /// The address of the index; 0: none yet.
    pub fn index_address(&self) -> u64 {
        self.table.table_address()
    }

    /// The address of the counter for events at `site` of a frame with this context.
    pub fn find_counter(&self, context: u64, site: u32) -> Option<usize> {
        find_address(&self.table, context, low_bits(site))
    }

    /// The address of the room for counters that Java code adds.
    pub fn room_address(&self) -> u64 {
        std::ptr::from_ref(&*self.room).expose_provenance() as u64
    }

    /// Takes over the counters that Java code has added since [`ThreadCounters::offer_room`].
    fn take_over_added(&mut self) {
        let free = self.counters.get(self.next_counter..).unwrap_or_default();
        let start = free.as_ptr().expose_provenance() as u64;
        // Relaxed, twice: Java code of this thread wrote it.
        let next = self.room.next.load(Ordering::Relaxed);
        let end = self.room.end.swap(0, Ordering::Relaxed);
        self.room.next.store(0, Ordering::Relaxed);
        if end != 0 {
            let added = (next.saturating_sub(start)) as usize / layout::COUNTER_SIZE;
            self.next_counter += added.min(free.len());
            self.table.count_added_entries(added);
        }
    }

    /// Lets Java code add counters, as many as the last block and the index have room for.
    fn offer_room(&mut self) {
        let free = self.counters.get(self.next_counter..).unwrap_or_default();
        let some = free.get(..self.table.free_entries()).unwrap_or(free);
        let bounds = some.as_ptr_range();
        let [next, end] = [bounds.start, bounds.end].map(|at| match some.is_empty() {
            true => 0,
            false => at.expose_provenance() as u64,
        });
        // Relaxed, twice: Java code of this thread reads it.
        self.room.next.store(next, Ordering::Relaxed);
        self.room.end.store(end, Ordering::Relaxed);
    }

    /// Adds a counter. Each context and site may be added once.
    pub fn insert_counter(&mut self, context: u64, site: u32, cell: usize) {
        self.take_over_added();
        insert_address(&mut self.table, context, low_bits(site), cell);
        self.table
            .set_owner_word(layout::INDEX_BY_TYPE, self.by_type.table_address());
        if self.transitions.grow_for(self.table.byte_count()) {
            let (address, shift) = (
                self.transitions.first_line_address(),
                self.transitions.hash_shift(),
            );
            self.table
                .set_owner_word(layout::INDEX_TRANSITIONS, address);
            self.table
                .set_owner_word(layout::INDEX_TRANSITIONS_SHIFT, shift);
        }
        if self.recent_paths.grow_for(self.table.byte_count()) {
            self.table
                .set_owner_word(layout::INDEX_PATHS, self.recent_paths.first_line_address());
            self.table
                .set_owner_word(layout::INDEX_PATHS_SHIFT, self.recent_paths.hash_shift());
        }
        if self.typed.grow_for(self.table.byte_count()) {
            let typed = self.typed.address_and_bits();
            self.table.set_owner_word(layout::INDEX_TYPED, typed);
        }
        self.offer_room();
    }

    /// A counter for a new context. `more` adds a block of counters to the log. `None`: the log is full.
    pub fn next_counter(
        &mut self,
        number: ContextId,
        more: impl FnOnce(u32) -> Option<&'static [AllocationCounter]>,
    ) -> Option<&'static AllocationCounter> {
        self.take_over_added();
        let have = self.counters.len();
        if self.next_counter >= have {
            let want = (have as u32 * 2).clamp(FIRST_CELLS, MOST_CELLS);
            self.counters = more(want).unwrap_or_default();
            self.next_counter = 0;
        }
        let cell = self.counters.get(self.next_counter)?;
        cell.claim(number);
        self.next_counter += 1;
        Some(cell)
    }

    /// The counter of a context and a type. `more` adds a block to the log. `None`: the log is full.
    pub fn event_counter(
        &mut self,
        number: ContextId,
        event: EventTypeId,
        more: impl FnOnce(u32) -> Option<&'static [EventCounter]>,
    ) -> Option<&'static EventCounter> {
        let Some(known) = find_address(&self.by_type, number.0, event.0.into()) else {
            return self.new_event_counter(number, event, more);
        };
        // SAFETY: only `new_event_counter()` has put it there, a counter that stays for good.
        Some(unsafe { &*std::ptr::with_exposed_provenance(known) })
    }

    fn new_event_counter(
        &mut self,
        number: ContextId,
        event: EventTypeId,
        more: impl FnOnce(u32) -> Option<&'static [EventCounter]>,
    ) -> Option<&'static EventCounter> {
        let have = self.event_counters.len();
        if self.next_event_counter >= have {
            let want = (have as u32 * 2).clamp(FIRST_CELLS, MOST_CELLS);
            self.event_counters = more(want)?;
            self.next_event_counter = 0;
        }
        let cell = self.event_counters.get(self.next_event_counter)?;
        cell.claim(number, event);
        self.next_event_counter += 1;
        insert_address(
            &mut self.by_type,
            number.0,
            event.0.into(),
            counter_address(cell),
        );
        self.table
            .set_owner_word(layout::INDEX_BY_TYPE, self.by_type.table_address());
        Some(cell)
    }

    /// Visits all counters of the index of contexts, counters of dropped events included: address and words. Some are
    /// counters by type.
    pub fn for_each_counter(&self, mut each: impl FnMut(usize, [u64; COUNTER_WORDS])) {
        self.table.for_each_entry(|[_, at]| {
            each(address_from_entry(at), load_words(address_from_entry(at)))
        });
    }

    /// Visits all counters by type: address and words.
    pub fn for_each_event_counter(&self, mut each: impl FnMut(usize, [u64; EVENT_COUNTER_WORDS])) {
        self.by_type.for_each_entry(|[_, at]| {
            each(address_from_entry(at), load_words(address_from_entry(at)))
        });
    }

    /// The counter of dropped events. Java code may keep its address as long as these counters exist.
    pub fn dropped_counter(&self) -> &AllocationCounter {
        &self.dropped.counter
    }

    /// The counter of dropped events that have a type.
    pub fn dropped_event_counter(&self) -> &EventCounter {
        &self.dropped.by_type
    }

    /// The context that started the thread, if the log does not have it for these counters yet. A reader needs at
    /// most two contexts to see that there are several.
    pub fn take_new_origin(&mut self) -> Option<ContextId> {
        let is_new = self.origin != ContextId::UNKNOWN
            && self.origins.len() < MOST_ORIGINS
            && !self.origins.contains(&self.origin);
        is_new.then(|| {
            self.origins.push(self.origin);
            self.origin
        })
    }

    /// Removes the counters of numbers that left the graph, for which `living` returns false, before the index grows.
    /// They stay in the log. `sweeps`: the graph's sweep count. The caller must publish the index's address to Java
    /// code.
    pub fn sweep_index(&mut self, sweeps: u64, living: impl FnOnce(&[ContextId]) -> Vec<bool>) {
        self.take_over_added();
        if sweeps != self.swept && self.table.is_full() {
            self.swept = sweeps;
            retain_living(&mut self.table, living);
        }
    }

    /// Like [`ThreadCounters::sweep_index`], for counters by type. Java code finds their index by itself.
    pub fn sweep_types(&mut self, sweeps: u64, living: impl FnOnce(&[ContextId]) -> Vec<bool>) {
        if sweeps != self.swept_types && self.by_type.is_full() {
            self.swept_types = sweeps;
            retain_living(&mut self.by_type, living);
            self.table
                .set_owner_word(layout::INDEX_BY_TYPE, self.by_type.table_address());
        }
    }

    /// Like [`ThreadCounters::sweep_index`], for samples.
    pub fn sweep_samples(&mut self, sweeps: u64, living: impl FnOnce(&[ContextId]) -> Vec<bool>) {
        if sweeps != self.swept_samples && self.samples.len() == self.samples.capacity() {
            self.swept_samples = sweeps;
            let numbers: Vec<_> = self.samples.keys().copied().collect();
            for (number, lives) in numbers.iter().zip(living(&numbers)) {
                if !lives {
                    self.samples.remove(number);
                }
            }
        }
    }

    /// The number of events for which there was no room.
    pub fn dropped_events(&self) -> u64 {
        self.dropped.event_count()
    }
}

/// The address of a counter, for Java code.
pub fn counter_address<C>(cell: &C) -> usize {
    std::ptr::from_ref(cell).expose_provenance()
}

/// Addresses of counters by two numbers, of which the second has few bits.
type CounterIndex = JavaTable<{ layout::entry_words(layout::INDEX_ENTRY_BITS) }, FIRST_ENTRIES>;

fn find_address(index: &CounterIndex, context: u64, low: u64) -> Option<usize> {
    let is = |[known, at]: &[u64; 2]| *known == context && at >> CELL_BITS == low;
    let [_, at] = index.find_entry(hash_key(context, low), is)?;
    Some(address_from_entry(at))
}

fn retain_living(index: &mut CounterIndex, living: impl FnOnce(&[ContextId]) -> Vec<bool>) {
    index.retain(
        |entries| {
            let numbers = entries
                .iter()
                .map(|[_, at]| number_at(address_from_entry(*at)));
            living(&numbers.collect::<Vec<_>>())
        },
        |[context, at]| hash_key(*context, at >> CELL_BITS),
    );
}

/// The counter's address from an entry's second word.
fn address_from_entry(at: u64) -> usize {
    ((at << SITE_BITS) >> (SITE_BITS - COUNTER_ALIGNMENT_BITS)) as usize
}

/// The context id of a counter: the first word of both kinds.
fn number_at(cell: usize) -> ContextId {
    let [number] = load_words(cell);
    ContextId(number)
}

// Offsets at which Java code counts.
const _: () = assert!(offset_of!(AllocationCounter, id) == layout::COUNTER_CONTEXT);
const _: () = assert!(offset_of!(AllocationCounter, count) == layout::COUNTER_COUNT);
const _: () = assert!(offset_of!(AllocationCounter, bytes) == layout::COUNTER_BYTES);
const _: () = assert!(offset_of!(EventCounter, id) == layout::COUNTER_CONTEXT);
const _: () = assert!(EventCounter::TYPE_AT == layout::EVENT_COUNTER_TYPE);
const _: () = assert!(offset_of!(EventCounter, count) == layout::EVENT_COUNTER_COUNT);
const _: () = assert!(offset_of!(EventCounter, value) == layout::EVENT_COUNTER_VALUE);

/// Words of a counter, and of a counter by type.
pub const COUNTER_WORDS: usize = size_of::<AllocationCounter>() / 8;
pub const EVENT_COUNTER_WORDS: usize = size_of::<EventCounter>() / 8;

/// The first words of a counter from an index: at most [`COUNTER_WORDS`], or [`EVENT_COUNTER_WORDS`] of a counter by
/// type.
fn load_words<const N: usize>(cell: usize) -> [u64; N] {
    // SAFETY: `insert_address()` was given them: counters of the log, or the thread's own of dropped events; they
    // have N words.
    let words = unsafe { &*std::ptr::with_exposed_provenance::<[AtomicU64; N]>(cell) };
    // Relaxed: read by the thread that counts in them.
    words
        .each_ref()
        .map(|word| u64::from_le(word.load(Ordering::Relaxed)))
}

fn insert_address(index: &mut CounterIndex, context: u64, low: u64, cell: usize) {
    let entry = [
        context,
        low << CELL_BITS | cell as u64 >> COUNTER_ALIGNMENT_BITS,
    ];
    let hash = |[context, at]: &[u64; 2]| hash_key(*context, at >> CELL_BITS);
    index.insert_entry(entry, hash, |_| false);
}

/// A hash for keys of two numbers. No user chooses them, so it need not withstand chosen keys.
#[derive(Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        // The hash table uses the low bits for the slot and the high bits for its comparison.
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(MULTIPLIER);
    }
}

/// Counters that no thread uses now, by tags and kind, and the dropped events of all counters.
#[derive(Default)]
pub struct ThreadCounterPool {
    free: WatchedMutex<HashMap<TagSet, HashMap<String, Vec<ThreadCounters>>>>,
    dropped: WatchedMutex<DroppedTotals>,
    /// The number of the last counters.
    last_number: AtomicU64,
}

#[derive(Default)]
struct DroppedTotals {
    /// Of counters that exist.
    live: Vec<Weak<DroppedCounters>>,
    /// Of discarded counters.
    ended: u64,
}

impl ThreadCounterPool {
    /// Takes counters for a thread of this name.
    pub fn take_for_thread(&self, name: String) -> ThreadCounters {
        let kind = thread_kind(&name);
        let mut counters = self.take_free(TagSet::NONE, &kind);
        counters.name = name;
        counters
    }

    /// Takes counters for events under these tags, of threads of this kind.
    pub fn take_free(&self, tags: TagSet, kind: &str) -> ThreadCounters {
        let mut free = lock_mutex(&self.free);
        let of_kind = free.get_mut(&tags).and_then(|of| of.get_mut(kind));
        let counters = of_kind.and_then(Vec::pop);
        drop(free);
        counters.unwrap_or_else(|| {
            let mut counters = self.create_counters(kind.to_owned());
            counters.tags = tags;
            counters
        })
    }

    fn create_counters(&self, kind: String) -> ThreadCounters {
        let mut counters = ThreadCounters::new(kind);
        counters.number = self.next_number();
        let mut lost = lock_mutex(&self.dropped);
        // Discarded counters leave the list when it would grow.
        if lost.live.len() == lost.live.capacity() {
            lost.live.retain(|losses| losses.strong_count() > 0);
        }
        lost.live.push(Arc::downgrade(&counters.dropped));
        counters
    }

    /// A number that no counters have had, or that of counters without one.
    fn next_number(&self) -> u64 {
        const NONE: u64 = layout::NOT_KEPT >> layout::KEPT_SHIFT;
        // Relaxed: each thread gets another number, and nothing else depends on it.
        let last = self
            .last_number
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
                (last + 1 < NONE).then_some(last + 1)
            });
        last.map_or(NONE, |last| last + 1)
    }

    /// Discards counters that no other thread can use.
    pub fn discard_counters(&self, counters: ThreadCounters) {
        let mut lost = lock_mutex(&self.dropped);
        lost.ended += counters.dropped_events();
        drop(counters);
    }

    /// Returns the counters of an ended thread for the next thread of its kind.
    pub fn return_counters(&self, counters: ThreadCounters) {
        let mut free = lock_mutex(&self.free);
        let by_kind = free.entry(counters.tags).or_default();
        match by_kind.get_mut(&counters.kind) {
            Some(known) => known.push(counters),
            None => {
                by_kind.insert(counters.kind.clone(), vec![counters]);
            }
        }
    }

    /// The number of events of all threads for which there was no room.
    pub fn dropped_events(&self) -> u64 {
        let lost = lock_mutex(&self.dropped);
        let live = lost.live.iter().filter_map(Weak::upgrade);
        lost.ended + live.map(|losses| losses.event_count()).sum::<u64>()
    }
}

fn lock_mutex<T>(mutex: &WatchedMutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// A site's low bits suffice for the hash.
fn hash_key(context: u64, low_bits: u64) -> u64 {
    (context ^ low_bits << CELL_BITS).wrapping_mul(MULTIPLIER)
}

fn low_bits(site: u32) -> u64 {
    u64::from(site) & ((1 << SITE_BITS) - 1)
}

/// A name with one `*` for each sequence of digits.
pub fn thread_kind(name: &str) -> String {
    let mut kind = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '0'..='9' if kind.ends_with('*') => {}
            '0'..='9' => kind.push('*'),
            other => kind.push(other),
        }
    }
    kind
}

#[cfg(test)]
mod thread_counters_tests {
    use super::*;

    #[test]
    fn every_entry_is_found_while_the_index_grows() {
        let mut counters = ThreadCounters::new(String::new());
        assert_eq!(
            (counters.index_address(), counters.find_counter(1, 1)),
            (0, None)
        );
        // The largest address that a program can have.
        let cell = |n: u64| ((1 << 47) - 8 * n) as usize;
        for n in 1..2000_u64 {
            counters.insert_counter(
                n / 3 * 0x1_0000_0001 + 1,
                (n % 3) as u32 + (1 << 27),
                cell(n),
            );
            for known in (1..=n).step_by(97) {
                let (context, site) = (known / 3 * 0x1_0000_0001 + 1, (known % 3) as u32);
                assert_eq!(
                    counters.find_counter(context, site + (1 << 27)),
                    Some(cell(known))
                );
            }
        }
        assert_eq!(counters.find_counter(5, 5), None);
    }

    /// The word at an address that Java code uses.
    fn word_at(address: u64) -> &'static AtomicU64 {
        // SAFETY: a word of the room, of a counter or of the index, all of which live as long as the test uses them.
        unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(address as usize)) }
    }

    /// Adds a counter as `LucceRtPaths.addKnownCounter` does. `None`: there is no room.
    fn add_as_java_code(counters: &ThreadCounters, (context, site): (u64, u32)) -> Option<usize> {
        let load = |address: u64| word_at(address).load(Ordering::Relaxed);
        let store = |address: u64, value: u64| word_at(address).store(value, Ordering::Relaxed);
        let room = counters.room_address();
        let counter = load(room + layout::ROOM_NEXT as u64);
        if counter == load(room + layout::ROOM_END as u64) {
            return None;
        }
        let after = counter + layout::COUNTER_SIZE as u64;
        store(room + layout::ROOM_NEXT as u64, after);
        store(counter, context + 1);
        let index = counters.index_address();
        let [shift, mask] = [0, 8].map(|at| load(index + at));
        let mut slot = hash_key(context, low_bits(site)) >> shift;
        while load(index + 64 + slot * 16) != 0 {
            slot = (slot + 1) & mask;
        }
        let at = low_bits(site) << CELL_BITS | counter >> COUNTER_ALIGNMENT_BITS;
        store(index + 64 + slot * 16 + 8, at);
        store(index + 64 + slot * 16, context);
        Some(counter as usize)
    }

    #[test]
    fn counters_that_java_code_adds_are_the_agents_too() {
        let path = std::env::temp_dir().join(format!("lucce-room-{}", std::process::id()));
        let mut log = lucce_tracelog::LogWriter::create(&path, &Default::default()).unwrap();
        let mut counters = ThreadCounters::new(String::new());
        let key = |n: u64| (n / 3 * 0x1_0000_0001 + 1, (n % 3) as u32 + (1 << 27));
        let mut cells = Vec::new();
        let mut by_agent = 0;
        for n in 0..20_000_u64 {
            let (context, site) = key(n);
            let cell = add_as_java_code(&counters, (context, site)).unwrap_or_else(|| {
                by_agent += 1;
                counters.sweep_index(by_agent, |numbers| vec![true; numbers.len()]);
                let cell = counters.next_counter(ContextId(context + 1), |cells| {
                    let block = log.add_counters(ThreadId(1), cells).unwrap();
                    let block = Box::leak(Box::new(block));
                    // SAFETY: it is never dropped.
                    Some(unsafe { block.as_static() })
                });
                let cell = counter_address(cell.unwrap());
                counters.insert_counter(context, site, cell);
                cell
            });
            cells.push(cell);
            // The index keeps an eighth of its entries empty; four more have the size of the words before them.
            let entries = counters.table.byte_count() / 16 - 4;
            assert!(cells.len() * 8 <= entries * 7);
        }
        for (n, cell) in (0..).zip(&cells) {
            let (context, site) = key(n);
            assert_eq!(counters.find_counter(context, site), Some(*cell));
            assert_eq!(number_at(*cell), ContextId(context + 1));
        }
        let mut different = cells.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), cells.len());
        // The agent is called for each block of counters, and for each larger index.
        assert!((10..40).contains(&by_agent), "{by_agent}");
        let mut visited = 0;
        counters.for_each_counter(|_, _| visited += 1);
        assert_eq!(visited, cells.len());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn without_room_in_the_log_events_are_counted_as_lost() {
        let pool = ThreadCounterPool::default();
        let mut counters = pool.take_for_thread("main".into());
        assert!(counters.next_counter(ContextId(1), |_| None).is_none());
        counters.dropped_counter().add_events(3, 0);
        counters.dropped_event_counter().count_event(1);
        assert_eq!((counters.dropped_events(), pool.dropped_events()), (4, 4));
        pool.discard_counters(counters);
        assert_eq!(pool.dropped_events(), 4);
        let again = pool.take_for_thread("main".into());
        again.dropped_counter().add_events(1, 0);
        pool.return_counters(again);
        assert_eq!(pool.dropped_events(), 5);
    }

    #[test]
    fn a_kept_counter_fits_its_own_counters_alone() {
        let pool = ThreadCounterPool::default();
        let first = pool.take_for_thread("worker-1".into());
        let number = first.kept_number();
        let second = pool.take_for_thread("worker-2".into());
        assert_ne!(number, second.kept_number());
        // The counters remain the same ones in the next thread.
        pool.return_counters(first);
        assert_eq!(
            pool.take_for_thread("worker-3".into()).kept_number(),
            number
        );
        // As Java code compares: what is kept less the number is an address, or has higher bits.
        let fits = |kept: u64, number: u64| kept.wrapping_sub(number) >> layout::KEPT_SHIFT == 0;
        let kept = number + (((1 << 47) - 8) >> COUNTER_ALIGNMENT_BITS);
        assert!(fits(kept, number));
        for other in [second.kept_number(), layout::NOT_KEPT] {
            assert!(!fits(kept, other) && !fits(0, other), "{other:x}");
        }
        assert!(!fits(0, number));
        // At the end of the numbers there are none for further counters.
        let last = (layout::NOT_KEPT >> layout::KEPT_SHIFT) - 2;
        pool.last_number.store(last, Ordering::Relaxed);
        let numbers = [0; 3].map(|_| pool.create_counters(String::new()).kept_number());
        assert!(numbers[0] < layout::NOT_KEPT);
        assert_eq!(numbers[1..], [layout::NOT_KEPT; 2]);
    }

    #[test]
    fn each_context_and_type_has_a_cell_of_its_own() {
        let folder =
            std::env::temp_dir().join(format!("lucce-thread-counters-{}", std::process::id()));
        let mut log = lucce_tracelog::LogWriter::create(&folder, &Default::default()).unwrap();
        let mut counters = ThreadCounters::new(String::new());
        for round in 1..4 {
            for n in 1..500_u64 {
                for event in 1..3 {
                    let key = (ContextId(n << 32), EventTypeId(event));
                    let cell = counters.event_counter(key.0, key.1, |cells| {
                        assert_eq!(round, 1, "known cells need no room");
                        let block = log.add_event_counters(ThreadId(1), cells).unwrap();
                        let block = Box::leak(Box::new(block));
                        // SAFETY: it is never dropped.
                        Some(unsafe { block.as_static() })
                    });
                    let cell = cell.unwrap();
                    assert_eq!((cell.id(), cell.event_type()), key);
                    cell.count_event(n);
                    let value = u64::from_le(cell.value.load(Ordering::Relaxed));
                    assert_eq!(value, n * round);
                }
            }
        }
        let none = counters.event_counter(ContextId(1), EventTypeId(9), |_| None);
        assert!(none.is_some(), "a block has room left");
        std::fs::remove_file(folder).unwrap();
    }

    #[test]
    fn a_thread_takes_over_the_counters_of_an_ended_thread_of_its_kind() {
        let pool = ThreadCounterPool::default();
        let mut first = pool.take_for_thread("pool-1-thread-1".into());
        assert_eq!(first.kind, "pool-*-thread-*");
        first.insert_counter(7, 1, 72);
        // While the first thread lives, the second one has counters of its own.
        let second = pool.take_for_thread("pool-1-thread-2".into());
        assert_eq!(second.find_counter(7, 1), None);
        pool.return_counters(first);
        assert_eq!(pool.take_for_thread("main".into()).find_counter(7, 1), None);
        assert_eq!(
            pool.take_for_thread("pool-12-thread-3".into())
                .find_counter(7, 1),
            Some(72)
        );
        assert_eq!(
            pool.take_for_thread("pool-12-thread-4".into())
                .find_counter(7, 1),
            None
        );
    }
}
