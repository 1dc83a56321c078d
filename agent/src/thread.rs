//! What the agent keeps of a thread: its shadow stack, the index of its events, their cells.
//!
//! A thread's state is written by that thread alone, in native methods of the helper class; the
//! first words are read by Java code:
//!
//! ```text
//! +0  u64 index      address of the index, 0: none yet
//! +8  i32 left       events until the next one is verified
//! +16 u64 start, end of the shadow stack
//! ```
//!
//! The index is a hash table, `[shift, mask, 0 × 6]` and then entries `[ctx, site, number, cell]` of
//! a word each; ctx 0: empty.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lucce_callgraph::ContextId;
use lucce_tracelog::{Counters, ThreadId};

use crate::memory::Range;
use crate::record::Recorded;

/// A frame that the VM entered by itself.
#[derive(Clone, Copy, Debug)]
pub struct Upcall {
    /// Its slot.
    pub slot: usize,
    /// The pointer before it was entered, stale or not.
    pub pointer: usize,
    /// The slot whose site was changed, and what it held.
    pub changed: Option<(usize, u64)>,
}

#[repr(C)]
pub struct ThreadState {
    index: AtomicU64,
    left: AtomicI32,
    start: u64,
    end: u64,
    pub region: Range,
    upcalls: Vec<Upcall>,
    /// Known to the log from its first event on.
    pub id: Option<ThreadId>,
    table: Box<[AtomicU64]>,
    used: usize,
    cells: Option<Arc<Counters>>,
    next_cell: usize,
    /// Counts events for which the log has no room.
    lost: Box<[AtomicU64; 3]>,
    pub is_virtual: bool,
    /// With `record=calls`: its part of the recording, from the first call on.
    pub recorded: Option<Arc<Mutex<Recorded>>>,
    /// The ticket of whoever started it; 0: nobody is known.
    pub ticket: usize,
}

const HEADER: usize = 8;
const WORDS: usize = 4;
const FIRST_ENTRIES: usize = 64;
const FIRST_CELLS: u32 = 16;
const MOST_CELLS: u32 = 4096;
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
const SITE_MULTIPLIER: u64 = 0xC2B2_AE3D_27D4_EB4F;

impl ThreadState {
    /// `start`: the region's, as slots are given: see `memory`.
    pub fn new(start: usize, region: Range, is_virtual: bool, verify: u32) -> ThreadState {
        ThreadState {
            index: AtomicU64::new(0),
            left: AtomicI32::new(verify as i32),
            start: start as u64,
            end: (start + region.bytes) as u64,
            region,
            upcalls: Vec::new(),
            id: None,
            table: Box::default(),
            used: 0,
            cells: None,
            next_cell: 0,
            lost: Box::default(),
            is_virtual,
            recorded: None,
            ticket: 0,
        }
    }

    /// The first slot of a frame; the sentinel lies below.
    pub fn first_slot(&self) -> usize {
        self.start as usize + 16
    }

    pub fn verify_again_after(&self, events: u32) {
        self.left.store(events as i32, Ordering::Relaxed);
    }

    pub fn push(&mut self, upcall: Upcall) {
        self.upcalls.push(upcall);
    }

    /// Ends the upcall with slot `slot` and all that it called and that did not end.
    pub fn pop(&mut self, slot: usize) -> Option<Upcall> {
        let found = self
            .upcalls
            .iter()
            .rposition(|upcall| upcall.slot == slot)?;
        let upcall = self.upcalls[found];
        self.upcalls.truncate(found);
        Some(upcall)
    }

    /// Forgets upcalls that ended without telling: their slots lie at or above `slot`.
    pub fn forget_above(&mut self, slot: usize) {
        while self
            .upcalls
            .last()
            .is_some_and(|upcall| upcall.slot >= slot)
        {
            self.upcalls.pop();
        }
    }

    /// A new entry; its address.
    pub fn insert(&mut self, context: u64, site: u32, number: ContextId) -> usize {
        if (self.used + 1) * 2 > self.entries() {
            self.grow();
        }
        self.used += 1;
        self.put([context, site.into(), number.0, 0])
    }

    fn entries(&self) -> usize {
        self.table.len().saturating_sub(HEADER) / WORDS
    }

