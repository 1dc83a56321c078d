//! The one place that atomics and locks come from: std's, or loom's for the model test.

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

// Not modelled: the orderings that matter are those of the index beside it.
pub(crate) use std::sync::OnceLock;

/// A table's first number of slots: tiny under the model, so that growth happens in it.
pub(crate) const FIRST_SLOTS: usize = if cfg!(loom) { 2 } else { 1024 };
