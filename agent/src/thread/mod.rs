//! What the agent keeps of a thread: its shadow stack and its lane.
//!
//! A thread's state is used by that thread alone, in native methods of the helper class, one of which may run within
//! another: so nothing in it is ever borrowed exclusively for longer than a look-up takes. The first words are read by
//! Java code, at the places that `shared_layout` says.

pub mod carrier;
pub mod cells;
pub mod coverage;
pub mod found;
pub mod lane;
pub mod life;
pub mod recent;
pub mod tags;
pub mod under;

use std::cell::{Cell, OnceCell, RefCell, RefMut};
use std::collections::HashMap;
use std::mem::offset_of;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use jvmti_bindings::sys::jni::jlong;
use lucce_callgraph::{ContextId, SiteId};
use lucce_stream::{Place, StreamThread};
use lucce_tracelog::{Counters as CellBlock, EventCell, ThreadId};

use crate::book::calls::Recorded;
use crate::comparison::{Comparison, Own, Tree};
use crate::core::{Core, Here, VerifyCountdown};
use crate::memory::locks::WatchedMutex;
use crate::memory::map::Range;
use crate::memory::shared_layout as layout;
use crate::memory::slots::{Slot, SlotRange};
use crate::thread::coverage::Coverage;
use crate::thread::found::Waits;
use crate::thread::lane::{Lane, Lanes};
use crate::thread::tags::{OpenTags, Tags};

/// Where threads count.
pub struct Counters {
    pub core: Core,
    pub comparison: Comparison,
    pub lanes: Lanes,
    pub tags: Tags,
    /// All cells, for the sum at the end.
    cells: WatchedMutex<Vec<CellBlock>>,
    event_cells: WatchedMutex<Vec<CellBlock<EventCell>>>,
    /// What the VM says that threads allocate.
    pub coverage: Coverage,
    /// Names of threads, or of those of one kind, by their numbers in the log.
    names: WatchedMutex<HashMap<ThreadId, String>>,
}

impl Deref for Counters {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl Counters {
    pub fn new(core: Core, comparison: Comparison) -> Counters {
        Counters {
            core,
            comparison,
            lanes: Lanes::default(),
            tags: Tags::default(),
            cells: WatchedMutex::default(),
            event_cells: WatchedMutex::default(),
            coverage: Coverage::default(),
            names: WatchedMutex::default(),
        }
    }

    /// The log knows this number from now on by this name.
    pub fn name_thread(&self, id: ThreadId, name: &str) {
        let mut names = self.names.lock();
        names.insert(id, name.to_owned());
    }

    /// Returns the name of a number of threads; it is empty if nothing was counted in them.
    pub fn thread_name(&self, id: ThreadId) -> String {
        let names = self.names.lock();
        names.get(&id).cloned().unwrap_or_default()
    }

    pub fn all_cells(&self) -> MutexGuard<'_, Vec<CellBlock>> {
        self.cells.lock()
    }

    pub fn all_event_cells(&self) -> MutexGuard<'_, Vec<CellBlock<EventCell>>> {
        self.event_cells.lock()
    }
}

/// A frame that the VM entered by itself.
#[derive(Clone, Copy, Debug)]
pub struct Upcall {
    /// Its slot.
    pub slot: Slot,
    /// The pointer before it was entered, stale or not.
    pub pointer: Slot,
    /// The slot whose site was changed, and which one it had.
    pub changed: Option<(Slot, SiteId)>,
    /// Its frame is one without a slot: the slot is that of the method that it calls.
    pub slotless: bool,
}

#[repr(C)]
pub struct ThreadState {
    /// Address of the lane's index; 0: none yet.
    index: AtomicU64,
    /// Until the next event is compared.
    pub countdown: VerifyCountdown,
    /// Of the shadow stack.
    start: u64,
    end: u64,
    /// With `tracking=cct`: address of the tree's table; 0: none yet.
    children: AtomicU64,
    /// For the helper classes alone: when what the thread is doing began, and its amount.
    _taking: [AtomicU64; 2],
    /// For the helper class alone, too.
    _cloning: AtomicU64,
    /// And this.
    _text: AtomicU64,
    /// With `record=stream`.
    pub place: Place,
    pub stream_thread: Cell<StreamThread>,
    /// With `tracking=cct`.
    tree: RefCell<Tree>,
    pub region: Range,
    upcalls: RefCell<Vec<Upcall>>,
    /// Its events, from the first one on.
    lane: RefCell<Option<Lane>>,
    pub is_virtual: bool,
    /// With `record=calls`: its part of the recording, from the first call on.
    pub recorded: OnceCell<Arc<WatchedMutex<Recorded>>>,
    /// The ticket that the thread has which started it; 0: no such thread is known.
    pub ticket: usize,
    /// Monitors that it waits for.
    pub waits: Waits,
    /// Where an exception was thrown that a handler of the agent is throwing again.
    pub thrown: Cell<Option<Here>>,
    /// The context that started it, if one is known.
    pub origin: ContextId,
    /// The program's own tags, under which events happen now.
    pub tags: RefCell<OpenTags>,
    /// Its lane without tags, while it has another one.
    pub untagged: RefCell<Option<Box<Lane>>>,
}

