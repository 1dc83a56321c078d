//! A thread's events: an index of its contexts and their cells in the log.
//!
//! A lane outlives its thread: the next thread of the same kind goes on with it, so that programs
//! that start thread after thread neither look every context up again nor fill the log. Threads are
//! of one kind if their names differ in digits only. While two of them live, each has its own lane.
//!
//! The index is a table for Java code (`java_table`) of entries `[context, site's low 20 bits << 44 | cell >> 3]`;
//! context 0: empty. A context is that of one method, whose sites follow each other, so the low bits tell
//! them apart. The header's other words, which `shared_layout` names, say where the copies are, where the lines are, how
//! far to shift the hash of either, where the index of cells by type is, of entries
//! `[number, type << 44 | cell >> 3]`, and where the typed sites are.
//!
//! Copies of the transitions that the thread took lately are Java code's own: it reads and writes them. So
//! are the lines, copies of the ways that lately led to an event (`ways`).

#![allow(unsafe_code, reason = "cells of the log by their addresses")]

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, Weak};

use lucce_callgraph::ContextId;
use lucce_stream::Place;
use lucce_tracelog::{Cell, EventCell, EventTypeId, ThreadId};

use crate::memory::copies::{Transitions, TypedSites, Ways};
use crate::memory::java_table::{JavaTable, MULTIPLIER};
use crate::memory::locks::WatchedMutex;
pub use crate::memory::shared_layout::LOW_SITE_BITS as SITE_BITS;
use crate::memory::shared_layout::{self as layout, CELL_ALIGNMENT_BITS};
use crate::memory::weight::Weight;
use crate::thread::recent::RecentCells;
use crate::thread::tags::TagSet;

/// Of the address of a cell, without [`layout::CELL_ALIGNMENT_BITS`].
const CELL_BITS: u32 = 64 - SITE_BITS;
const FIRST_ENTRIES: usize = 64;
const FIRST_CELLS: u32 = 16;
const MOST_CELLS: u32 = 4096;
const MOST_ORIGINS: usize = 16;

pub struct Lane {
    /// What its threads are called, with `*` for digits.
    pub kind: String,
    /// The thread that has it.
    pub name: String,
    /// Under which all of its events happened.
    pub tags: TagSet,
    pub is_virtual: bool,
    /// The environment of the thread that has it.
    pub env: usize,
    /// Known to the log from its first event on.
    pub id: Option<ThreadId>,
    /// The log knows that several threads have used it.
    pub shared: bool,
    table: Index,
    transitions: Transitions,
    ways: Ways,
    typed: TypedSites,
    cells: &'static [Cell],
    next_cell: usize,
    by_type: Index,
    /// The last ones of those that it was given.
    event_cells: &'static [EventCell],
    next_event_cell: usize,
    /// With `record=stream`: what the last thread's block has left.
    pub place: Place,
    /// Cells of samples, and what is left of the objects that those stand for.
    pub samples: HashMap<ContextId, &'static Cell, BuildHasherDefault<Mixer>>,
    pub weight: Weight,
    /// Of what the VM told of.
    pub recent: RecentCells,
    /// The context that started its thread, if one is known.
    pub origin: ContextId,
    /// Those that the log knows.
    origins: Vec<ContextId>,
    losses: Arc<Losses>,
    /// How often something had left the graph when they were swept last.
    swept: u64,
    swept_types: u64,
    swept_samples: u64,
}

/// Where events are counted for which the log has no room, as if it had some: other threads may ask how many those are.
#[derive(Default)]
struct Losses {
    cell: Cell,
    by_type: EventCell,
}

impl Losses {
    fn count(&self) -> u64 {
        let counts = [&self.cell.count, &self.by_type.count];
        let each = counts.map(|count| u64::from_le(count.load(Ordering::Relaxed)));
        each.iter().sum()
    }
}

