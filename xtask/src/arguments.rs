//! Arguments of a single command, for code that gives a command its options.

use clap::{Args, Command};

/// Parses the arguments of one command.
///
/// # Errors
/// An unknown option or a malformed value.
pub fn parse_arguments<A: Args>(arguments: &[&str]) -> Result<A, String> {
    let command = A::augment_args(Command::new("xtask").no_binary_name(true));
    let matches = command.try_get_matches_from(arguments);
    let matches = matches.map_err(|e| e.to_string())?;
    A::from_arg_matches(&matches).map_err(|e| e.to_string())
}
