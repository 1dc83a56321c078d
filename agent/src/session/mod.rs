//! The life of the agent: start, control, end.

mod agent;
pub mod attach;
pub mod burst;
pub mod control;
mod dump;
mod edition;
pub mod fate;
pub mod finish;
pub mod guard;
pub mod helper_class;
pub mod holders;
mod leaks;
pub mod live;
pub mod push;
mod second_start;
#[cfg(test)]
mod silent;
pub mod start;
mod status;
pub mod trim;

pub use agent::Agent;