// Where Java code looks for them.
const _: () = assert!(offset_of!(ThreadState, index) == layout::STATE_INDEX);
const _: () = assert!(offset_of!(ThreadState, countdown) == layout::STATE_LEFT);
const _: () = assert!(offset_of!(ThreadState, start) == layout::STATE_START);
const _: () = assert!(offset_of!(ThreadState, end) == layout::STATE_END);
const _: () = assert!(offset_of!(ThreadState, children) == layout::STATE_TREE);
const _: () = assert!(offset_of!(ThreadState, _taking) == layout::SINCE);
const _: () = assert!(layout::AMOUNT == layout::SINCE + size_of::<AtomicU64>());
const _: () = assert!(offset_of!(ThreadState, _cloning) == layout::CLONING);
const _: () = assert!(offset_of!(ThreadState, _text) == layout::TEXT);
const _: () = assert!(offset_of!(ThreadState, place) == layout::PLACE);

impl ThreadState {
    /// With its shadow stack in `region`.
    pub fn new(region: Range, is_virtual: bool, countdown: VerifyCountdown) -> ThreadState {
        let start = Slot::of_address(region.start()).pointer();
        ThreadState {
            index: AtomicU64::new(0),
            countdown,
            start: start as u64,
            end: (start + region.bytes()) as u64,
            children: AtomicU64::new(0),
            _taking: Default::default(),
            _cloning: Default::default(),
            _text: Default::default(),
            place: Place::default(),
            stream_thread: Cell::default(),
            tree: RefCell::default(),
            region,
            upcalls: RefCell::default(),
            lane: RefCell::default(),
            is_virtual,
            recorded: OnceCell::new(),
            ticket: 0,
            waits: Waits::default(),
            thrown: Cell::new(None),
            origin: ContextId::UNKNOWN,
            tags: RefCell::default(),
            untagged: RefCell::default(),
        }
    }

    pub fn slots(&self) -> SlotRange {
        let [start, end] = [self.start, self.end].map(|at| Slot::at(at as usize));
        SlotRange { start, end }
    }

    /// Whether this is a slot of the thread's frames.
    pub fn owns(&self, slot: Slot) -> bool {
        self.slots().has(slot)
    }

    /// The first slot of a frame; the sentinel lies below.
    pub fn first_slot(&self) -> Slot {
        self.slots().start.above()
    }

    pub fn push(&self, upcall: Upcall) {
        self.upcalls.borrow_mut().push(upcall);
    }

    /// Ends the upcall with slot `slot` and all that it called and that did not end.
    pub fn pop(&self, slot: Slot) -> Option<Upcall> {
        let mut upcalls = self.upcalls.borrow_mut();
        let found = upcalls.iter().rposition(|upcall| upcall.slot == slot)?;
        let upcall = upcalls[found];
        upcalls.truncate(found);
        Some(upcall)
    }

    /// The pointer from before the VM entered the innermost frame that has this slot, or had it and ended without telling.
    pub fn entered_at(&self, slot: Slot) -> Option<Slot> {
        let upcalls = self.upcalls.borrow();
        let found = upcalls.iter().rfind(|upcall| upcall.slot == slot);
        found.map(|upcall| upcall.pointer)
    }

    /// Forgets upcalls that ended without telling. A frame that the VM enters now has slot `new`, and
    /// the innermost frame with a slot of its own lies below `above`. Frames that have no slot share theirs
    /// with what they call.
    pub fn forget_above(&self, above: Slot, new: Slot) {
        let has_ended =
            |upcall: &Upcall| upcall.slot > new || upcall.slot >= above && !upcall.slotless;
        let mut upcalls = self.upcalls.borrow_mut();
        while upcalls.last().is_some_and(has_ended) {
            upcalls.pop();
        }
    }

