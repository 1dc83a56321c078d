//! Slots of shadow stacks, as native code reads and writes them.
//!
//! Java code passes addresses of slots, and its pointers may be stale. So no address is trusted. Outside of memory
//! that was mapped for slots, a read returns 0, like a slot without a site. A write there does nothing.
//!
//! ```text
//! +0 u32 site, +4 u32 callee   where the slot's frame is calling from; whose context the memo is, 0: none
//! +8 u64 context               the memo
//! ```
#![allow(unsafe_code, reason = "memory that code of the JVM writes by address")]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use lucce_callgraph::{ContextId, MethodId, SiteId};

pub use crate::memory::shared_layout::EVENT_MASK;
use crate::memory::shared_layout::{CONTEXT, IN_DOWNCALL, LOCK_TURNS, LOCK_WAITS, SLOT, TAG_SHIFT};

/// The site in a slot whose frame, the caller of the frame above, is not known. Only a memo can give the frame above
/// a context.
pub const LOST: u32 = SiteId::MAX;

/// The site in the two slots below the frame of a deferred VM entry: see `stack::deferred_entries`.
pub const VM_ENTRY: u32 = SiteId::MAX - 1;

/// Addresses of slots are relative to it: see the helper class.
static BASE: AtomicUsize = AtomicUsize::new(0);

/// Parts of the memory of slots. Each is mapped once, may grow at its end, and is never unmapped.
#[derive(Clone, Copy)]
pub enum SlotMemoryPart {
    /// For frames of unknown threads, and the event mask.
    Scratch,
    Stacks,
    /// Second parts of slots.
    Beside,
}

struct MappedSlots {
    start: AtomicUsize,
    end: AtomicUsize,
}

static MAPPED: [MappedSlots; 3] = [const {
    MappedSlots {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
    }
}; 3];

/// Declares the memory from `start` to `end` as memory of slots.
///
/// # Safety
/// The memory can be read and written until the process ends, and is accessed atomically only.
pub unsafe fn map_slots(part: SlotMemoryPart, start: usize, end: usize) {
    let mapped = &MAPPED[part as usize];
    mapped.start.store(start, Ordering::Relaxed);
    // Release: a thread that sees the end sees the start. Pairs with the Acquire in `word_at`.
    mapped.end.store(end, Ordering::Release);
}

/// Sets the base of slot addresses.
pub fn set_base_address(base: usize) {
    BASE.store(base, Ordering::Relaxed);
}

/// The base that Java code adds to the address of a slot.
pub fn base_address() -> usize {
    BASE.load(Ordering::Relaxed)
}

/// The word at an address. `None`: it is not memory of slots.
fn word_at(at: usize) -> Option<&'static AtomicU64> {
    let is_in = |mapped: &MappedSlots| {
        // Acquire: pairs with the Release in `map_slots`.
        let end = mapped.end.load(Ordering::Acquire);
        at < end && at >= mapped.start.load(Ordering::Relaxed)
    };
    // Parts begin and end at pages, so the word's last byte is inside as well.
    (at.is_multiple_of(size_of::<u64>()) && MAPPED.iter().any(is_in)).then(|| {
        // SAFETY: the caller of `map_slots` guarantees that the memory lasts and is used atomically. The address is aligned.
        unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(at)) }
    })
}

/// The word of the event mask. `None`: the agent has no memory yet.
pub fn event_mask_word() -> Option<&'static AtomicU64> {
    word_at(base_address().wrapping_sub(EVENT_MASK))
}

/// The word with a bit for each wait whose holder is unknown. `None`: the agent has no memory yet.
pub fn lock_waits_word() -> Option<&'static AtomicU64> {
    word_at(base_address().wrapping_sub(LOCK_WAITS))
}

/// The word with the turn of a wait's slot.
pub fn lock_turn_word(slot: usize) -> Option<&'static AtomicU64> {
    let offset = slot * size_of::<u64>();
    word_at(base_address().wrapping_sub(LOCK_TURNS).wrapping_add(offset))
}

/// A slot by its address, relative to [`base_address`]. Slots of unknown threads are in the scratch memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Slot(usize);

impl Slot {
    /// From the value that Java code uses, such as a thread's pointer.
    pub const fn from_pointer(pointer: usize) -> Slot {
        Slot(pointer)
    }

    /// From an absolute address.
    pub fn from_address(address: usize) -> Slot {
        Slot(address.wrapping_sub(base_address()))
    }

    /// The value that Java code uses.
    pub const fn pointer(self) -> usize {
        self.0
    }

    /// The slot of the callee's frame.
    pub const fn above(self) -> Slot {
        self.up_by(1)
    }

    /// The slot of the caller's frame.
    pub const fn below(self) -> Slot {
        Slot(self.0.wrapping_sub(SLOT))
    }

    pub const fn up_by(self, frames: usize) -> Slot {
        Slot(self.0.wrapping_add(SLOT * frames))
    }

    /// The number of frames from `other` up to this slot; very large if this slot is below `other`.
    pub const fn frames_above(self, other: Slot) -> usize {
        self.0.wrapping_sub(other.0) / SLOT
    }

