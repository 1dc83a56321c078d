//! Counters that live in the log itself: they survive the process.
//!
//! A cell has one writer, the thread that it was given to; so counting is a load, an addition and
//! a store, without a lock prefix. Readers are other processes, which read the file.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lucce_callgraph::ContextId;

use crate::map::Map;

/// The events of one context in one thread.
///
/// ```text
/// +0 id     the context's number; 0: not used yet
/// +8 count  events
/// +16 bytes what they took, beside count × `SiteSize` of their site
/// ```
#[repr(C, align(8))]
#[derive(Debug, Default)]
pub struct Cell {
    pub id: AtomicU64,
    pub count: AtomicU64,
    pub bytes: AtomicU64,
}

const _: () = assert!(size_of::<Cell>() == crate::layout::CELL as usize);

impl Cell {
    /// Gives the cell to a context. Only its thread may call this, once.
    pub fn claim(&self, id: ContextId) {
        // Release: a reader that sees the id sees the log that was written before it.
        self.id.store(id.0.to_le(), Ordering::Release);
    }

    #[must_use]
    pub fn id(&self) -> ContextId {
        // Relaxed: asked by the thread that stored it.
        ContextId(u64::from_le(self.id.load(Ordering::Relaxed)))
    }

    /// One more event, of `bytes` bytes. Only its thread may call this.
    #[inline]
    pub fn count(&self, bytes: u64) {
        add(&self.count, 1);
        if bytes != 0 {
            add(&self.bytes, bytes);
        }
    }
}

#[inline]
fn add(to: &AtomicU64, more: u64) {
    // Relaxed, twice: this thread is the only writer, and each number stands for itself.
    let sum = u64::from_le(to.load(Ordering::Relaxed)).wrapping_add(more);
    to.store(sum.to_le(), Ordering::Relaxed);
}

/// Cells in the log. They stay where they are as long as this or the writer lives.
pub struct Counters {
    map: Arc<Map>,
    first: NonNull<Cell>,
    count: u32,
}

#[allow(
    unsafe_code,
    reason = "the pointer is the map's, which this keeps alive"
)]
mod shared {
    use super::{Cell, Counters, Deref};

    // SAFETY: cells are atomics; the map that holds them is kept alive.
    unsafe impl Send for Counters {}
    // SAFETY: as above.
    unsafe impl Sync for Counters {}

    impl Deref for Counters {
        type Target = [Cell];

        fn deref(&self) -> &[Cell] {
            // SAFETY: `new` takes what this very map's `cells` answered.
            unsafe { self.map.cells_at(self.first, self.count) }
        }
    }
}

impl Counters {
    pub(crate) fn new(map: &Arc<Map>, offset: u64, count: u32) -> Option<Self> {
        let first = map.cells(offset, count)?;
        Some(Counters {
            map: Arc::clone(map),
            first,
            count,
        })
    }

    /// The address of the first cell, for code that is not Rust.
    #[must_use]
    pub fn address(&self) -> usize {
        self.first.as_ptr() as usize
    }
}
