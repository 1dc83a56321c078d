//! What the commands `lucce` and `lucce-fleet` share: exit codes, messages and numbers.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

pub mod exit_codes;
mod messages;
mod numbers;

pub use exit_codes::CommandStatus;
pub use messages::{is_closed_pipe, print_message};
pub use numbers::{format_plural, grouped, percent_of};
