//! The state of a thread: its shadow stack, counters and tags.
//!
//! A thread's state is used by that thread alone, in native methods of the helper class, which may nest. So nothing
//! in it is borrowed exclusively for longer than one look-up. Java code reads the first words of [`ThreadState`], at
//! the offsets in `shared_layout`.
//!
//! Read `lifecycle` first, then `thread_counters` and `counter_access`; `tags` and `tag_scope` divide counters by
//! tags, and `coverage` compares them with the VM's counts.

pub mod alive_counters;
pub mod alive_threads;
pub mod carrier;
pub mod counter_access;
pub mod coverage;
pub mod event_kind;
pub mod lifecycle;
pub mod monitor_waits;
pub mod names;
pub mod open_times;
pub mod recent_counters;
pub mod shared_counters;
pub mod tag_scope;
pub mod tags;
pub mod thread_counters;

use std::cell::{Cell, RefCell, RefMut};
use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering};

use jvmti_bindings::sys::jni::jlong;
use lucce_callgraph::{ContextId, SiteId};
use lucce_stream::{EventCursor, StreamThread};
use lucce_tracelog::{CounterBlock as CellBlock, EventCounter, ThreadId};

use crate::core::{AgentCore, EventLocation, VerifyCountdown};
use crate::memory::address_space::MappedRange;
use crate::memory::locks::WatchedMutex;
use crate::memory::shared_layout as layout;
use crate::memory::slots::{Slot, SlotRange};
use crate::thread::alive_threads::{AliveThread, AliveThreads};
use crate::thread::coverage::CoverageTracker;
use crate::thread::event_kind::EventCounterRef;
use crate::thread::monitor_waits::{LockSlot, MonitorWaits};
use crate::thread::tags::{OpenTags, TagRegistry};
use crate::thread::thread_counters::{ThreadCounterPool, ThreadCounters};
use crate::tracking::{ContextTracking, ThreadTracking};

/// The parts of the agent that the layer of threads uses.
#[derive(Clone, Copy)]
pub struct ThreadParts<'a> {
    pub core: &'a AgentCore,
    pub counters: &'a CounterStore,
}

/// Counters of all threads, and what belongs to them.
pub struct CounterStore {
    pub tracking: ContextTracking,
    pub counter_pool: ThreadCounterPool,
    pub tags: TagRegistry,
    pub alive_threads: AliveThreads,
    /// All blocks of counters, for the sum at the end.
    counter_blocks: WatchedMutex<Vec<CellBlock>>,
    event_counter_blocks: WatchedMutex<Vec<CellBlock<EventCounter>>>,
    /// The bytes that the VM allocates for each thread.
    pub coverage: CoverageTracker,
    /// The name of a thread, or of the threads of one kind, by thread id.
    names: WatchedMutex<HashMap<ThreadId, String>>,
}

impl CounterStore {
    pub fn new(tracking: ContextTracking) -> CounterStore {
        CounterStore {
            tracking,
            counter_pool: ThreadCounterPool::default(),
            tags: TagRegistry::default(),
            alive_threads: AliveThreads::default(),
            counter_blocks: WatchedMutex::default(),
            event_counter_blocks: WatchedMutex::default(),
            coverage: CoverageTracker::default(),
            names: WatchedMutex::default(),
        }
    }

    /// Sets the name of a thread id in the log.
    pub fn name_thread(&self, id: ThreadId, name: &str) {
        let mut names = self.names.lock();
        names.insert(id, name.to_owned());
    }

    /// The name of a thread id; empty if nothing was counted in its threads.
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
    /// The thread's pointer before the entry, stale or not.
    pub pointer: Slot,
    /// The slot whose site was changed, and its old site.
    pub changed_site: Option<(Slot, SiteId)>,
    /// The frame has no slot. Then `slot` belongs to its callee.
    pub slotless: bool,
    pub mode: VmEntryMode,
}

/// When the VM is asked for the caller of a VM entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VmEntryMode {
    /// At the entry.
    Immediate,
    /// At the entry. The method has no hooks: see `stack::uninstrumented`.
    Uninstrumented,
    /// At the entry, because there was no room to defer it.
    Undeferred,
    /// When a context is needed: see `stack::deferred_entries`.
    Deferred,
}

impl VmEntryMode {
    /// Whether the method's entries are deferred if there is room.
    fn is_deferrable(self) -> bool {
        matches!(self, VmEntryMode::Undeferred | VmEntryMode::Deferred)
    }
}

/// A task that a thread runs under the tags of its submitter.
pub struct TaggedTask {
    /// The slot of the frame that runs it.
    pub slot: u64,
    /// The thread's own tags.
    pub outer: OpenTags,
}

