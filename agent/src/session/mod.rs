//! The life of the agent: start, control, end.
//!
//! ```text
//! Agent_OnLoad   ─► start: options, resources, capabilities ─► Agent ─► VMInit ─► live: helper classes, events, threads
//! Agent_OnAttach ─► attach: hookless mode
//! socket         ─► control ─► status, dump, holders_request, leaks_request, detach
//! VMDeath        ─► finish: last records, summary
//! ```
//!
//! Read `agent` first, then `start`, `live`, `helper_class` and `finish`; then `attach`, `control` and the commands. The agent's own
//! threads: `burst`, `file_watch`, `malloc_trim`, `push`.

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
mod old_hooks_tests;
pub mod push;
mod repeated_start;
pub mod start;
mod status;

pub use agent::Agent;
