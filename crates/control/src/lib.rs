//! The control protocol between the `lucce` command and the agent in a running JVM, over a local socket.
//!
//! ```text
//! lucce ctl PID … ─► send_command ─► /tmp/.lucce_pidPID ─► ControlListener ─► agent      one request, one reply
//! lucce attach PID ─► load_agent ─► /tmp/.java_pidPID ─► the JVM ─► agent
//! ```
//!
//! This crate is the only specification of the protocol: [`wire`] has the messages, [`SocketLocation`] the place. Both
//! sides distrust each other: every length is bounded, every wait has a deadline, and each side asks the kernel for the
//! other one's identity. The crate does not depend on a JVM.
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
