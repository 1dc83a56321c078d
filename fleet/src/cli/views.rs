//! `lucce fleet views`: the dataset for other engines.

use std::path::PathBuf;

use clap::ValueEnum;

use lucce_command::CommandStatus;

use crate::commits::CommitLog;
use crate::error::FleetError;
use crate::store::open_store;
use crate::views::{self, FileReader};

/// Print for other engines which files each table has now; files that a later compact replaces stay for a while.
#[derive(clap::Args)]
pub struct FleetViewsArgs {
    /// Dataset: a folder, or a URL as of `add`
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
    /// Lists of files, for programs
    Json,
    /// The same for Spark: s3a:// instead of s3://
    Spark,
}

pub fn run(args: &FleetViewsArgs) -> Result<CommandStatus, FleetError> {
    let store = open_store(&args.dataset)?;
    let state = CommitLog::open(&store)?.read_state()?;
    let json = |reader| views::render_json(&store, &state, reader);
    match args.engine {
        ViewsEngine::Duckdb => print!("{}", views::render_duckdb(&store, &state)?),
        ViewsEngine::Spark => println!("{}", json(FileReader::Hadoop)?),
        ViewsEngine::Json => println!("{}", json(FileReader::Plain)?),
    }
    Ok(CommandStatus::Fine)
}