impl Lane {
    pub fn new(kind: String) -> Lane {
        Lane {
            kind,
            name: String::new(),
            tags: TagSet::NONE,
            is_virtual: false,
            env: 0,
            id: None,
            shared: false,
            table: JavaTable::default(),
            transitions: Transitions::default(),
            ways: Ways::default(),
            typed: TypedSites::default(),
            cells: &[],
            next_cell: 0,
            by_type: Index::default(),
            event_cells: &[],
            next_event_cell: 0,
            place: Place::default(),
            samples: HashMap::default(),
            weight: Weight::default(),
            recent: RecentCells::default(),
            origin: ContextId::UNKNOWN,
            origins: Vec::new(),
            losses: Arc::default(),
            swept: 0,
            swept_types: 0,
            swept_samples: 0,
        }
    }

    /// Where the index is; 0: there is none yet.
    pub fn index(&self) -> u64 {
        self.table.address()
    }

    /// The address of the cell for events at `site` of a frame with this context.
    pub fn find(&self, context: u64, site: u32) -> Option<usize> {
        find(&self.table, context, low_bits(site))
    }

    /// Contexts and sites come once.
    pub fn insert(&mut self, context: u64, site: u32, cell: usize) {
        put(&mut self.table, context, low_bits(site), cell);
        self.table
            .set(layout::INDEX_BY_TYPE, self.by_type.address());
        if self.transitions.grow_for(self.table.bytes()) {
            let (address, shift) = (self.transitions.address(), self.transitions.shift());
            self.table.set(layout::INDEX_TRANSITIONS, address);
            self.table.set(layout::INDEX_TRANSITIONS_SHIFT, shift);
        }
        if self.ways.grow_for(self.table.bytes()) {
            self.table.set(layout::INDEX_WAYS, self.ways.address());
            self.table.set(layout::INDEX_WAYS_SHIFT, self.ways.shift());
        }
        if self.typed.grow_for(self.table.bytes()) {
            let typed = self.typed.address_and_bits();
            self.table.set(layout::INDEX_TYPED, typed);
        }
    }