/// A request that a thread handles.
#[derive(Clone, Copy, Debug)]
pub struct OpenRequest {
    /// Closes its tag; 0: it has none.
    pub tag: u64,
    /// The context in which it is counted when it ends. `None`: it is counted already.
    pub number: Option<ContextId>,
    /// Its HTTP method, if the server's entry named it.
    pub method: Option<&'static str>,
}

/// The state of one thread. Java code reads its first words, and writes some of them.
#[repr(C)]
pub struct ThreadState {
    /// Address of the index of the thread's counters; 0: none yet.
    index: AtomicU64,
    /// Countdown to the next event that is verified.
    pub countdown: VerifyCountdown,
    /// Bounds of the shadow stack.
    start: u64,
    end: u64,
    /// Used by the helper classes alone: start and amount of the operation in progress.
    _taking: [AtomicU64; 2],
    /// Used by the helper class alone.
    _cloning: AtomicU64,
    /// Used by the helper class alone.
    _text: AtomicU64,
    /// The slot of the frame with the open request; 0: none.
    pub request_slot: AtomicU64,
    /// The number of the thread's tags.
    tag_set: AtomicU64,
    /// The slot of the innermost of `tagged_tasks`; 0: none.
    pub tagged_task_slot: AtomicU64,
    /// Address of `method_times`; 0: none yet.
    times_block: AtomicU64,
    /// The number of the thread's counters, for counters that frames keep.
    kept: AtomicU64,
    /// The address of the room for counters that Java code adds; 0: no counters yet.
    room: AtomicU64,
    /// With `stream=on`: where the next event is written.
    pub place: EventCursor,
    /// Java code of the lab's agent reads its first word.
    pub tracking: ThreadTracking,
    pub stream_thread: Cell<StreamThread>,
    pub region: MappedRange,
    vm_entries: RefCell<Vec<VmEntry>>,
    /// The thread's counters, from its first event on.
    thread_counters: RefCell<Option<ThreadCounters>>,
    pub is_virtual: bool,
    /// Monitors that the thread waits for.
    pub waits: MonitorWaits<EventCounterRef>,
    /// The slot of the wait for a monitor whose holder is to be found: see `events::lock_holders`.
    pub contended_slot: Cell<Option<LockSlot>>,
    /// When the thread last got a monitor back after waiting for a notification.
    pub notified_at: Cell<u64>,
    /// The origin of an exception that a handler of the agent is rethrowing.
    pub rethrown_at: Cell<Option<EventLocation>>,
    /// The thread's entry among living threads, if its origin is known.
    pub alive: Option<AliveThread>,
    /// The context that started the thread, if known.
    pub origin: ContextId,
    /// The program's open tags, under which events are counted now.
    pub tags: RefCell<OpenTags>,
    /// Tasks that the thread runs under other tags, outermost first.
    pub tagged_tasks: RefCell<Vec<TaggedTask>>,
    /// The request whose frame has the slot `request_slot`.
    pub request: Cell<Option<OpenRequest>>,
    /// Methods in progress whose times are recorded; Java code reads and writes it.
    method_times: RefCell<Box<[AtomicU64]>>,
    /// The thread's counters without tags, while it uses others.
    pub untagged_counters: RefCell<Option<Box<ThreadCounters>>>,
}

// Offsets that Java code uses.
const _: () = assert!(offset_of!(ThreadState, index) == layout::STATE_INDEX);
const _: () = assert!(offset_of!(ThreadState, countdown) == layout::STATE_VERIFY_COUNTDOWN);
const _: () = assert!(offset_of!(ThreadState, start) == layout::STATE_START);
const _: () = assert!(offset_of!(ThreadState, end) == layout::STATE_END);
#[cfg(feature = "lab")]
const _: () = assert!(offset_of!(ThreadState, tracking) == lucce_layout::lab_layout::STATE_TREE);
const _: () = assert!(offset_of!(ThreadState, _taking) == layout::OPERATION_START);
const _: () = assert!(layout::OPERATION_AMOUNT == layout::OPERATION_START + size_of::<AtomicU64>());
const _: () = assert!(offset_of!(ThreadState, _cloning) == layout::CLONING);
const _: () = assert!(offset_of!(ThreadState, _text) == layout::MESSAGE_BYTES);
const _: () = assert!(offset_of!(ThreadState, request_slot) == layout::REQUEST_SLOT);
const _: () = assert!(offset_of!(ThreadState, tag_set) == layout::TAG_SET);
const _: () = assert!(offset_of!(ThreadState, tagged_task_slot) == layout::TAGGED_TASK_SLOT);
const _: () = assert!(offset_of!(ThreadState, times_block) == layout::TIMES_BLOCK);
const _: () = assert!(offset_of!(ThreadState, kept) == layout::STATE_KEPT);
const _: () = assert!(offset_of!(ThreadState, room) == layout::STATE_ROOM);
const _: () = assert!(offset_of!(ThreadState, place) == layout::STREAM_CURSOR);

