//! The life of the agent: start, control, end.
//!
//! ```text
//! Agent_OnLoad   ─► start: options, resources, capabilities ─► Agent ─► VMInit ─► live: helper classes, events, threads
//! Agent_OnAttach ─► attach: hookless mode
//! socket         ─► control ─► status, marks, dump, holders_request, leaks_request, detach
//! VMDeath        ─► finish: last records, summary
//! ```
//!
//! Read `agent` first, then `start` with `vm_support`, `live`, `helper_class` and `finish` with `event_totals`; then `attach`,
//! `control` with `control_socket`, and the commands. The agent's own threads: `burst`, `delay`, `file_watch`, `malloc_trim`, `push`.

mod agent;
pub mod attach;
pub mod burst;
pub mod control;
mod control_socket;
pub mod delay;
mod dump;
pub mod event_totals;
pub mod file_watch;
pub mod finish;
pub mod guard;
pub mod helper_class;
pub mod holders_request;
mod leaks_request;
pub mod live;
pub mod malloc_trim;
pub mod marks;
pub mod method_hooks;
#[cfg(test)]
mod old_hooks_tests;
pub mod push;
mod repeated_start;
pub mod start;
pub mod status;
mod vm_support;

pub use agent::Agent;
