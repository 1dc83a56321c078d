//! `lucce fleet`: starts lucce-fleet, a separate program, because its query engine is many times larger than this command.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::{CommandError, CommandStatus};

const NAME: &str = "lucce-fleet";

/// Make a dataset of many runs and query it by SQL; starts lucce-fleet, whose --help lists its commands.
#[derive(clap::Args)]
#[command(
    disable_help_flag = true,
    after_help = "Examples:
  lucce fleet add /data/fleet runs/*.lucce --service shop --version 1.4 --host %h
  lucce fleet ask top-growth --from 1.3 --to 1.4 --dataset /data/fleet
  lucce fleet query 'SELECT service, SUM(value) FROM events GROUP BY service' --dataset /data/fleet
  lucce fleet serve /data/fleet --listen 127.0.0.1:7070"
)]
pub struct FleetCommandArgs {
    /// Command of lucce-fleet, with its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    words: Vec<OsString>,
}

pub fn run(args: &FleetCommandArgs) -> Result<CommandStatus, CommandError> {
    let program = find_fleet_program().unwrap_or_else(|| NAME.into());
    // Replaces this process, so that signals and exit codes are the program's own.
    let error = Command::new(&program).args(&args.words).exec();
    Err(CommandError::Usage(match error.kind() {
        io::ErrorKind::NotFound => format!(
            "{NAME} is neither beside this command nor on PATH: archives do not have it, docs/guide/fleet.md says how to build it"
        ),
        _ => format!("cannot start {}: {error}", program.display()),
    }))
}

/// The program that was installed with this command.
fn find_fleet_program() -> Option<PathBuf> {
    let own = env::current_exe().ok()?;
    Some(own.with_file_name(NAME)).filter(|path| path.is_file())
}
