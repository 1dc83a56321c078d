//! Messages on standard error.

use std::fmt::Display;
use std::io::{self, Write};

use lucce_tracelog::escape::EscapedLine;

/// Prints a message on one line, after the program's name; names in it are escaped.
pub fn print_message(program: &str, message: impl Display) {
    let message = message.to_string();
    // If this fails, there is no other stream for the message.
    let _ = writeln!(io::stderr(), "{program}: {}", EscapedLine(&message));
}

/// Whether the reader of the output has closed it, which is no error.
#[must_use]
pub fn is_closed_pipe(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}
