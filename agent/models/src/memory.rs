//! Includes files of the agent's module `memory`.

#[path = "../../src/memory/event_mask.rs"]
pub mod event_mask;
#[path = "../../src/memory/owner.rs"]
pub mod owner;

use crate::sync;

/// Replaces the agent's word beside the scratch memory.
pub mod slots {
    use crate::sync::AtomicU64;

    loom::lazy_static! {
        static ref GATE: AtomicU64 = AtomicU64::new(0);
    }

    pub fn event_mask_word() -> Option<&'static AtomicU64> {
        Some(&GATE)
    }
}
