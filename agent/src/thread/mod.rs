//! What the agent keeps of a thread: its shadow stack and its lane.
//!
//! A thread's state is used by that thread alone, in native methods of the helper class, one of which may run within
//! another: so nothing in it is ever borrowed exclusively for longer than a look-up takes. The first words are read by
//! Java code, at the places that `shared_layout` says.

pub mod carrier;
pub mod counter_access;
pub mod coverage;
pub mod event_kind;
pub mod lifecycle;
pub mod recent_counters;
pub mod tag_scope;
pub mod tags;
pub mod thread_counters;

use std::cell::{Cell, OnceCell, RefCell, RefMut};
use std::collections::HashMap;
use std::mem::offset_of;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use jvmti_bindings::sys::jni::jlong;
use lucce_callgraph::{ContextId, SiteId};
use lucce_stream::{EventCursor, StreamThread};
use lucce_tracelog::{CounterBlock as CellBlock, EventCounter, ThreadId};

use crate::comparison::{AgentComparison, ThreadTree, ThreadTreeRef};
use crate::core::{AgentCore, EventLocation, VerifyCountdown};
use crate::memory::address_space::MappedRange;
use crate::memory::locks::WatchedMutex;
use crate::memory::shared_layout as layout;
use crate::memory::slots::{Slot, SlotRange};
use crate::registry::call_recorder::ThreadCallRecord;
use crate::thread::coverage::CoverageTracker;
use crate::thread::event_kind::MonitorWaits;
use crate::thread::tags::{OpenTags, TagRegistry};
use crate::thread::thread_counters::{ThreadCounterPool, ThreadCounters};

/// Where threads count.
pub struct CounterStore {
    pub core: AgentCore,
    pub comparison: AgentComparison,
    pub counter_pool: ThreadCounterPool,
    pub tags: TagRegistry,
    /// All cells, for the sum at the end.
    counter_blocks: WatchedMutex<Vec<CellBlock>>,
    event_counter_blocks: WatchedMutex<Vec<CellBlock<EventCounter>>>,
    /// What the VM says that threads allocate.
    pub coverage: CoverageTracker,
    /// Names of threads, or of those of one kind, by their numbers in the log.
    names: WatchedMutex<HashMap<ThreadId, String>>,
}

impl Deref for CounterStore {
    type Target = AgentCore;

    fn deref(&self) -> &AgentCore {
        &self.core
    }
}

impl CounterStore {
    pub fn new(core: AgentCore, comparison: AgentComparison) -> CounterStore {
        CounterStore {
            core,
            comparison,
            counter_pool: ThreadCounterPool::default(),
            tags: TagRegistry::default(),
            counter_blocks: WatchedMutex::default(),
            event_counter_blocks: WatchedMutex::default(),
            coverage: CoverageTracker::default(),
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

    pub fn lock_counter_blocks(&self) -> MutexGuard<'_, Vec<CellBlock>> {
        self.counter_blocks.lock()
    }

    pub fn lock_event_counter_blocks(&self) -> MutexGuard<'_, Vec<CellBlock<EventCounter>>> {
        self.event_counter_blocks.lock()
    }
}

