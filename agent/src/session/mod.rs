//! The life of the agent: start, control, end.

mod agent;
pub mod attach;
pub mod burst;
pub mod control;
mod dump;
pub mod file_watch;
pub mod finish;
pub mod guard;
pub mod helper_class;
mod helper_variant;
pub mod holders_request;
mod leaks_request;
pub mod live;
pub mod malloc_trim;
#[cfg(test)]
mod neutral_hooks_tests;
pub mod push;
mod repeated_start;
pub mod start;
mod status;

pub use agent::Agent;
