//! The `lucce` command: what a person sees.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