    fn grow(&mut self) {
        let entries = (self.entries() * 2).max(FIRST_ENTRIES);
        let fresh = (0..HEADER + entries * WORDS)
            .map(|_| AtomicU64::new(0))
            .collect();
        let old = std::mem::replace(&mut self.table, fresh);
        let shift = 64 - entries.trailing_zeros();
        self.table[0].store(shift.into(), Ordering::Relaxed);
        self.table[1].store(entries as u64 - 1, Ordering::Relaxed);
        for entry in old.get(HEADER..).unwrap_or(&[]).chunks_exact(WORDS) {
            let words = [0, 1, 2, 3].map(|at| entry[at].load(Ordering::Relaxed));
            if words[0] != 0 {
                self.put(words);
            }
        }
        self.index
            .store(self.table.as_ptr() as usize as u64, Ordering::Relaxed);
    }

    fn put(&mut self, words: [u64; WORDS]) -> usize {
        let hash = words[0]
            .wrapping_mul(MULTIPLIER)
            .wrapping_add(words[1].wrapping_mul(SITE_MULTIPLIER));
        let mask = self.entries() - 1;
        let mut slot = (hash >> self.table[0].load(Ordering::Relaxed)) as usize;
        loop {
            let at = HEADER + (slot & mask) * WORDS;
            if self.table[at].load(Ordering::Relaxed) == 0 {
                for (word, value) in self.table[at..].iter().zip(words) {
                    word.store(value, Ordering::Relaxed);
                }
                return self.table[at..].as_ptr() as usize;
            }
            slot += 1;
        }
    }

    /// A cell for the next context. `more` gets new ones; without, events are counted as lost.
    pub fn cell(
        &mut self,
        number: ContextId,
        more: impl FnOnce(u32) -> Option<Arc<Counters>>,
    ) -> usize {
        let have = self.cells.as_ref().map_or(0, |cells| cells.len());
        if self.next_cell >= have {
            let want = (have as u32 * 2).clamp(FIRST_CELLS, MOST_CELLS);
            self.cells = more(want);
            self.next_cell = 0;
        }
        let Some(cell) = self
            .cells
            .as_ref()
            .and_then(|cells| cells.get(self.next_cell))
        else {
            return self.lost.as_ptr() as usize;
        };
        cell.claim(number);
        self.next_cell += 1;
        std::ptr::from_ref(cell) as usize
    }

    /// Events that were counted while there was no room.
    pub fn lost(&self) -> u64 {
        self.lost[1].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> ThreadState {
        let region = Range {
            start: 0x1000,
            bytes: 0x1000,
        };
        ThreadState::new(0x1000, region, false, 0)
    }

    /// As the helper class looks an entry up.
    fn find(state: &ThreadState, context: u64, site: u32) -> Option<u64> {
        let table = &state.table;
        let shift = table.first()?.load(Ordering::Relaxed);
        let mask = table[1].load(Ordering::Relaxed);
        let hash = context
            .wrapping_mul(MULTIPLIER)
            .wrapping_add(u64::from(site).wrapping_mul(SITE_MULTIPLIER));
        let mut slot = hash >> shift;
        loop {
            let at = HEADER + (slot & mask) as usize * WORDS;
            let words = [0, 1, 2].map(|word| table[at + word].load(Ordering::Relaxed));
            if words[0] == 0 {
                return None;
            }
            if words[0] == context && words[1] == u64::from(site) {
                return Some(words[2]);
            }
            slot += 1;
        }
    }

    #[test]
    fn every_entry_is_found_while_the_index_grows() {
        let mut state = state();
        for n in 1..2000_u64 {
            state.insert(n * 0x1_0000_0001, (n % 7) as u32, ContextId(n));
            for known in (1..=n).step_by(97) {
                let site = (known % 7) as u32;
                assert_eq!(find(&state, known * 0x1_0000_0001, site), Some(known));
            }
        }
        assert_eq!(find(&state, 5, 5), None);
    }

    #[test]
    fn upcalls_end_in_any_order() {
        let mut state = state();
        for slot in [0x1010, 0x1020, 0x1040] {
            state.push(Upcall {
                slot,
                pointer: slot - 16,
                changed: None,
            });
        }
        // The innermost never said that it ended.
        assert_eq!(state.pop(0x1020).map(|upcall| upcall.pointer), Some(0x1010));
        assert!(state.pop(0x1040).is_none());
        state.forget_above(0x1010);
        assert!(state.pop(0x1010).is_none());
    }

    #[test]
    fn without_room_in_the_log_events_are_counted_as_lost() {
        let mut state = state();
        let cell = state.cell(ContextId(1), |_| None);
        crate::memory::word64(cell + 8).store(3, Ordering::Relaxed);
        assert_eq!(state.lost(), 3);
    }
}
