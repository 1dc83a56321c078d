//! Memory that Java code reads as well, and compact tables: nothing here knows what it is for.

pub mod bits;
pub mod copies;
pub mod counter;
pub mod gate;
pub mod java_table;
pub mod locks;
pub mod map;
pub mod owner;
pub mod pages;
pub mod rows;
pub mod shared_layout;
pub mod slots;
pub mod texts;
pub mod weight;

/// What the files that `models/` has, too, are made of.
pub mod sync {
    pub use std::sync::atomic::{AtomicU32, Ordering};
    pub use std::sync::{Mutex, MutexGuard, PoisonError};
}
