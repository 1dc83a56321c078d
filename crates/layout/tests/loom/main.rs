//! Loom models of the agent's parts that Java code reads without locks. They run through every interleaving of the relaxed
//! memory model of C++, and every value that a load may see. The agent itself cannot be modelled: its memory is mapped,
//! and the VM is the other half.
//!
//! `cargo xtask loom`

#![cfg(loom)]

pub mod memory;
#[path = "../../src/counting/places.rs"]
pub mod places;

/// Replaces the standard library's types in the included files of the agent.
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
