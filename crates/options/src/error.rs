//! Errors in options, as one line for the user.

use std::fmt;

/// An error in the options: the JVM must not start, or the command ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptionError(pub String);

impl OptionError {
    /// The error for a malformed value; `expected`: the form that is accepted.
    pub(crate) fn malformed(key: &str, value: &str, expected: &str) -> OptionError {
        OptionError(format!(
            "option {key}={value} is malformed: expected {expected}"
        ))
    }
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OptionError {}
