//! The position of a thread: its shadow stack, compared with the frames that the VM reports.
//!
//! ```text
//! event, VM entry ─► frames: the VM's frames, resolved by the registry
//!                      ├─► deferred_entries: nothing is asked until a look-up needs the caller
//!                      ├─► innermost_frames, vm_entry_sites: a few frames prove the slot
//!                      └─► vm_entry: all frames are matched with all slots
//! slot, site      ─► current_location ─► caller_location ─► contexts ─► number
//! number          ─► trace: frames for the program; verify: comparison with the VM's trace
//! ```
//!
//! Read [`frames`], [`caller_frames`] and [`vm_entry`] first, then [`current_location`] and [`tasks`]. `simulated_thread` tests the
//! matching against a plain stack.

pub mod assembly;
pub mod caller_frames;
pub mod caller_location;
pub mod class_versions;
mod context_memo;
pub mod context_scopes;
pub mod contexts;
pub mod continuations;
pub mod current_location;
pub mod deferred_entries;
#[cfg(test)]
mod deferred_entries_tests;
pub mod entry_loss;
pub mod forced_frame_end;
pub mod frames;
pub mod innermost_frames;
mod late_classes;
pub mod marker_frames;
pub mod monitor_location;
#[cfg(test)]
mod simulated_thread;
mod slot_runs;
pub mod tasks;
pub mod throwable_trace;
pub mod trace;
pub mod uninstrumented;
pub mod unloading;
pub mod verified_traces;
pub mod verify;
pub mod vm_entry;
pub mod vm_entry_sites;

use lucce_instrument::kinds::ALLOC;

use crate::core::AgentCore;
use crate::thread::{CounterStore, ThreadParts};

use assembly::AssemblyContexts;
use continuations::ContinuationContexts;
use frames::FrameCache;
use marker_frames::UnknownCallers;
use tasks::TaskOrigins;
use throwable_trace::ThrowableTraces;
use trace::LogArchive;
use verified_traces::VerifiedTraces;
use vm_entry_sites::VmEntrySites;

pub use late_classes::add_class;

/// The parts of the agent that the layer of stacks uses: its own, and those of the layers below.
#[derive(Clone, Copy)]
pub struct StackParts<'a> {
    pub core: &'a AgentCore,
    pub counters: &'a CounterStore,
    pub stack: &'a StackTracker,
}

impl<'a> StackParts<'a> {
    pub fn thread_parts(self) -> ThreadParts<'a> {
        ThreadParts {
            core: self.core,
            counters: self.counters,
        }
    }

    /// Whether hooks defer VM entries. Where every allocation counts, most entries need their caller at once, and a few frames
    /// prove it then.
    pub fn defers_entries(self) -> bool {
        let tracking = &self.counters.tracking;
        let options = &self.core.options;
        let is_frequent = options.kinds_in_code().contains(&ALLOC);
        tracking.is_lazy() && !tracking.records_calls() && (options.is_partial() || !is_frequent)
    }
}

/// The state of stack tracking: caches of frames and VM entries.
#[derive(Default)]
pub struct StackTracker {
    pub frames: FrameCache,
    /// Places from which the VM enters methods: one or two frames prove the slot there.
    pub vm_entry_sites: VmEntrySites,
    /// Only with `verify=N`: traces that were compared already.
    pub verified_traces: VerifiedTraces,
    /// The log's records of unloaded classes.
    pub archive: LogArchive,
    /// Where tasks of executors were submitted.
    pub tasks: TaskOrigins,
    /// Where code of operators goes on.
    pub assembly: AssemblyContexts,
    /// Where resumed continuations of Kotlin go on.
    pub continuations: ContinuationContexts,
    pub unknown_callers: UnknownCallers,
    /// Lines of frames that may run older code.
    pub throwables: ThrowableTraces,
}

impl StackTracker {
    /// Forgets everything that was read from code, because methods may have other code now.
    pub fn forget_code(&self) {
        self.frames.forget_all();
        self.vm_entry_sites.forget_all();
        self.verified_traces.forget_all();
    }
}