    /// What it keeps for a comparison.
    pub fn compared(&self) -> Own<'_> {
        Own {
            tree: self.tree.borrow_mut(),
            table: &self.children,
        }
    }

    /// The thread's events, from its first one on: `take` gives it a lane. What is borrowed here must not be kept
    /// while anything else uses the thread.
    pub fn lane(&self, take: impl FnOnce() -> Lane) -> RefMut<'_, Lane> {
        if self.lane.borrow().is_none() {
            let taken = take();
            self.index.store(taken.index(), Ordering::Relaxed);
            self.lane.replace(Some(taken));
        }
        RefMut::map(self.lane.borrow_mut(), |lane| {
            // There is one: see above.
            lane.get_or_insert_with(|| Lane::new(String::new()))
        })
    }

    /// The index of its lane has moved.
    pub fn indexed(&self, lane: &Lane) {
        self.index.store(lane.index(), Ordering::Relaxed);
    }

    /// The thread has ended, or goes on in another lane.
    pub fn take_lane(&self) -> Option<Lane> {
        self.index.store(0, Ordering::Relaxed);
        self.lane.take()
    }

    /// The thread goes on in this lane; it has none now.
    pub fn put_lane(&self, lane: Lane) {
        self.indexed(&lane);
        self.lane.replace(Some(lane));
    }

    /// Where its lane's index is, as Java code keeps it in the thread's field.
    pub fn index(&self) -> u64 {
        self.index.load(Ordering::Relaxed)
    }
}

/// The current thread's state as Java code hands it over, which has it in a field of the thread's. 0: it has none yet.
///
/// A function that has one got it from Java code of the current thread, or promised so, for as long as a native method of that
/// thread runs. The state is freed by the thread itself, when it ends.
#[repr(transparent)]
#[derive(Debug)]
pub struct OwnState(jlong);

#[allow(unsafe_code, reason = "Java code keeps the address")]
impl OwnState {
    pub const NONE: OwnState = OwnState(0);

    /// # Safety
    /// What the field of the current thread, or of the carrier that it acts as, holds.
    pub unsafe fn of_field(field: jlong) -> OwnState {
        OwnState(field)
    }

    /// For good, or until [`OwnState::end`].
    pub fn begin(state: ThreadState) -> OwnState {
        OwnState(Box::into_raw(Box::new(state)).expose_provenance() as jlong)
    }

    pub fn get(&self) -> Option<&ThreadState> {
        let state = std::ptr::with_exposed_provenance::<ThreadState>(self.0 as usize);
        // SAFETY: null, or what `begin` made; it is shared with this thread alone, and lives as long as that.
        unsafe { state.as_ref() }
    }

    /// # Safety
    /// The field does not hold it any more, and nothing else of this thread's uses it.
    pub unsafe fn end(self) -> Option<Box<ThreadState>> {
        let state = std::ptr::with_exposed_provenance_mut::<ThreadState>(self.0 as usize);
        // SAFETY: `begin` made it, and no reference to it is left.
        (!state.is_null()).then(|| unsafe { Box::from_raw(state) })
    }

    /// For the field.
    pub fn field(&self) -> jlong {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> ThreadState {
        let region = Range::of_nothing(0x1000, 0x1000);
        ThreadState::new(region, false, VerifyCountdown::new(0))
    }

    #[test]
    fn upcalls_end_in_any_order() {
        let state = state();
        let at = Slot::at;
        for slot in [0x1010, 0x1020, 0x1040].map(at) {
            state.push(Upcall {
                slot,
                pointer: slot.below(),
                changed: None,
                slotless: false,
            });
        }
        // The innermost never said that it ended.
        assert_eq!(
            state.pop(at(0x1020)).map(|upcall| upcall.pointer),
            Some(at(0x1010))
        );
        assert!(state.pop(at(0x1040)).is_none());
        state.forget_above(at(0x1010), at(0x1010));
        assert!(state.pop(at(0x1010)).is_none());
    }

    #[test]
    fn frames_without_slots_share_one() {
        let state = state();
        let at = Slot::at;
        let upcall = |pointer, slotless| Upcall {
            slot: at(0x1020),
            pointer: at(pointer),
            changed: None,
            slotless,
        };
        // A frame with a slot ended by an exception; then two without, one within the other.
        state.push(upcall(1, false));
        state.forget_above(at(0x1020), at(0x1020));
        state.push(upcall(2, true));
        state.forget_above(at(0x1020), at(0x1020));
        state.push(upcall(3, true));
        let pointers = || state.pop(at(0x1020)).map(|upcall| upcall.pointer.pointer());
        assert_eq!(
            (pointers(), pointers(), pointers()),
            (Some(3), Some(2), None)
        );
        // One that lies above the new frame has ended, whatever it was.
        state.push(upcall(4, true));
        state.forget_above(at(0x1000), at(0x1010));
        assert!(state.pop(at(0x1020)).is_none());
    }
}
