//! What the agent keeps of a thread: its shadow stack and its lane.
//!
//! A thread's state is written by that thread alone, in native methods of the helper class; the
//! first words are read by Java code:
//!
//! ```text
//! +0  u64 index      address of the lane's index, 0: none yet
//! +8  i32 left       events until the next one is verified
//! +16 u64 start, end of the shadow stack
//! +32 u64 children   with `tracking=cct`: address of the tree's table, 0: none yet
//! +40 u64 since      with `events=io`: when the operation began that the thread is doing, 0: none;
//! +48 u64 bytes      how many bytes it was given
//! +56 Place place    with `record=stream`: where the next event goes
//! ```

use std::mem::offset_of;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lucce_callgraph::{ContextId, MethodId, SiteId};
use lucce_stream::{Place, StreamThread};

use crate::here::Here;
use crate::lane::Lane;
use crate::lock::Waits;
use crate::memory::{Range, SLOT};
use crate::record::Recorded;
use crate::state_layout;
use crate::tree::{Node, Tree};

/// A frame that the VM entered by itself.
#[derive(Clone, Copy, Debug)]
pub struct Upcall {
    /// Its slot.
    pub slot: usize,
    /// The pointer before it was entered, stale or not.
    pub pointer: usize,
    /// The slot whose site was changed, and what it held.
    pub changed: Option<(usize, u64)>,
    /// Its frame is one without a slot: the slot is that of the method that it calls.
    pub slotless: bool,
}

#[repr(C)]
pub struct ThreadState {
    index: AtomicU64,
    left: AtomicI32,
    start: u64,
    end: u64,
    children: AtomicU64,
    /// With `events=io`, for the helper class alone.
    _io: [AtomicU64; 2],
    /// For the helper class alone, too.
    _cloning: AtomicU64,
    /// With `record=stream`.
    pub place: Place,
    pub stream_thread: StreamThread,
    /// With `tracking=cct`.
    pub tree: Tree,
    pub region: Range,
    upcalls: Vec<Upcall>,
    /// Its events, from the first one on.
    lane: Option<Lane>,
    pub is_virtual: bool,
    /// With `record=calls`: its part of the recording, from the first call on.
    pub recorded: Option<Arc<Mutex<Recorded>>>,
    /// The ticket of whoever started it; 0: nobody is known.
    pub ticket: usize,
    /// Monitors that it waits for.
    pub waits: Waits,
    /// Where an exception was thrown that a handler of the agent is throwing again.
    pub thrown: Option<Here>,
    /// The context that started it; unknown: nobody is known.
    pub origin: ContextId,
}

// As in the helper class.
const _: () = assert!(offset_of!(ThreadState, place) == state_layout::PLACE);
const _: () = assert!(offset_of!(ThreadState, _io) == state_layout::IO_SINCE);
const _: () = assert!(offset_of!(ThreadState, _cloning) == state_layout::CLONING);

impl ThreadState {
    /// `start`: the region's, as slots are given: see `memory`.
    pub fn new(start: usize, region: Range, is_virtual: bool, verify: u32) -> ThreadState {
        ThreadState {
            index: AtomicU64::new(0),
            left: AtomicI32::new(verify as i32),
            start: start as u64,
            end: (start + region.bytes) as u64,
            children: AtomicU64::new(0),
            _io: Default::default(),
            _cloning: Default::default(),
            place: Place::default(),
            stream_thread: StreamThread::default(),
            tree: Tree::default(),
            region,
            upcalls: Vec::new(),
            lane: None,
            is_virtual,
            recorded: None,
            ticket: 0,
            waits: Waits::default(),
            thrown: None,
            origin: ContextId::UNKNOWN,
        }
    }

    /// Whether this is a slot of the thread's frames.
    pub fn owns(&self, slot: usize) -> bool {
        slot > self.start as usize && slot < self.end as usize
    }

    /// The first slot of a frame; the sentinel lies below.
    pub fn first_slot(&self) -> usize {
        self.start as usize + SLOT
    }

    pub fn verify_again_after(&self, events: u32) {
        self.left.store(events as i32, Ordering::Relaxed);
    }

    /// One more event: whether it is the one to compare, of so many; 0: none is.
    pub fn must_verify(&self, every: u32) -> bool {
        // Relaxed: this thread's own.
        let must = every > 0 && self.left.fetch_sub(1, Ordering::Relaxed) <= 1;
        if must {
            self.verify_again_after(every);
        }
        must
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

    /// Forgets upcalls that ended without telling. A frame that the VM enters now has slot `new`, and
    /// the innermost frame with a slot of its own lies below `above`. Frames that have no slot share theirs
    /// with what they call.
    pub fn forget_above(&mut self, above: usize, new: usize) {
        let has_ended =
            |upcall: &Upcall| upcall.slot > new || upcall.slot >= above && !upcall.slotless;
        while self.upcalls.last().is_some_and(has_ended) {
            self.upcalls.pop();
        }
    }

    /// The node for `callee`, called at `site` in `node`.
    pub fn child(&mut self, node: Node, site: SiteId, callee: MethodId) -> Option<Node> {
        let child = self.tree.child(node, site, callee);
        self.children
            .store(self.tree.table() as u64, Ordering::Relaxed);
        child
    }

    /// The thread's events, from its first one on.
    pub fn lane(&mut self, take: impl FnOnce() -> Lane) -> &mut Lane {
        let lane = self.lane.get_or_insert_with(take);
        self.index.store(lane.index(), Ordering::Relaxed);
        lane
    }

    /// The lane's index has changed.
    pub fn indexed(&self) {
        let index = self.lane.as_ref().map_or(0, Lane::index);
        self.index.store(index, Ordering::Relaxed);
    }

    /// The thread has ended.
    pub fn take_lane(&mut self) -> Option<Lane> {
        self.index.store(0, Ordering::Relaxed);
        self.lane.take()
    }

    /// Events that were counted while there was no room.
    pub fn lost(&self) -> u64 {
        self.lane.as_ref().map_or(0, Lane::lost)
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

    #[test]
    fn upcalls_end_in_any_order() {
        let mut state = state();
        for slot in [0x1010, 0x1020, 0x1040] {
            state.push(Upcall {
                slot,
                pointer: slot - SLOT,
                changed: None,
                slotless: false,
            });
        }
        // The innermost never said that it ended.
        assert_eq!(state.pop(0x1020).map(|upcall| upcall.pointer), Some(0x1010));
        assert!(state.pop(0x1040).is_none());
        state.forget_above(0x1010, 0x1010);
        assert!(state.pop(0x1010).is_none());
    }

    #[test]
    fn frames_without_slots_share_one() {
        let mut state = state();
        let upcall = |pointer, slotless| Upcall {
            slot: 0x1020,
            pointer,
            changed: None,
            slotless,
        };
        // A frame with a slot ended by an exception; then two without, one within the other.
        state.push(upcall(1, false));
        state.forget_above(0x1020, 0x1020);
        state.push(upcall(2, true));
        state.forget_above(0x1020, 0x1020);
        state.push(upcall(3, true));
        let mut pointers = || state.pop(0x1020).map(|upcall| upcall.pointer);
        assert_eq!(
            (pointers(), pointers(), pointers()),
            (Some(3), Some(2), None)
        );
        // One that lies above the new frame has ended, whatever it was.
        state.push(upcall(4, true));
        state.forget_above(0x1000, 0x1010);
        assert!(state.pop(0x1020).is_none());
    }
}