    /// A cell for the next context. `more` gets new ones; `None`: there is no room.
    pub fn cell(
        &mut self,
        number: ContextId,
        more: impl FnOnce(u32) -> Option<&'static [Cell]>,
    ) -> Option<&'static Cell> {
        let have = self.cells.len();
        if self.next_cell >= have {
            let want = (have as u32 * 2).clamp(FIRST_CELLS, MOST_CELLS);
            self.cells = more(want).unwrap_or_default();
            self.next_cell = 0;
        }
        let cell = self.cells.get(self.next_cell)?;
        cell.claim(number);
        self.next_cell += 1;
        Some(cell)
    }

    /// The cell of a context and a type. `more` gets new ones; `None`: it has none.
    pub fn event_cell(
        &mut self,
        number: ContextId,
        event: EventTypeId,
        more: impl FnOnce(u32) -> Option<&'static [EventCell]>,
    ) -> Option<&'static EventCell> {
        let Some(known) = find(&self.by_type, number.0, event.0.into()) else {
            return self.new_event_cell(number, event, more);
        };
        // SAFETY: what new_event_cell() alone has put there, a cell that stays for good.
        Some(unsafe { &*std::ptr::with_exposed_provenance(known) })
    }

    fn new_event_cell(
        &mut self,
        number: ContextId,
        event: EventTypeId,
        more: impl FnOnce(u32) -> Option<&'static [EventCell]>,
    ) -> Option<&'static EventCell> {
        let have = self.event_cells.len();
        if self.next_event_cell >= have {
            let want = (have as u32 * 2).clamp(FIRST_CELLS, MOST_CELLS);
            self.event_cells = more(want)?;
            self.next_event_cell = 0;
        }
        let cell = self.event_cells.get(self.next_event_cell)?;
        cell.claim(number, event);
        self.next_event_cell += 1;
        put(
            &mut self.by_type,
            number.0,
            event.0.into(),
            address_of(cell),
        );
        self.table
            .set(layout::INDEX_BY_TYPE, self.by_type.address());
        Some(cell)
    }

    /// All cells of the index of contexts, those for losses too: where each is, and its words. Some are cells by type.
    pub fn each_cell(&self, mut each: impl FnMut(usize, [u64; CELL])) {
        self.table
            .each(|[_, at]| each(address(at), words_at(address(at))));
    }

    /// All cells by type.
    pub fn each_event_cell(&self, mut each: impl FnMut(usize, [u64; EVENT_CELL])) {
        self.by_type
            .each(|[_, at]| each(address(at), words_at(address(at))));
    }

    /// Where events are counted as lost. Java code may have its address as long as the lane.
    pub fn lost_cell(&self) -> &Cell {
        &self.losses.cell
    }

    /// Where events of a type are counted as lost.
    pub fn lost_event_cell(&self) -> &EventCell {
        &self.losses.by_type
    }

    /// The context that started the thread, if the log does not know it of this lane yet. Of many
    /// contexts a reader needs two to know that there are several.
    pub fn new_origin(&mut self) -> Option<ContextId> {
        let is_new = self.origin != ContextId::UNKNOWN
            && self.origins.len() < MOST_ORIGINS
            && !self.origins.contains(&self.origin);
        is_new.then(|| {
            self.origins.push(self.origin);
            self.origin
        })
    }

    /// Before the index grows, it forgets the cells of numbers that have left the graph, of those that `living` says no
    /// of: they stay in the log. `sweeps`: how often some have left. Java code must be told the index's address.
    pub fn sweep(&mut self, sweeps: u64, living: impl FnOnce(&[ContextId]) -> Vec<bool>) {
        if sweeps != self.swept && self.table.is_full() {
            self.swept = sweeps;
            sweep(&mut self.table, living);
        }
    }

    /// As `sweep`, of cells by type, whose index Java code finds by itself.
    pub fn sweep_types(&mut self, sweeps: u64, living: impl FnOnce(&[ContextId]) -> Vec<bool>) {
        if sweeps != self.swept_types && self.by_type.is_full() {
            self.swept_types = sweeps;
            sweep(&mut self.by_type, living);
            self.table
                .set(layout::INDEX_BY_TYPE, self.by_type.address());
        }
    }

    /// As `sweep`, of samples.
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

    /// Events that were counted while there was no room.
    pub fn lost(&self) -> u64 {
        self.losses.count()
    }
}

/// For Java code.
pub fn address_of<C>(cell: &C) -> usize {
    std::ptr::from_ref(cell).expose_provenance()
}

/// Where cells are, by two numbers of which the second has few bits.
type Index = JavaTable<{ layout::words(layout::INDEX_ENTRY_BITS) }, FIRST_ENTRIES>;

fn find(index: &Index, context: u64, low: u64) -> Option<usize> {
    let is = |[known, at]: &[u64; 2]| *known == context && at >> CELL_BITS == low;
    let [_, at] = index.find(hash(context, low), is)?;
    Some(address(at))
}

fn sweep(index: &mut Index, living: impl FnOnce(&[ContextId]) -> Vec<bool>) {
    index.retain(
        |entries| {
            let numbers = entries.iter().map(|[_, at]| number_at(address(*at)));
            living(&numbers.collect::<Vec<_>>())
        },
        |[context, at]| hash(*context, at >> CELL_BITS),
    );
}

/// Of the cell in an entry's second word.
fn address(at: u64) -> usize {
    ((at << SITE_BITS) >> (SITE_BITS - CELL_ALIGNMENT_BITS)) as usize
}

/// What a cell counts for: the first word of cells of both kinds.
fn number_at(cell: usize) -> ContextId {
    let [number] = words_at(cell);
    ContextId(number)
}

