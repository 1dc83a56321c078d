//! `lucce fleet views`: the dataset for other engines.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::cli::FleetExitStatus;
use crate::commits::CommitLog;
use crate::error::FleetError;
use crate::views;

/// Tells other engines which files each table has now; files that a later compact replaces stay for a while.
#[derive(clap::Args)]
pub struct FleetViewsArgs {
    /// The dataset's folder.
    #[arg(long, env = "LUCCE_FLEET")]
    dataset: PathBuf,
    /// For whom.
    #[arg(long = "for", value_enum, default_value = "json")]
    engine: ViewsEngine,
}

#[derive(Clone, Copy, ValueEnum)]
enum ViewsEngine {
    /// CREATE VIEW statements: duckdb -init FILE.
    Duckdb,
    /// For programs, as Spark's.
    Json,
}

pub fn run(args: &FleetViewsArgs) -> Result<FleetExitStatus, FleetError> {
    let state = CommitLog::open(&args.dataset)?.read_state()?;
    match args.engine {
        ViewsEngine::Duckdb => print!("{}", views::render_duckdb(&args.dataset, &state)?),
        ViewsEngine::Json => println!("{}", views::render_json(&args.dataset, &state)?),
    }
    Ok(FleetExitStatus::Fine)
}
