//! The agent's counters of itself.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// The counts in the log's end record.
#[derive(Default)]
pub struct AgentCounts {
    pub classes: AtomicU64,
    /// Classes from the cache of an earlier run; included in `classes`.
    pub classes_cached: AtomicU64,
    pub classes_skipped: AtomicU64,
    /// Classes that kept old hooks, because these cannot be distinguished from a Java agent's code.
    pub classes_kept: AtomicU64,
    pub methods_skipped: AtomicU64,
    pub events_dropped: AtomicU64,
    /// Counters for which Java code called the agent; it adds most of them itself.
    pub counters_requested: AtomicU64,
    pub compared: AtomicU64,
    pub mismatches: AtomicU64,
    /// Events chosen for verification that have no number, because they were dropped.
    pub dropped_uncompared: AtomicU64,
    /// Events chosen for verification whose frames the VM did not report.
    pub frames_unknown: AtomicU64,
    pub vm_entries: AtomicU64,
    /// VM entries that one or two frames proved.
    pub vm_entries_near: AtomicU64,
    /// VM entries that did not ask the VM for their caller.
    pub vm_entries_deferred: AtomicU64,
    /// Deferred VM entries for which the VM was asked later, because a context was needed.
    pub vm_entries_located: AtomicU64,
    /// VM entries whose slots did not match, and whose context comes from the frames alone.
    pub vm_entries_by_frames: AtomicU64,
    /// VM entries whose caller is not known.
    pub vm_entries_unresolved: AtomicU64,
    /// The same by reason: see `entry_loss::LossReason`.
    pub vm_entries_unresolved_by: [AtomicU64; 3],
    /// Calls from code without hooks at places that no hook describes.
    pub untracked_calls: AtomicU64,
    pub repairs: AtomicU64,
    pub panics: AtomicU64,
    pub next_thread: AtomicU32,
}
