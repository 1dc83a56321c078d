//! The lucce-fleet command.

use std::process::ExitCode;

fn main() -> ExitCode {
    lucce_fleet::cli::main()
}
