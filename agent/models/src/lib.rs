//! Parts of the agent that Java code reads without locks, in a model of the relaxed memory of C++: every interleaving, and every
//! value that a load may see. The agent itself cannot be in a model: its memory is mapped, and the VM is its other half.
//!
//! `cargo xtask loom`

#![cfg(loom)]

pub mod memory;
#[path = "../../src/counting/places.rs"]
pub mod places;

/// What the files of the agent take from here, in place of the standard library's.
mod sync {
    pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    pub use loom::sync::{Mutex, MutexGuard};
    pub use std::sync::PoisonError;
}

#[cfg(test)]
mod kinds;
#[cfg(test)]
mod owners;
#[cfg(test)]
mod switched;
