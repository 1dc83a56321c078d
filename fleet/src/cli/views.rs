//! `lucce fleet views`: the dataset for other engines.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::cli::End;
use crate::commits::Log;
use crate::error::Error;
use crate::views;

/// Tells other engines which files each table has now; files that a later compact replaces stay for a while.
#[derive(clap::Args)]
pub struct Args {
    /// The dataset's folder.
    #[arg(long, env = "LUCCE_FLEET")]
    dataset: PathBuf,
    /// For whom.
    #[arg(long = "for", value_enum, default_value = "json")]
    engine: Engine,
}

#[derive(Clone, Copy, ValueEnum)]
enum Engine {
    /// CREATE VIEW statements: duckdb -init FILE.
    Duckdb,
    /// For programs, as Spark's.
    Json,
}

pub fn run(args: &Args) -> Result<End, Error> {
    let state = Log::open(&args.dataset)?.state()?;
    match args.engine {
        Engine::Duckdb => print!("{}", views::duckdb(&args.dataset, &state)?),
        Engine::Json => println!("{}", views::json(&args.dataset, &state)?),
    }
    Ok(End::Fine)
}