/// A frame that the VM entered by itself.
#[derive(Clone, Copy, Debug)]
pub struct VmEntry {
    /// Its slot.
    pub slot: Slot,
    /// The pointer before it was entered, stale or not.
    pub pointer: Slot,
    /// The slot whose site was changed, and which one it had.
    pub changed_site: Option<(Slot, SiteId)>,
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
    pub place: EventCursor,
    pub stream_thread: Cell<StreamThread>,
    /// With `tracking=cct`.
    tree: RefCell<ThreadTree>,
    pub region: MappedRange,
    vm_entries: RefCell<Vec<VmEntry>>,
    /// Its events, from the first one on.
    thread_counters: RefCell<Option<ThreadCounters>>,
    pub is_virtual: bool,
    /// With `record=calls`: its part of the recording, from the first call on.
    pub recording: OnceCell<Arc<WatchedMutex<ThreadCallRecord>>>,
    /// The ticket that the thread has which started it; 0: no such thread is known.
    pub ticket: usize,
    /// Monitors that it waits for.
    pub waits: MonitorWaits,
    /// Where an exception was thrown that a handler of the agent is throwing again.
    pub rethrown_at: Cell<Option<EventLocation>>,
    /// The context that started it, if one is known.
    pub origin: ContextId,
    /// The program's own tags, under which events happen now.
    pub tags: RefCell<OpenTags>,
    /// Its lane without tags, while it has another one.
    pub untagged_counters: RefCell<Option<Box<ThreadCounters>>>,
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
    pub fn new(region: MappedRange, is_virtual: bool, countdown: VerifyCountdown) -> ThreadState {
        let start = Slot::from_address(region.start()).pointer();
        ThreadState {
            index: AtomicU64::new(0),
            countdown,
            start: start as u64,
            end: (start + region.bytes()) as u64,
            children: AtomicU64::new(0),
            _taking: Default::default(),
            _cloning: Default::default(),
            _text: Default::default(),
            place: EventCursor::default(),
            stream_thread: Cell::default(),
            tree: RefCell::default(),
            region,
            vm_entries: RefCell::default(),
            thread_counters: RefCell::default(),
            is_virtual,
            recording: OnceCell::new(),
            ticket: 0,
            waits: MonitorWaits::default(),
            rethrown_at: Cell::new(None),
            origin: ContextId::UNKNOWN,
            tags: RefCell::default(),
            untagged_counters: RefCell::default(),
        }
    }

    pub fn slots(&self) -> SlotRange {
        let [start, end] = [self.start, self.end].map(|at| Slot::from_pointer(at as usize));
        SlotRange { start, end }
    }

    /// Whether this is a slot of the thread's frames.
    pub fn owns_slot(&self, slot: Slot) -> bool {
        self.slots().contains(slot)
    }

    /// The first slot of a frame; the sentinel lies below.
    pub fn first_slot(&self) -> Slot {
        self.slots().start.above()
    }

    pub fn push_entry(&self, upcall: VmEntry) {
        self.vm_entries.borrow_mut().push(upcall);
    }

    /// Ends the upcall with slot `slot` and all that it called and that did not end.
    pub fn pop_entry(&self, slot: Slot) -> Option<VmEntry> {
        let mut upcalls = self.vm_entries.borrow_mut();
        let found = upcalls.iter().rposition(|upcall| upcall.slot == slot)?;
        let upcall = upcalls[found];
        upcalls.truncate(found);
        Some(upcall)
    }

    /// The pointer from before the VM entered the innermost frame that has this slot, or had it and ended without telling.
    pub fn pointer_before_entry(&self, slot: Slot) -> Option<Slot> {
        let upcalls = self.vm_entries.borrow();
        let found = upcalls.iter().rfind(|upcall| upcall.slot == slot);
        found.map(|upcall| upcall.pointer)
    }

    /// Forgets upcalls that ended without telling. A frame that the VM enters now has slot `new`, and
    /// the innermost frame with a slot of its own lies below `above`. Frames that have no slot share theirs
    /// with what they call.
    pub fn forget_ended_entries(&self, above: Slot, new: Slot) {
        let has_ended =
            |upcall: &VmEntry| upcall.slot > new || upcall.slot >= above && !upcall.slotless;
        let mut upcalls = self.vm_entries.borrow_mut();
        while upcalls.last().is_some_and(has_ended) {
            upcalls.pop();
        }
    }