    /// The slots from this one up to, but not including, `end`.
    pub fn slots_until(self, end: Slot) -> impl Iterator<Item = Slot> {
        (self.0..end.0).step_by(SLOT).map(Slot)
    }

    fn word_at(self, offset: usize) -> Option<&'static AtomicU64> {
        word_at(self.0.wrapping_add(base_address()).wrapping_add(offset))
    }

    /// The slot's site; 0: it has none, or the address is not a slot.
    pub fn site(self) -> SiteId {
        SiteId(self.first_word() as u32)
    }

    /// The slot's first word: site and callee of the memo.
    pub fn first_word(self) -> u64 {
        self.load_word(0)
    }

    /// A word in or beside the slot; 0 if the address is not a slot.
    pub fn load_word(self, offset: usize) -> u64 {
        // Relaxed: the thread's own word, or one whose every version is valid.
        self.word_at(offset)
            .map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Writes a word in or beside the slot; does nothing if the address is not a slot.
    pub fn store_word(self, offset: usize, value: u64) {
        if let Some(word) = self.word_at(offset) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Writes a site and clears the memo.
    pub fn write_site(self, site: SiteId) {
        self.store_word(0, site.0.into());
    }

    /// Clears the mark of a call of a C function: a frame has the slot now.
    pub fn clear_downcall(self) {
        if self.load_word(CONTEXT) == IN_DOWNCALL as u64 {
            self.store_word(CONTEXT, 0);
        }
    }

    /// The memo: the callee, 0: none; and the callee's context.
    pub fn memo(self) -> (MethodId, ContextId) {
        let callee = (self.first_word() >> TAG_SHIFT) as u32;
        (MethodId(callee), ContextId(self.load_word(CONTEXT)))
    }

    /// Stores the context of `callee`, which is called from the slot's site.
    pub fn write_memo(self, callee: MethodId, context: ContextId) {
        self.store_word(CONTEXT, context.0);
        let site = self.site();
        self.store_word(0, u64::from(callee.0) << TAG_SHIFT | u64::from(site.0));
    }
}

/// The slots of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotRange {
    /// The sentinel, below the first frame's slot.
    pub start: Slot,
    pub end: Slot,
}

impl SlotRange {
    #[cfg(feature = "lab")]
    pub fn slots(self) -> impl Iterator<Item = Slot> {
        self.start.slots_until(self.end)
    }

    /// Whether the slot belongs to a frame.
    pub fn contains(self, slot: Slot) -> bool {
        slot > self.start && slot < self.end
    }
}

#[cfg(test)]
mod slots_tests {
    use super::*;
    use crate::memory::address_space;

    #[test]
    fn a_frame_in_a_slot_ends_the_downcall() {
        let region = address_space::shared_stacks().take_region(1 << 20).unwrap();
        let slot = Slot::from_address(region.start()).above();
        slot.write_site(SiteId(7));
        slot.store_word(CONTEXT, IN_DOWNCALL as u64);
        slot.clear_downcall();
        assert_eq!((slot.site(), slot.load_word(CONTEXT)), (SiteId(7), 0));
        // A memo stays.
        slot.write_memo(MethodId(3), ContextId(99));
        slot.clear_downcall();
        assert_eq!(slot.memo(), (MethodId(3), ContextId(99)));
    }

    #[test]
    fn a_slot_holds_a_site_and_a_memo_and_nothing_lies_elsewhere() {
        let region = address_space::shared_stacks().take_region(1 << 20).unwrap();
        let first = Slot::from_address(region.start());
        assert_eq!(first.site(), SiteId::ENTRY);
        // A thread of another test may have used the region.
        first
            .slots_until(first.up_by(4))
            .for_each(|slot| slot.write_site(SiteId(0)));
        let second = first.above();
        second.write_site(SiteId(7));
        second.write_memo(MethodId(3), ContextId(99));
        assert_eq!(
            (second.site(), second.memo()),
            (SiteId(7), (MethodId(3), ContextId(99)))
        );
        second.write_site(SiteId(8));
        assert_eq!(
            (second.site(), second.memo().0),
            (SiteId(8), MethodId(0)),
            "a new site has no memo"
        );
        assert_eq!(
            (first.site(), first.up_by(2).site()),
            (SiteId(0), SiteId(0))
        );
        assert_eq!(first.slots_until(first.up_by(4)).count(), 4);
        assert_eq!(first.up_by(3).frames_above(first), 3);
        let odd = Slot::from_pointer(first.pointer() + 4);
        let unmapped = Slot::from_address(1 << 50);
        for outside in [
            odd,
            unmapped,
            Slot::from_address(0),
            Slot::from_pointer(usize::MAX),
        ] {
            outside.write_site(SiteId(5));
            outside.write_memo(MethodId(5), ContextId(5));
            assert_eq!(outside.site(), SiteId(0), "{outside:?}");
        }
        assert_eq!(second.site(), SiteId(8));
    }
}