impl ThreadState {
    /// A state whose shadow stack is in `region`.
    pub fn new(region: MappedRange, is_virtual: bool, countdown: VerifyCountdown) -> ThreadState {
        let start = Slot::from_address(region.start()).pointer();
        ThreadState {
            index: AtomicU64::new(0),
            countdown,
            start: start as u64,
            end: (start + region.bytes()) as u64,
            _taking: Default::default(),
            _cloning: Default::default(),
            _text: Default::default(),
            request_slot: AtomicU64::new(0),
            tag_set: AtomicU64::new(0),
            tagged_task_slot: AtomicU64::new(0),
            times_block: AtomicU64::new(0),
            kept: AtomicU64::new(layout::NOT_KEPT),
            room: AtomicU64::new(0),
            place: EventCursor::default(),
            stream_thread: Cell::default(),
            tracking: Default::default(),
            region,
            vm_entries: RefCell::default(),
            thread_counters: RefCell::default(),
            is_virtual,
            waits: MonitorWaits::default(),
            contended_slot: Cell::new(None),
            notified_at: Cell::new(0),
            rethrown_at: Cell::new(None),
            alive: None,
            origin: ContextId::UNKNOWN,
            tags: RefCell::default(),
            tagged_tasks: RefCell::default(),
            request: Cell::new(None),
            method_times: RefCell::default(),
            untagged_counters: RefCell::default(),
        }
    }

    /// Makes room for one more method in progress whose time is recorded. Returns the block's address.
    pub fn grow_times(&self) -> u64 {
        /// Words before the entries: their number, and the block's room.
        const HEADER: usize = 2;
        const LEAST: usize = 8;
        let mut times = self.method_times.borrow_mut();
        let words = layout::entry_words(layout::TIME_BITS_OF_ENTRY);
        let room = (times.len() / words * 2).max(LEAST);
        let old = times.iter().map(|word| word.load(Ordering::Relaxed));
        let zeros = std::iter::repeat_n(0, HEADER + room * words);
        let mut grown: Box<[AtomicU64]> = old
            .chain(zeros)
            .take(HEADER + room * words)
            .map(AtomicU64::new)
            .collect();
        if let Some(kept) = grown.get_mut(1) {
            *kept.get_mut() = room as u64;
        }
        *times = grown;
        let block = times.as_ptr().expose_provenance() as u64;
        // Relaxed: only this thread reads it.
        self.times_block.store(block, Ordering::Relaxed);
        block
    }

    /// The slots of the shadow stack, the sentinel included.
    pub fn slots(&self) -> SlotRange {
        let [start, end] = [self.start, self.end].map(|at| Slot::from_pointer(at as usize));
        SlotRange { start, end }
    }

    /// Whether the slot belongs to one of the thread's frames.
    pub fn owns_slot(&self, slot: Slot) -> bool {
        self.slots().contains(slot)
    }

    /// The first slot of a frame. The sentinel is below it.
    pub fn first_slot(&self) -> Slot {
        self.slots().start.above()
    }

    /// Adds a VM entry, which is the innermost one now.
    pub fn push_entry(&self, entry: VmEntry) {
        self.vm_entries.borrow_mut().push(entry);
    }

    /// Removes the VM entry with slot `slot` that a hook ends, and the entries above it that did not report their end.
    pub fn pop_entry(&self, slot: Slot) -> Option<VmEntry> {
        // No hook ends an entry without hooks. Its frame shares the slot of a deferred entry below.
        self.pop_entry_if(|entry| entry.slot == slot && entry.mode != VmEntryMode::Uninstrumented)
    }

    /// As [`ThreadState::pop_entry`], if the entered method has no hooks.
    pub fn pop_uninstrumented_entry(&self, slot: Slot) -> Option<VmEntry> {
        self.pop_entry_if(|entry| entry.slot == slot && entry.mode == VmEntryMode::Uninstrumented)
    }

    fn pop_entry_if(&self, is_ending: impl Fn(&VmEntry) -> bool) -> Option<VmEntry> {
        let mut entries = self.vm_entries.borrow_mut();
        let index = entries.iter().rposition(is_ending)?;
        let entry = entries[index];
        entries.truncate(index);
        Some(entry)
    }

