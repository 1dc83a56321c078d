//! Collections of the whole heap, by the VM's own counters.

use std::sync::atomic::{AtomicU64, Ordering};

use lucce_jvmti::gc_counters::{CyclePauses, GcCounters};
use lucce_jvmti::{VmHandle, flags};

/// The VM's counters. Only the VM's thread updates the fields, at the end of a collection.
pub struct FullCollections {
    counters: GcCounters,
    max_heap_bytes: Option<u64>,
    exit_flag: Option<&'static str>,
    /// Number of full collections at the end of the last collection.
    count: AtomicU64,
    /// Index of the last full collection among all collections; 0: none.
    last: AtomicU64,
}

/// The full collections so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FullCollectionCount {
    pub count: u64,
    /// Index of the last full collection among all collections; 0: none.
    pub last: u64,
}

impl FullCollections {
    /// Reads the counters of an initialized VM.
    pub fn from_vm(vm: VmHandle) -> FullCollections {
        let counters = GcCounters::find_in(vm.as_raw());
        FullCollections {
            count: AtomicU64::new(counters.full_collections().unwrap_or(0)),
            last: AtomicU64::new(0),
            max_heap_bytes: flags::max_heap_bytes(vm.as_raw()),
            exit_flag: flags::exit_on_exhaustion(vm.as_raw()),
            counters,
        }
    }

    /// Called at the end of the `collection`-th collection. Returns whether it was one of the whole heap.
    pub fn record_collection(&self, collection: u64) -> bool {
        let Some(count) = self.counters.full_collections() else {
            return false;
        };
        // Relaxed: no other thread writes, and readers come later than the collection.
        let before = self.count.swap(count, Ordering::Relaxed);
        if count == before {
            return false;
        }
        // Release: pairs with `current_count`, so that the count there is not older.
        self.last.store(collection, Ordering::Release);
        true
    }

    /// The full collections at the end of the last collection.
    pub fn current_count(&self) -> FullCollectionCount {
        // Acquire: pairs with `record_collection`.
        let last = self.last.load(Ordering::Acquire);
        FullCollectionCount {
            count: self.count.load(Ordering::Relaxed),
            last,
        }
    }

    /// The VM's count of full collections. `None`: the VM does not count them.
    pub fn vm_count(&self) -> Option<u64> {
        self.counters.full_collections()
    }

    /// The pauses of a concurrent collector's cycles. `None`: the VM does not count them.
    pub fn cycle_pauses(&self) -> Option<CyclePauses> {
        self.counters.cycle_pauses()
    }

    /// Bytes in use after the last collection.
    pub fn used_bytes(&self) -> Option<u64> {
        self.counters.used_bytes()
    }

    /// Maximum size of the heap in bytes.
    pub fn max_heap_bytes(&self) -> Option<u64> {
        self.max_heap_bytes
    }

    /// The VM's flag by which it exits as soon as the heap is exhausted.
    pub fn exit_flag(&self) -> Option<&'static str> {
        self.exit_flag
    }

    /// Whether at most a quarter of the heap is free. Collectors reserve a part of it, so the next allocation may be the last one.
    /// `false` if the sizes are unknown.
    pub fn is_nearly_full(&self) -> bool {
        let full = |(used, most): (u64, u64)| used >= most / 4 * 3;
        self.used_bytes().zip(self.max_heap_bytes).is_some_and(full)
    }
}
