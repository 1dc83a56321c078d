//! The position of a thread's next event. Only the thread itself writes it, in Rust or in Java.
//!
//! ```text
//! +0  next   address of the next entry
//! +8  end    address behind the block; −1: the file is full, nothing more is written
//! +16 clock  the origin of the block's times
//! ```
//! At first all fields are 0: before the first block there is no room.
#![allow(unsafe_code, reason = "entries lie in a mapped file")]

use std::cell::Cell;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::StreamThread;
use crate::entry::{LONGEST, StreamEntry, THREAD_SWITCH, WORD};
use lucce_layout::stream_entry::{PLACE_CLOCK, PLACE_END, PLACE_NEXT};

const REFUSED: u64 = u64::MAX;

/// A block of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MappedBlock {
    /// The file offset of its header.
    pub at: u64,
    /// The address of its first entry.
    pub address: usize,
    pub capacity: u64,
    pub clock: u64,
}

/// See the module's description; the fields that Java code uses come first.
#[repr(C)]
#[derive(Default, Debug)]
pub struct EventCursor {
    next: AtomicU64,
    end: AtomicU64,
    clock: AtomicU64,
    block: Cell<Option<MappedBlock>>,
}

// Must match the helper class.
const _: () = assert!(offset_of!(EventCursor, next) == PLACE_NEXT);
const _: () = assert!(offset_of!(EventCursor, end) == PLACE_END);
const _: () = assert!(offset_of!(EventCursor, clock) == PLACE_CLOCK);

impl EventCursor {
    pub(crate) fn new(block: MappedBlock) -> EventCursor {
        let first = block.address as u64;
        EventCursor {
            next: first.into(),
            end: (first + block.capacity).into(),
            clock: block.clock.into(),
            block: Cell::new(Some(block)),
        }
    }

    pub(crate) fn without_room() -> EventCursor {
        EventCursor {
            end: REFUSED.into(),
            ..EventCursor::default()
        }
    }

    /// Whether nothing more is written here.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.end.load(Ordering::Relaxed) == REFUSED
    }

    /// Returns the bytes of the block's entries.
    pub(crate) fn used_bytes(&self) -> u64 {
        let first = self.block.get().map_or(0, |block| block.address as u64);
        // Relaxed, here and below: only this thread uses it.
        self.next.load(Ordering::Relaxed).saturating_sub(first)
    }

    /// Writes an event of the thread at the time `now`. `false`: there is no room.
    ///
    /// A value of 0 needs no room.
    #[inline]
    pub fn write_event(&self, now: u64, kind: u32, number: u64, value: i64) -> bool {
        let entry = StreamEntry {
            elapsed_ns: now.wrapping_sub(self.clock.load(Ordering::Relaxed)),
            kind,
            number,
            value,
        };
        self.write_entry(&entry)
    }

    /// Writes that the following entries belong to another thread.
    pub(crate) fn write_switch(&self, now: u64, thread: StreamThread) -> bool {
        self.write_event(now, THREAD_SWITCH, thread.0.into(), 0)
    }

    fn write_entry(&self, entry: &StreamEntry) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        let end = self.end.load(Ordering::Relaxed);
        let fits = self.block.get().is_some() && end.saturating_sub(next) >= LONGEST as u64;
        let Some(head) = entry.encode_head().filter(|_| fits) else {
            return false;
        };
        // SAFETY: the block is mapped as long as the writer lives, which is as long as the process. At least three
        // aligned words are left. Only the thread of this cursor writes there.
        let [first, second, third] = [0, 1, 2]
            .map(|word| unsafe { AtomicU64::from_ptr((next as usize + word * WORD) as *mut u64) });
        second.store(entry.number.to_le(), Ordering::Relaxed);
        let mut words = 2;
        if entry.value != 0 {
            third.store(entry.value.cast_unsigned().to_le(), Ordering::Relaxed);
            words = 3;
        }
        // Release: a reader of the file that sees the first word sees the others.
        first.store(head.to_le(), Ordering::Release);
        self.next
            .store(next + (words * WORD) as u64, Ordering::Relaxed);
        true
    }

    /// Continues another thread's block with `thread`'s events. `false`: there is no room.
    #[must_use]
    pub fn hand_over_to(&self, now: u64, thread: StreamThread) -> bool {
        // Room for the switch and for the thread's first event.
        let room = self.end.load(Ordering::Relaxed);
        let next = self.next.load(Ordering::Relaxed);
        room.saturating_sub(next) >= 2 * LONGEST as u64 && self.write_switch(now, thread)
    }

    /// Returns the block in which events are written.
    pub(crate) fn block(&self) -> Option<MappedBlock> {
        self.block.get()
    }

    /// Whether there is a block.
    #[must_use]
    pub fn has_block(&self) -> bool {
        self.block.get().is_some()
    }

    /// Takes the position away from this cursor, which has no room from now on.
    #[must_use]
    pub fn take_cursor(&self) -> EventCursor {
        let left = EventCursor::default();
        left.copy_from(self);
        self.move_to(EventCursor::default());
        left
    }

    /// Moves to another position.
    pub fn move_to(&self, other: EventCursor) {
        self.copy_from(&other);
    }

    fn copy_from(&self, other: &EventCursor) {
        for (ours, theirs) in [
            (&self.next, &other.next),
            (&self.end, &other.end),
            (&self.clock, &other.clock),
        ] {
            ours.store(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.block.set(other.block.get());
    }
}
