//! Counters in the pages of the log, which survive the process.
//!
//! A counter has one writer, the thread that owns it. Counting is therefore a load, an addition and a store, without a
//! lock prefix. Readers are other processes, which read the file.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use lucce_callgraph::ContextId;

use crate::mapped_file::{MappedFile, SharedCounter};
use crate::record::{EventTypeId, ThreadId};

/// The events of one context in one thread.
///
/// ```text
/// +0 id     the context id; 0: not used yet
/// +8 count  events
/// +16 bytes their bytes, in addition to count × `SiteSize` of their site
/// ```
#[repr(C, align(8))]
#[derive(Debug, Default)]
pub struct AllocationCounter {
    pub id: AtomicU64,
    pub count: AtomicU64,
    pub bytes: AtomicU64,
}

const _: () = assert!(size_of::<AllocationCounter>() == crate::layout::CELL as usize);

impl AllocationCounter {
    /// Assigns the counter to a context. Only its thread may call this, once.
    pub fn claim(&self, id: ContextId) {
        // Release: a reader that sees the id sees the records that were written before it.
        self.id.store(id.0.to_le(), Ordering::Release);
    }

    #[must_use]
    pub fn id(&self) -> ContextId {
        // Relaxed: read by the thread that stored it.
        ContextId(u64::from_le(self.id.load(Ordering::Relaxed)))
    }

    /// Counts one event of `bytes` bytes. Only its thread may call this.
    #[inline]
    pub fn count_event(&self, bytes: u64) {
        self.add_events(1, bytes);
    }

    /// Counts `events` events, of `bytes` bytes together. Only its thread may call this.
    #[inline]
    pub fn add_events(&self, events: u64, bytes: u64) {
        add_relaxed(&self.count, events);
        if bytes != 0 {
            add_relaxed(&self.bytes, bytes);
        }
    }
}

/// The events of one type and context in one thread.
///
/// ```text
/// +0  id    the context id; 0: not used yet
/// +8  type  an `EventType`'s id, then four zero bytes
/// +16 count events
/// +24 value the sum of their values, in the type's unit
/// ```
#[repr(C, align(8))]
#[derive(Debug, Default)]
pub struct EventCounter {
    pub id: AtomicU64,
    event: AtomicU32,
    zero: AtomicU32,
    pub count: AtomicU64,
    pub value: AtomicU64,
}

const _: () = assert!(size_of::<EventCounter>() == crate::layout::EVENT_CELL as usize);

impl EventCounter {
    /// The offset of the type in the counter.
    pub const TYPE_AT: usize = std::mem::offset_of!(EventCounter, event);

    /// Assigns the counter to a context and a type. Only its thread may call this, once.
    pub fn claim(&self, id: ContextId, event: EventTypeId) {
        // Relaxed: readers use it only after they see the id.
        self.event.store(event.0.to_le(), Ordering::Relaxed);
        // Release: a reader that sees the id sees the type, and the records that were written before it.
        self.id.store(id.0.to_le(), Ordering::Release);
    }

    #[must_use]
    pub fn id(&self) -> ContextId {
        // Relaxed: read by the thread that stored it.
        ContextId(u64::from_le(self.id.load(Ordering::Relaxed)))
    }

    /// Returns the type that it counts.
    #[must_use]
    pub fn event_type(&self) -> EventTypeId {
        // Relaxed: read by the thread that stored it.
        EventTypeId(u32::from_le(self.event.load(Ordering::Relaxed)))
    }

    /// Counts one event. Only its thread may call this.
    #[inline]
    pub fn count_event(&self, value: u64) {
        add_relaxed(&self.count, 1);
        if value != 0 {
            add_relaxed(&self.value, value);
        }
    }

    /// Keeps the largest value, as one event. Only its thread may call this.
    pub fn keep_longest(&self, value: u64) {
        // Relaxed: only this thread writes; readers need no order.
        let known = u64::from_le(self.value.load(Ordering::Relaxed));
        self.count.store(1_u64.to_le(), Ordering::Relaxed);
        self.value
            .store(value.max(known).to_le(), Ordering::Relaxed);
    }

    /// Adds events with the sum of their values. Only its thread may call this.
    pub fn add_events(&self, events: u64, value: u64) {
        add_relaxed(&self.count, events);
        add_relaxed(&self.value, value);
    }
}

/// A sum over all threads; a `StatRecord` repeats it at the end.
///
/// ```text
/// +0  key    UTF-8, padded with zeros; only the writer changes it
/// +56 value
/// ```
#[repr(C, align(8))]
#[derive(Debug, Default)]
pub struct TotalCounter {
    key: [AtomicU64; 7],
    value: AtomicU64,
}

const _: () = assert!(size_of::<TotalCounter>() == crate::layout::TOTAL as usize);

impl TotalCounter {
    /// Adds one; any thread may call this.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds a number; any thread may call this.
    pub fn add(&self, more: u64) {
        // Relaxed, twice: no other data depends on the number.
        let more = |value: u64| Some(u64::from_le(value).wrapping_add(more).to_le());
        let _ = self
            .value
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }
}

