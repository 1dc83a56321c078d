//! What a JVM's log says, on its way to a collector.
//!
//! Reading order: `wire` (what goes over the wire), `sender` (what of a log is sent); `endpoint` and `http` (requests), `collector` (a
//! sender's collector over HTTP), `pace` (when to ask again), `spool` (logs that are not sent yet).
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

pub mod wire;

mod sender;

mod endpoint;
pub mod http;

mod collector;
mod pace;
pub mod spool;

pub use collector::{Collector, is_open_to_others, token, token_text};
pub use endpoint::Endpoint;
pub use pace::{Pace, jittered};
pub use sender::{Fault, Read, Round, Sender, Sent, Wire};
