//! Loom models of the words that Java code reads without locks. They run through every interleaving of the relaxed
//! memory model of C++, and every value that a load may see. The agent itself cannot be modelled: its memory is mapped,
//! and the VM is the other half.
//!
//! `cargo xtask loom`
#![cfg(loom)]

mod event_mask;
mod program_kinds;
mod site_methods;
