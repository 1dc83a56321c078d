//! `lucce fleet`: starts lucce-fleet, a program of its own, because the engine in it is many times as large as this command.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::{End, Failure};

const NAME: &str = "lucce-fleet";

/// Many runs as one dataset: tables in Parquet files, asked by SQL. `lucce fleet --help` tells all; it starts lucce-fleet.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// What lucce-fleet is told.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "…")]
    words: Vec<OsString>,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    let program = beside().unwrap_or_else(|| NAME.into());
    // In the place of this process: signals and exit codes are its own.
    let error = Command::new(&program).args(&args.words).exec();
    Err(Failure::Usage(match error.kind() {
        io::ErrorKind::NotFound => format!(
            "{NAME} is neither beside this command nor on PATH: it is a package of its own, see docs/fleet.md"
        ),
        _ => format!("cannot start {}: {error}", program.display()),
    }))
}

/// The one that was installed with this command.
fn beside() -> Option<PathBuf> {
    let own = env::current_exe().ok()?;
    Some(own.with_file_name(NAME)).filter(|path| path.is_file())
}