// Where Java code counts.
const _: () = assert!(offset_of!(Cell, id) == layout::CELL_NUMBER);
const _: () = assert!(offset_of!(Cell, count) == layout::CELL_COUNT);
const _: () = assert!(offset_of!(Cell, bytes) == layout::CELL_BYTES);
const _: () = assert!(offset_of!(EventCell, id) == layout::CELL_NUMBER);
const _: () = assert!(EventCell::TYPE_AT == layout::EVENT_CELL_TYPE);
const _: () = assert!(offset_of!(EventCell, count) == layout::EVENT_CELL_COUNT);
const _: () = assert!(offset_of!(EventCell, value) == layout::EVENT_CELL_VALUE);

/// Words of a cell, and of one by type.
pub const CELL: usize = size_of::<Cell>() / 8;
pub const EVENT_CELL: usize = size_of::<EventCell>() / 8;

/// The first words of a cell that an index has: of any one up to [`CELL`], of one by type up to [`EVENT_CELL`].
fn words_at<const N: usize>(cell: usize) -> [u64; N] {
    // SAFETY: what put() was given: cells of the log, or the lane's own for losses; they have so many words.
    let words = unsafe { &*std::ptr::with_exposed_provenance::<[AtomicU64; N]>(cell) };
    // Relaxed: asked by the thread that counts in them.
    words
        .each_ref()
        .map(|word| u64::from_le(word.load(Ordering::Relaxed)))
}

fn put(index: &mut Index, context: u64, low: u64, cell: usize) {
    let entry = [
        context,
        low << CELL_BITS | cell as u64 >> CELL_ALIGNMENT_BITS,
    ];
    let hash = |[context, at]: &[u64; 2]| hash(*context, at >> CELL_BITS);
    index.put(entry, hash, |_| false);
}

/// For keys of two numbers that no user chooses: the hash need not withstand chosen keys.
#[derive(Default)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        // The table takes its slot from the low bits, and what else it compares from the high ones.
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

/// Lanes that no thread has now, by tags and kind, and what all lanes have lost.
#[derive(Default)]
pub struct Lanes {
    free: WatchedMutex<HashMap<TagSet, HashMap<String, Vec<Lane>>>>,
    lost: WatchedMutex<Lost>,
}

#[derive(Default)]
struct Lost {
    /// Of the lanes that there are.
    lanes: Vec<Weak<Losses>>,
    /// Of others.
    ended: u64,
}

impl Lanes {
    /// A lane for a thread of this name.
    pub fn take(&self, name: String) -> Lane {
        let kind = kind(&name);
        let mut lane = self.free(TagSet::NONE, &kind);
        lane.name = name;
        lane
    }

    /// A lane for events under these tags, of threads of this kind.
    pub fn free(&self, tags: TagSet, kind: &str) -> Lane {
        let mut free = lock(&self.free);
        let of_kind = free.get_mut(&tags).and_then(|of| of.get_mut(kind));
        let found = of_kind.and_then(Vec::pop);
        drop(free);
        found.unwrap_or_else(|| {
            let mut lane = self.begin(kind.to_owned());
            lane.tags = tags;
            lane
        })
    }

    fn begin(&self, kind: String) -> Lane {
        let lane = Lane::new(kind);
        let mut lost = lock(&self.lost);
        // Those that have ended go when the list would grow.
        if lost.lanes.len() == lost.lanes.capacity() {
            lost.lanes.retain(|losses| losses.strong_count() > 0);
        }
        lost.lanes.push(Arc::downgrade(&lane.losses));
        lane
    }

    /// No other thread will have it.
    pub fn end(&self, lane: Lane) {
        let mut lost = lock(&self.lost);
        lost.ended += lane.lost();
        drop(lane);
    }

    pub fn give(&self, lane: Lane) {
        let mut free = lock(&self.free);
        let lanes = free.entry(lane.tags).or_default();
        match lanes.get_mut(&lane.kind) {
            Some(known) => known.push(lane),
            None => {
                lanes.insert(lane.kind.clone(), vec![lane]);
            }
        }
    }

    /// Events for which there was no room, of all threads.
    pub fn lost(&self) -> u64 {
        let lost = lock(&self.lost);
        let lanes = lost.lanes.iter().filter_map(Weak::upgrade);
        lost.ended + lanes.map(|losses| losses.count()).sum::<u64>()
    }
}

