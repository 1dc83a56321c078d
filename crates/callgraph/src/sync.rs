//! The only module that imports atomics and locks: from std, or from loom for the model test.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

// Not modelled: the relevant orderings are those of the index beside it.
pub(crate) use std::sync::OnceLock;

/// The initial number of slots of a table; tiny under the model, so that it includes growth.
pub(crate) const FIRST_SLOTS: usize = if cfg!(loom) { 2 } else { 1024 };
