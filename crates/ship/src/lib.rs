//! Sends the log of a JVM to a collector.
//!
//! Reading order: `wire` (the protocol), `sender` (what of a log is sent); `endpoint` and `http` (requests),
//! `collector` (a sender's collector over HTTP), `retry_backoff` (delays before retries), `push_mark` (logs that are
//! not sent yet).
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
pub mod push_mark;
mod retry_backoff;

pub use collector::{HttpCollectorClient, is_world_readable, parse_token, read_token_text};
pub use endpoint::HttpEndpoint;
pub use retry_backoff::{RetryBackoff, add_jitter};
pub use sender::{CollectorClient, CollectorError, LogReader, LogSender, PartReply, SendReport};
