//! Where a thread's next event goes. The thread alone writes here, in Rust or in Java.
//!
//! ```text
//! +0  next   address of the next entry
//! +8  end    address behind the block; −1: the file is full, nothing more is written
//! +16 clock  from which the block's times count
//! ```
//! At first all are 0: there is no room before the first block.
#![allow(unsafe_code, reason = "entries lie in a mapped file")]

use std::cell::Cell;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::StreamThread;
use crate::entry::{Entry, LONGEST, SWITCH, WORD};
use crate::java::{PLACE_CLOCK, PLACE_END, PLACE_NEXT};
use crate::writer::{Block, Writer};

const REFUSED: u64 = u64::MAX;

/// See above; the fields that Java code knows come first.
#[repr(C)]
#[derive(Default, Debug)]
pub struct Place {
    next: AtomicU64,
    end: AtomicU64,
    clock: AtomicU64,
    block: Cell<Option<Block>>,
}

// As in the helper class.
const _: () = assert!(offset_of!(Place, next) == PLACE_NEXT);
const _: () = assert!(offset_of!(Place, end) == PLACE_END);
const _: () = assert!(offset_of!(Place, clock) == PLACE_CLOCK);

impl Place {
    pub(crate) fn new(block: Block) -> Place {
        let first = block.address as u64;
        Place {
            next: first.into(),
            end: (first + block.capacity).into(),
            clock: block.clock.into(),
            block: Cell::new(Some(block)),
        }
    }

    pub(crate) fn refused() -> Place {
        Place {
            end: REFUSED.into(),
            ..Place::default()
        }
    }

    /// Nothing more is written here.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.end.load(Ordering::Relaxed) == REFUSED
    }

    /// Bytes of the block's entries.
    pub(crate) fn used(&self) -> u64 {
        let first = self.block.get().map_or(0, |block| block.address as u64);
        // Relaxed, here and below: this thread's own.
        self.next.load(Ordering::Relaxed).saturating_sub(first)
    }

    /// Writes an event of the thread, at the time `now`; values of 0 need no room. `false`: there is no
    /// room for it here.
    #[inline]
    pub fn put(&self, now: u64, kind: u32, number: u64, value: i64) -> bool {
        let entry = Entry {
            passed: now.wrapping_sub(self.clock.load(Ordering::Relaxed)),
            kind,
            number,
            value,
        };
        self.put_entry(&entry)
    }

    /// The entries from here on are of another thread.
    pub(crate) fn switch(&self, now: u64, thread: StreamThread) -> bool {
        self.put(now, SWITCH, thread.0.into(), 0)
    }

    fn put_entry(&self, entry: &Entry) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        let end = self.end.load(Ordering::Relaxed);
        let fits = self.block.get().is_some() && end.saturating_sub(next) >= LONGEST as u64;
        let Some(head) = entry.head().filter(|_| fits) else {
            return false;
        };
        // SAFETY: the block is mapped as long as the writer, which lives as long as the process; it has
        // at least three words left, aligned; only the thread that has this place writes there.
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

    /// Goes on with what another thread left: `thread`'s events from now on. `false`: no room.
    #[must_use]
    pub fn hand_over(&self, now: u64, thread: StreamThread) -> bool {
        // Room for the thread's first event, too, or the switch is all there is.
        let room = self.end.load(Ordering::Relaxed);
        let next = self.next.load(Ordering::Relaxed);
        room.saturating_sub(next) >= 2 * LONGEST as u64 && self.switch(now, thread)
    }

    /// A place with room for the thread's next event, in a new block, or none if the file is full.
    pub fn renew(
        &self,
        writer: &Writer,
        (lane, thread): (crate::ThreadId, StreamThread),
        now: u64,
    ) {
        let old = self.block.get();
        if let Some(old) = old {
            writer.seal(old, self.used());
        }
        let capacity = old.map_or(0, |old| old.capacity * 2);
        self.go_to(writer.place(lane, thread, capacity, now));
    }

    /// Whether anything was written here.
    #[must_use]
    pub fn has_block(&self) -> bool {
        self.block.get().is_some()
    }

    /// The thread's next events go elsewhere: what is left here. From now on there is no room.
    #[must_use]
    pub fn leave(&self) -> Place {
        let left = Place::default();
        left.go_to_that_of(self);
        self.go_to(Place::default());
        left
    }

    /// The thread's next events go there.
    pub fn go_to(&self, other: Place) {
        self.go_to_that_of(&other);
    }

    fn go_to_that_of(&self, other: &Place) {
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
