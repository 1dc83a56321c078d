//! `lucce lab`: commands of the papers' systems.

mod hot_paths;
mod replay;

use clap::Subcommand;

use super::{CommandError, CommandStatus};

/// Compare encodings of calling contexts, and print short call paths: the systems of the papers.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce lab hot-paths run-1234.lucce --k 10 --hot 90
  lucce lab replay run-1234.lucce.calls --encoding dacce")]
pub struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand)]
enum LabCommand {
    HotPaths(hot_paths::HotPathsArgs),
    Replay(replay::ReplayArgs),
}

pub fn run(args: &LabArgs) -> Result<CommandStatus, CommandError> {
    match &args.command {
        LabCommand::HotPaths(args) => hot_paths::run(args),
        LabCommand::Replay(args) => replay::run(args),
    }
}
