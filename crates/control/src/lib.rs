//! What the `lucce` command and the agent in a running JVM say to each other, over a local socket.
//!
//! ```text
//! lucce ctl PID … ─► ask() ─► /tmp/.lucce_pidPID ─► Listener ─► agent      one request, one reply
//! lucce attach PID ─► load() ─► /tmp/.java_pidPID ─► the JVM ─► agent
//! ```
//!
//! This crate is the protocol's only specification: [`wire`] what is said, [`SocketLocation`] where. Both
//! sides are hostile to each other: every length is bounded, every wait has an end, and each asks the
//! kernel who the other one is. It knows no JVM.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs
)]

pub mod json;
pub mod stop_signal;
pub mod wire;

mod deadline_reader;
mod peer;
mod perf_data;
mod socket_location;

mod client;
mod client_threads;
mod hotspot;
mod listener;

pub use client::{ControlError, send_command};
pub use client_threads::ClientThreads;
pub use hotspot::{AttachError, load_agent};
pub use listener::{ClientConnection, ControlListener};
pub use perf_data::{is_starting, java_command};
pub use socket_location::{NoProcess, SocketLocation, remove_dead_sockets};
pub use wire::{ControlCommand, HolderSearchOptions, LeaksRequest};
