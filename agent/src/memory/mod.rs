//! Memory that Java code reads as well, and compact tables. Nothing here knows its purpose.
//!
//! Start with [`shared_layout`], the contract with the helper classes, and [`slots`]. [`address_space`] reserves the
//! memory; [`event_mask`], [`java_table`] and [`java_caches`] are read by Java code.

pub mod address_space;
pub mod allocation_weight;
pub mod bit_set;
pub mod counter;
pub mod event_mask;
pub mod grow_only_array;
pub mod java_caches;
pub mod java_table;
#[cfg(feature = "lab")]
pub mod lab_layout;
pub mod locks;
pub mod owner;
pub mod pages;
pub mod shared_layout;
pub mod slots;
pub mod text_table;

/// What the files that `models/` includes are made of.
pub mod sync {
    pub use std::sync::atomic::{AtomicU32, Ordering};
    pub use std::sync::{Mutex, MutexGuard, PoisonError};
}
