//! Kinds of events, one file for each: what is counted, and what the VM is asked for.

pub mod exception;
pub mod io;
pub mod lock;
mod maker;
pub mod marks;
pub mod objects;
pub mod samples;
pub mod sources;
pub mod threads;
pub mod thrown;
