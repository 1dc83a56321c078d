//! What the helper classes (Java) and the agent (Rust) share.
//!
//! ```text
//! shared_layout, lab_layout, event_bits, stream_entry ─► the agent's build ─► LucceRtLayout.java   constants
//! helper_variant                          ─► the agent's build ─► LucceRtVariant.java  one for each variant
//! event_mask, site_method, text_numbers   words that Java code reads without locks
//! ```
//!
//! The words have model tests: `tests/loom` runs them through every interleaving of relaxed memory.

pub mod event_bits;
pub mod helper_variant;
pub mod lab_layout;
pub mod shared_layout;
pub mod stream_entry;

pub mod event_mask;
pub mod site_method;
pub mod text_numbers;

mod sync;

pub use helper_variant::{HelperVariant, LabFeatures};
