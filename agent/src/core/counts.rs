//! What the agent counts of itself.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// What the log says at its end.
#[derive(Default)]
pub struct AgentCounts {
    pub classes: AtomicU64,
    /// Of them, those that an earlier run has made.
    pub classes_cached: AtomicU64,
    pub classes_skipped: AtomicU64,
    /// With hooks of before, because they cannot be told from a Java agent's code.
    pub classes_kept: AtomicU64,
    pub methods_skipped: AtomicU64,
    pub events_dropped: AtomicU64,
    pub compared: AtomicU64,
    pub mismatches: AtomicU64,
    /// Events that were to be compared and have no number: they are dropped.
    pub dropped_uncompared: AtomicU64,
    /// Events that were to be compared while the VM did not give their frames.
    pub frames_unknown: AtomicU64,
    pub vm_entries: AtomicU64,
    /// Of those, where one frame or two have told enough.
    pub vm_entries_near: AtomicU64,
    /// Of those, where the slots are not those of the frames, and the frames alone tell the context.
    pub vm_entries_by_frames: AtomicU64,
    /// Of those, where the caller is not known.
    pub vm_entries_unresolved: AtomicU64,
    /// Of those, by reason: see `entry_loss::LossReason`.
    pub vm_entries_unresolved_by: [AtomicU64; 3],
    /// How often code without hooks was about to call from a place that no hook says.
    pub untracked_calls: AtomicU64,
    pub repairs: AtomicU64,
    pub panics: AtomicU64,
    pub next_thread: AtomicU32,
}
