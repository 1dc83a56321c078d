//! Where a thread is: its shadow stack beside what the VM says of its frames.

pub mod call_recording;
pub mod class_versions;
pub mod context_scopes;
pub mod contexts;
pub mod current_location;
pub mod entry_loss;
pub mod forced_frame_end;
pub mod frames;
pub mod innermost_frames;
mod late_classes;
pub mod monitor_location;
#[cfg(test)]
mod simulated_thread;
pub mod tasks;
pub mod throwable_trace;
pub mod trace;
pub mod uninstrumented;
pub mod unloading;
pub mod verified_traces;
pub mod verify;
pub mod vm_entry;
pub mod vm_entry_cache;

use std::ops::Deref;

use crate::thread::CounterStore;

use frames::FrameCache;
use tasks::TaskOrigins;
use throwable_trace::ThrowableTraces;
use trace::LogArchive;
use verified_traces::VerifiedTraces;
use vm_entry_cache::VmEntryCache;

pub use late_classes::add_class;

pub struct StackTracker {
    pub counters: CounterStore,
    pub frames: FrameCache,
    /// From where methods are called that the VM enters, too.
    pub vm_entry_cache: VmEntryCache,
    /// Only with `verify=N`: what was compared already.
    pub verified_traces: VerifiedTraces,
    /// What the log says of classes that are gone.
    pub archive: LogArchive,
    /// Where tasks of executors were submitted.
    pub tasks: TaskOrigins,
    /// For frames that may run older code.
    pub throwables: ThrowableTraces,
}

impl Deref for StackTracker {
    type Target = CounterStore;

    fn deref(&self) -> &CounterStore {
        &self.counters
    }
}

impl StackTracker {
    /// Methods may have other code now.
    pub fn forget_code(&self) {
        self.frames.forget_all();
        self.vm_entry_cache.forget_all();
        self.verified_traces.forget_all();
    }

    pub fn new(counters: CounterStore) -> StackTracker {
        StackTracker {
            counters,
            frames: FrameCache::default(),
            vm_entry_cache: VmEntryCache::default(),
            verified_traces: VerifiedTraces::default(),
            archive: LogArchive::default(),
            tasks: TaskOrigins::default(),
            throwables: ThrowableTraces::default(),
        }
    }
}