    /// The pointer from before the innermost VM entry with this slot. That entry may have ended without a report.
    pub fn pointer_before_entry(&self, slot: Slot) -> Option<Slot> {
        let upcalls = self.vm_entries.borrow();
        // A deferred entry above the same slot is still there: it ends with a report.
        let entry = upcalls
            .iter()
            .rfind(|entry| entry.slot == slot && entry.mode != VmEntryMode::Deferred);
        entry.map(|entry| entry.pointer)
    }

    /// Adds a deferred VM entry. Entries above `entry.pointer` have ended without a report.
    pub fn push_deferred_entry(&self, entry: VmEntry) {
        let mut entries = self.vm_entries.borrow_mut();
        while entries.last().is_some_and(|last| last.slot > entry.pointer) {
            entries.pop();
        }
        entries.push(entry);
    }

    /// Changes the mode of the innermost VM entry.
    pub fn set_innermost_mode(&self, mode: VmEntryMode) {
        if let Some(entry) = self.vm_entries.borrow_mut().last_mut() {
            entry.mode = mode;
        }
    }

    /// The entries of methods whose entries are deferred, outermost first: the slots of deferred ones.
    pub fn deferrable_entries(&self) -> Vec<Option<Slot>> {
        let entries = self.vm_entries.borrow();
        let deferrable = entries.iter().filter(|entry| entry.mode.is_deferrable());
        deferrable
            .map(|entry| (entry.mode == VmEntryMode::Deferred).then_some(entry.slot))
            .collect()
    }

    /// Removes the innermost entry of a method whose entries are deferred, and the entries above it.
    pub fn pop_deferrable_entry(&self) -> Option<VmEntry> {
        self.pop_entry_if(|entry| entry.mode.is_deferrable())
    }

    /// Forgets VM entries that ended without a report. The VM enters a frame with slot `new` now, and the innermost
    /// frame with a slot of its own lies below `above`. Frames without a slot share the slot of their callee.
    pub fn forget_ended_entries(&self, above: Slot, new: Slot) {
        let has_ended =
            |entry: &VmEntry| entry.slot > new || entry.slot >= above && !entry.slotless;
        let mut upcalls = self.vm_entries.borrow_mut();
        while upcalls.last().is_some_and(has_ended) {
            upcalls.pop();
        }
    }

    /// The thread's counters. If it has none, `take` provides them. The borrow must end before anything else uses the
    /// thread's state.
    pub fn thread_counters(
        &self,
        take: impl FnOnce() -> ThreadCounters,
    ) -> RefMut<'_, ThreadCounters> {
        if self.thread_counters.borrow().is_none() {
            let taken = take();
            self.put_counters(taken);
        }
        RefMut::map(self.thread_counters.borrow_mut(), |counters| {
            // There is one: see above.
            counters.get_or_insert_with(|| ThreadCounters::new(String::new()))
        })
    }

    /// Publishes the index's new address to Java code.
    pub fn publish_index(&self, counters: &ThreadCounters) {
        self.index
            .store(counters.index_address(), Ordering::Relaxed);
        self.room.store(counters.room_address(), Ordering::Relaxed);
    }

    /// Publishes the thread's tags to Java code.
    pub fn publish_tags(&self) {
        let set = self.tags.borrow().current_set();
        self.tag_set.store(set.number().into(), Ordering::Relaxed);
    }

    /// Takes the counters from the thread: it has ended, or switches to others.
    pub fn take_counters(&self) -> Option<ThreadCounters> {
        self.index.store(0, Ordering::Relaxed);
        self.room.store(0, Ordering::Relaxed);
        self.kept.store(layout::NOT_KEPT, Ordering::Relaxed);
        self.thread_counters.take()
    }

    /// Gives counters to the thread, which has none now.
    pub fn put_counters(&self, counters: ThreadCounters) {
        self.publish_index(&counters);
        self.kept.store(counters.kept_number(), Ordering::Relaxed);
        self.thread_counters.replace(Some(counters));
    }

    /// The address of the counters' index, as Java code keeps it in the thread's field.
    pub fn index_address(&self) -> u64 {
        self.index.load(Ordering::Relaxed)
    }
}

/// The current thread's state, as Java code passes it from a field of the thread. 0: no state yet.
///
/// A function with an `OwnState` got it from Java code of the current thread, or guarantees the same. It is valid as
/// long as a native method of that thread runs. The thread itself frees the state when it ends.
#[repr(transparent)]
#[derive(Debug)]
pub struct OwnState(jlong);

#[allow(unsafe_code, reason = "Java code keeps the address")]
impl OwnState {
    pub const NONE: OwnState = OwnState(0);