/// The allocated bytes that the VM reports for the threads of one thread id. One thread at a time may write it.
///
/// ```text
/// +0  thread the thread id; 0: threads that have none
/// +4  flags  1 in use, 2 carriers of virtual threads
/// +8  bytes  bytes that they allocated while they were followed
/// +16 at     time of the VM's report, nanoseconds since 1970
/// ```
///
/// A counter with flag 4 alone holds what the counters of that thread id had counted at that time:
///
/// ```text
/// +0  thread  the thread id
/// +4  flags   4
/// +8  bytes   the sum of the counters' bytes
/// +16 objects the events of counters without bytes, whose objects have the size of their site
/// ```
#[repr(C, align(8))]
#[derive(Debug, Default)]
pub struct VmCounter {
    thread: AtomicU32,
    flags: AtomicU32,
    bytes: AtomicU64,
    at: AtomicU64,
}

const _: () = assert!(size_of::<VmCounter>() == crate::layout::VM_CELL as usize);

impl VmCounter {
    pub(crate) const IN_USE: u32 = 1;
    pub(crate) const CARRIERS: u32 = 2;
    pub(crate) const COUNTED: u32 = 4;

    /// Assigns the counter to the threads of a thread id.
    pub fn claim(&self, thread: ThreadId, carriers: bool) {
        let flags = match carriers {
            true => Self::IN_USE | Self::CARRIERS,
            false => Self::IN_USE,
        };
        // Relaxed: readers use it only after they see the flags.
        self.thread.store(thread.0.to_le(), Ordering::Relaxed);
        // Release: a reader that sees the flags sees the thread.
        self.flags.store(flags.to_le(), Ordering::Release);
    }

    /// Assigns the counter to the sum that a thread id's counters have counted.
    pub fn claim_counted(&self, thread: ThreadId) {
        // Relaxed: readers use it only after they see the flags.
        self.thread.store(thread.0.to_le(), Ordering::Relaxed);
        // Release: a reader that sees the flags sees the thread.
        self.flags.store(Self::COUNTED.to_le(), Ordering::Release);
    }

    /// Stores what the thread id's counters have counted, after [`VmCounter::claim_counted`].
    pub fn set_counted(&self, bytes: u64, objects: u64) {
        self.set_reading(bytes, objects);
    }

    /// Stores the VM's report.
    pub fn set_reading(&self, bytes: u64, at: u64) {
        // Relaxed: the numbers do not depend on each other.
        self.bytes.store(bytes.to_le(), Ordering::Relaxed);
        self.at.store(at.to_le(), Ordering::Relaxed);
    }
}

#[inline]
fn add_relaxed(to: &AtomicU64, more: u64) {
    // Relaxed, twice: this thread is the only writer, and the numbers do not depend on each other.
    let sum = u64::from_le(to.load(Ordering::Relaxed)).wrapping_add(more);
    to.store(sum.to_le(), Ordering::Relaxed);
}

/// Counters in the log. Their addresses are stable while this or the writer lives.
pub struct CounterBlock<C = AllocationCounter> {
    map: Arc<MappedFile>,
    offset: u64,
    first: NonNull<C>,
    count: u32,
    thread: ThreadId,
}

#[allow(
    unsafe_code,
    reason = "the pointer is the map's, which this keeps alive"
)]
mod shared {
    use super::{AllocationCounter, CounterBlock, Deref, EventCounter, TotalCounter, VmCounter};
    use crate::mapped_file::SharedCounter;

    // SAFETY: all its fields are atomics.
    unsafe impl SharedCounter for AllocationCounter {}
    // SAFETY: all its fields are atomics.
    unsafe impl SharedCounter for EventCounter {}
    // SAFETY: all its fields are atomics.
    unsafe impl SharedCounter for TotalCounter {}
    // SAFETY: all its fields are atomics.
    unsafe impl SharedCounter for VmCounter {}

    // SAFETY: counters are atomics; the map that holds them is kept alive.
    unsafe impl<C: SharedCounter> Send for CounterBlock<C> {}
    // SAFETY: counters are atomics, so several threads may use them; the map that holds them is kept alive.
    unsafe impl<C: SharedCounter> Sync for CounterBlock<C> {}

    impl<C: SharedCounter> Deref for CounterBlock<C> {
        type Target = [C];

        fn deref(&self) -> &[C] {
            // SAFETY: `new` takes the result of this map's `first_counter`.
            unsafe { self.map.counter_slice(self.first, self.count) }
        }
    }

    impl<C: SharedCounter> CounterBlock<C> {
        /// Returns the counters with a lifetime that the caller guarantees.
        ///
        /// # Safety
        /// No thread uses them when the counters, and all others of this log, are dropped.
        #[must_use]
        pub unsafe fn as_static(&self) -> &'static [C] {
            // SAFETY: `new` takes the result of this map's `first_counter`; the caller promises that the map lives.
            unsafe { &*std::ptr::from_ref(self.map.counter_slice(self.first, self.count)) }
        }
    }
}

impl<C: SharedCounter> CounterBlock<C> {
    pub(crate) fn new(
        map: &Arc<MappedFile>,
        offset: u64,
        (thread, count): (ThreadId, u32),
    ) -> Option<Self> {
        let first = map.first_counter(offset, count)?;
        Some(CounterBlock {
            map: Arc::clone(map),
            offset,
            first,
            count,
            thread,
        })
    }

    /// Returns the thread id of the threads that count here; 0 if the counters belong to no thread.
    #[must_use]
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Releases the process's memory for their pages until they are counted in again.
    pub fn release_pages(&self) {
        let bytes = u64::from(self.count) * size_of::<C>() as u64;
        self.map.release_pages(self.offset, bytes);
    }

    /// Returns the address of the first counter, for code that is not Rust.
    #[must_use]
    pub fn address(&self) -> usize {
        self.first.as_ptr() as usize
    }
}
