//! What the `lucce` command and the agent in a running JVM say to each other, over a local socket.
//!
//! ```text
//! lucce ctl PID … ─► ask() ─► /tmp/.lucce_pidPID ─► Listener ─► agent      one request, one reply
//! lucce attach PID ─► load() ─► /tmp/.java_pidPID ─► the JVM ─► agent
//! ```
//!
//! This crate is the protocol's only specification: [`wire`] what is said, [`SocketPlace`] where. Both
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
pub mod stop;
pub mod wire;

mod peer;
mod perf;
mod place;
mod timed;

mod ask;
mod clients;
mod hotspot;
mod listen;

pub use ask::{AskError, ask};
pub use clients::Clients;
pub use hotspot::{LoadError, load};
pub use listen::{Conversation, Listener};
pub use perf::{is_starting, java_command};
pub use place::{NoProcess, SocketPlace, sweep};
pub use wire::{Command, LeaksRequest, Walks};
