//! The `lucce` command; module `cli` does the work.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