fn lock<T>(mutex: &WatchedMutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// The low bits of a site are enough to tell where it goes.
fn hash(context: u64, low_bits: u64) -> u64 {
    (context ^ low_bits << CELL_BITS).wrapping_mul(MULTIPLIER)
}

fn low_bits(site: u32) -> u64 {
    u64::from(site) & ((1 << SITE_BITS) - 1)
}

/// A name with one `*` for each row of digits.
pub fn kind(name: &str) -> String {
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
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_found_while_the_index_grows() {
        let mut lane = Lane::new(String::new());
        assert_eq!((lane.index(), lane.find(1, 1)), (0, None));
        // The largest address that a program can have.
        let cell = |n: u64| ((1 << 47) - 8 * n) as usize;
        for n in 1..2000_u64 {
            lane.insert(
                n / 3 * 0x1_0000_0001 + 1,
                (n % 3) as u32 + (1 << 27),
                cell(n),
            );
            for known in (1..=n).step_by(97) {
                let (context, site) = (known / 3 * 0x1_0000_0001 + 1, (known % 3) as u32);
                assert_eq!(lane.find(context, site + (1 << 27)), Some(cell(known)));
            }
        }
        assert_eq!(lane.find(5, 5), None);
    }

    #[test]
    fn without_room_in_the_log_events_are_counted_as_lost() {
        let lanes = Lanes::default();
        let mut lane = lanes.take("main".into());
        assert!(lane.cell(ContextId(1), |_| None).is_none());
        lane.lost_cell().add(3, 0);
        lane.lost_event_cell().count(1);
        assert_eq!((lane.lost(), lanes.lost()), (4, 4));
        lanes.end(lane);
        assert_eq!(lanes.lost(), 4);
        let again = lanes.take("main".into());
        again.lost_cell().add(1, 0);
        lanes.give(again);
        assert_eq!(lanes.lost(), 5);
    }

    #[test]
    fn each_context_and_type_has_a_cell_of_its_own() {
        let folder = std::env::temp_dir().join(format!("lucce-lane-{}", std::process::id()));
        let mut log = lucce_tracelog::Writer::create(&folder, &Default::default()).unwrap();
        let mut lane = Lane::new(String::new());
        for round in 1..4 {
            for n in 1..500_u64 {
                for event in 1..3 {
                    let key = (ContextId(n << 32), EventTypeId(event));
                    let cell = lane.event_cell(key.0, key.1, |cells| {
                        assert_eq!(round, 1, "known cells need no room");
                        let block = log.event_counters(ThreadId(1), cells).unwrap();
                        let block = Box::leak(Box::new(block));
                        // SAFETY: it is never dropped.
                        Some(unsafe { block.kept() })
                    });
                    let cell = cell.unwrap();
                    assert_eq!((cell.id(), cell.event()), key);
                    cell.count(n);
                    let value = u64::from_le(cell.value.load(Ordering::Relaxed));
                    assert_eq!(value, n * round);
                }
            }
        }
        let none = lane.event_cell(ContextId(1), EventTypeId(9), |_| None);
        assert!(none.is_some(), "a block has room left");
        std::fs::remove_file(folder).unwrap();
    }

    #[test]
    fn a_thread_goes_on_with_the_lane_of_one_of_its_kind_that_ended() {
        let lanes = Lanes::default();
        let mut first = lanes.take("pool-1-thread-1".into());
        assert_eq!(first.kind, "pool-*-thread-*");
        first.insert(7, 1, 72);
        // While it lives, another one has its own.
        let second = lanes.take("pool-1-thread-2".into());
        assert_eq!(second.find(7, 1), None);
        lanes.give(first);
        assert_eq!(lanes.take("main".into()).find(7, 1), None);
        assert_eq!(lanes.take("pool-12-thread-3".into()).find(7, 1), Some(72));
        assert_eq!(lanes.take("pool-12-thread-4".into()).find(7, 1), None);
    }
}
