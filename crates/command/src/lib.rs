//! What the commands `lucce` and `lucce-fleet` share: exit codes, messages, numbers and units.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod messages;
mod numbers;
mod status;
pub mod units;

pub use messages::{is_closed_pipe, print_message};
pub use numbers::{format_plural, grouped, percent_of};
pub use status::CommandStatus;