    /// # Safety
    /// `field` is the value in the field of the current thread, or of the carrier that it acts as.
    pub unsafe fn from_field(field: jlong) -> OwnState {
        OwnState(field)
    }

    /// Moves a state to the heap, where it stays until [`OwnState::into_state`].
    pub fn from_state(state: ThreadState) -> OwnState {
        OwnState(Box::into_raw(Box::new(state)).expose_provenance() as jlong)
    }

    /// The state. `None`: the thread has none yet.
    pub fn get(&self) -> Option<&ThreadState> {
        let state = std::ptr::with_exposed_provenance::<ThreadState>(self.0 as usize);
        // SAFETY: null, or from `from_state`; it is shared with this thread alone, and lives as long as the thread.
        unsafe { state.as_ref() }
    }

    /// # Safety
    /// The thread's field no longer holds the address, and nothing else of this thread uses the state.
    pub unsafe fn into_state(self) -> Option<Box<ThreadState>> {
        let state = std::ptr::with_exposed_provenance_mut::<ThreadState>(self.0 as usize);
        // SAFETY: `from_state` made it, and no reference to it is left.
        (!state.is_null()).then(|| unsafe { Box::from_raw(state) })
    }

    /// The value for the thread's field.
    pub fn as_field(&self) -> jlong {
        self.0
    }
}

#[cfg(test)]
mod thread_tests {
    use super::*;

    fn state() -> ThreadState {
        let region = MappedRange::from_unmapped(0x1000, 0x1000);
        ThreadState::new(region, false, VerifyCountdown::new(0))
    }

    #[test]
    fn vm_entries_end_in_any_order() {
        let state = state();
        let at = Slot::from_pointer;
        for slot in [0x1010, 0x1020, 0x1040].map(at) {
            state.push_entry(VmEntry {
                slot,
                pointer: slot.below(),
                changed_site: None,
                slotless: false,
                mode: VmEntryMode::Immediate,
            });
        }
        // The innermost entry never reported its end.
        assert_eq!(
            state.pop_entry(at(0x1020)).map(|entry| entry.pointer),
            Some(at(0x1010))
        );
        assert!(state.pop_entry(at(0x1040)).is_none());
        state.forget_ended_entries(at(0x1010), at(0x1010));
        assert!(state.pop_entry(at(0x1010)).is_none());
    }

    #[test]
    fn hooks_end_no_entry_without_hooks() {
        let state = state();
        let slot = Slot::from_pointer(0x1040);
        let entry = |pointer, mode| VmEntry {
            slot,
            pointer,
            changed_site: None,
            slotless: mode == VmEntryMode::Deferred,
            mode,
        };
        let below = Slot::from_pointer(0x1010);
        state.push_deferred_entry(entry(below, VmEntryMode::Deferred));
        let push_inner = || {
            state.push_entry(entry(slot, VmEntryMode::Immediate));
            state.set_innermost_mode(VmEntryMode::Uninstrumented);
        };
        push_inner();
        assert_eq!(state.deferrable_entries(), [Some(slot)]);
        let pointer = |popped: Option<VmEntry>| popped.map(|entry| entry.pointer);
        assert_eq!(pointer(state.pop_uninstrumented_entry(slot)), Some(slot));
        assert_eq!(pointer(state.pop_uninstrumented_entry(slot)), None);
        // An exception ended the inner one.
        push_inner();
        assert_eq!(pointer(state.pop_entry(slot)), Some(below));
        assert_eq!(state.deferrable_entries(), []);
    }

    #[test]
    fn frames_without_slots_share_one() {
        let state = state();
        let at = Slot::from_pointer;
        let entry = |pointer, slotless| VmEntry {
            slot: at(0x1020),
            pointer: at(pointer),
            changed_site: None,
            slotless,
            mode: VmEntryMode::Immediate,
        };
        // An exception ended a frame with a slot. Two frames without a slot follow, one within the other.
        state.push_entry(entry(1, false));
        state.forget_ended_entries(at(0x1020), at(0x1020));
        state.push_entry(entry(2, true));
        state.forget_ended_entries(at(0x1020), at(0x1020));
        state.push_entry(entry(3, true));
        let pointers = || {
            state
                .pop_entry(at(0x1020))
                .map(|entry| entry.pointer.pointer())
        };
        assert_eq!(
            (pointers(), pointers(), pointers()),
            (Some(3), Some(2), None)
        );
        // An entry above the new frame has ended in any case.
        state.push_entry(entry(4, true));
        state.forget_ended_entries(at(0x1000), at(0x1010));
        assert!(state.pop_entry(at(0x1020)).is_none());
    }
}
