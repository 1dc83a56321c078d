//! `lucce fleet views`: the dataset for other engines.

use std::path::PathBuf;

use clap::ValueEnum;

use lucce_command::CommandStatus;

use crate::commits::CommitLog;
use crate::error::FleetError;
use crate::views;

/// Print for other engines which files each table has now; files that a later compact replaces stay for a while.
#[derive(clap::Args)]
pub struct FleetViewsArgs {
    /// Folder of the dataset
    #[arg(long, value_name = "DATASET", env = "LUCCE_FLEET")]
    dataset: PathBuf,
    /// Engine to print for
    #[arg(
        long = "for",
        value_name = "ENGINE",
        value_enum,
        default_value = "json"
    )]
    engine: ViewsEngine,
}

#[derive(Clone, Copy, ValueEnum)]
enum ViewsEngine {
    /// CREATE VIEW statements: duckdb -init FILE
    Duckdb,
    /// Lists of files, for programs such as Spark's
    Json,
}

pub fn run(args: &FleetViewsArgs) -> Result<CommandStatus, FleetError> {
    let state = CommitLog::open(&args.dataset)?.read_state()?;
    match args.engine {
        ViewsEngine::Duckdb => print!("{}", views::render_duckdb(&args.dataset, &state)?),
        ViewsEngine::Json => println!("{}", views::render_json(&args.dataset, &state)?),
    }
    Ok(CommandStatus::Fine)
}
