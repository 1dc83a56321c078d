//! The result of a command, and its exit code.

use std::process::ExitCode;

/// The result of a command; the larger of two results wins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CommandStatus {
    Fine = 0,
    /// A mismatch, a leak, growth beyond a gate's limit, or an unknown context number.
    Finding = 1,
    /// Wrong usage, an unreadable file, or a missing or refusing JVM, agent or kind of events.
    Unusable = 2,
    /// A damaged or foreign log; the readable part was printed.
    Damaged = 3,
}

impl From<CommandStatus> for ExitCode {
    fn from(status: CommandStatus) -> ExitCode {
        ExitCode::from(status as u8)
    }
}