    /// What it keeps for a comparison.
    pub fn comparison_state(&self) -> ThreadTreeRef<'_> {
        ThreadTreeRef {
            tree: self.tree.borrow_mut(),
            table: &self.children,
        }
    }

    /// The thread's events, from its first one on: `take` gives it a lane. What is borrowed here must not be kept
    /// while anything else uses the thread.
    pub fn thread_counters(
        &self,
        take: impl FnOnce() -> ThreadCounters,
    ) -> RefMut<'_, ThreadCounters> {
        if self.thread_counters.borrow().is_none() {
            let taken = take();
            self.index.store(taken.index_address(), Ordering::Relaxed);
            self.thread_counters.replace(Some(taken));
        }
        RefMut::map(self.thread_counters.borrow_mut(), |lane| {
            // There is one: see above.
            lane.get_or_insert_with(|| ThreadCounters::new(String::new()))
        })
    }

    /// The index of its lane has moved.
    pub fn publish_index(&self, lane: &ThreadCounters) {
        self.index.store(lane.index_address(), Ordering::Relaxed);
    }

    /// The thread has ended, or goes on in another lane.
    pub fn take_counters(&self) -> Option<ThreadCounters> {
        self.index.store(0, Ordering::Relaxed);
        self.thread_counters.take()
    }

    /// The thread goes on in this lane; it has none now.
    pub fn put_counters(&self, lane: ThreadCounters) {
        self.publish_index(&lane);
        self.thread_counters.replace(Some(lane));
    }

    /// Where its lane's index is, as Java code keeps it in the thread's field.
    pub fn index_address(&self) -> u64 {
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
    pub unsafe fn from_field(field: jlong) -> OwnState {
        OwnState(field)
    }

    /// For good, or until [`OwnState::into_state`].
    pub fn from_state(state: ThreadState) -> OwnState {
        OwnState(Box::into_raw(Box::new(state)).expose_provenance() as jlong)
    }

    pub fn get(&self) -> Option<&ThreadState> {
        let state = std::ptr::with_exposed_provenance::<ThreadState>(self.0 as usize);
        // SAFETY: null, or what `begin` made; it is shared with this thread alone, and lives as long as that.
        unsafe { state.as_ref() }
    }

    /// # Safety
    /// The field does not hold it any more, and nothing else of this thread's uses it.
    pub unsafe fn into_state(self) -> Option<Box<ThreadState>> {
        let state = std::ptr::with_exposed_provenance_mut::<ThreadState>(self.0 as usize);
        // SAFETY: `begin` made it, and no reference to it is left.
        (!state.is_null()).then(|| unsafe { Box::from_raw(state) })
    }

    /// For the field.
    pub fn as_field(&self) -> jlong {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> ThreadState {
        let region = MappedRange::from_unmapped(0x1000, 0x1000);
        ThreadState::new(region, false, VerifyCountdown::new(0))
    }

    #[test]
    fn upcalls_end_in_any_order() {
        let state = state();
        let at = Slot::from_pointer;
        for slot in [0x1010, 0x1020, 0x1040].map(at) {
            state.push_entry(VmEntry {
                slot,
                pointer: slot.below(),
                changed_site: None,
                slotless: false,
            });
        }
        // The innermost never said that it ended.
        assert_eq!(
            state.pop_entry(at(0x1020)).map(|upcall| upcall.pointer),
            Some(at(0x1010))
        );
        assert!(state.pop_entry(at(0x1040)).is_none());
        state.forget_ended_entries(at(0x1010), at(0x1010));
        assert!(state.pop_entry(at(0x1010)).is_none());
    }

    #[test]
    fn frames_without_slots_share_one() {
        let state = state();
        let at = Slot::from_pointer;
        let upcall = |pointer, slotless| VmEntry {
            slot: at(0x1020),
            pointer: at(pointer),
            changed_site: None,
            slotless,
        };
        // A frame with a slot ended by an exception; then two without, one within the other.
        state.push_entry(upcall(1, false));
        state.forget_ended_entries(at(0x1020), at(0x1020));
        state.push_entry(upcall(2, true));
        state.forget_ended_entries(at(0x1020), at(0x1020));
        state.push_entry(upcall(3, true));
        let pointers = || {
            state
                .pop_entry(at(0x1020))
                .map(|upcall| upcall.pointer.pointer())
        };
        assert_eq!(
            (pointers(), pointers(), pointers()),
            (Some(3), Some(2), None)
        );
        // One that lies above the new frame has ended, whatever it was.
        state.push_entry(upcall(4, true));
        state.forget_ended_entries(at(0x1000), at(0x1010));
        assert!(state.pop_entry(at(0x1020)).is_none());
    }
}
