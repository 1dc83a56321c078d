//! `lucce lab`: commands of the papers' systems.

mod hot_paths;
mod replay;

use clap::Subcommand;

use super::{CommandError, CommandStatus};

/// Compare encodings of calling contexts, and print short call paths: the systems of the papers.
#[derive(clap::Args)]
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
