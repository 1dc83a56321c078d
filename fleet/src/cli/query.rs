//! `lucce fleet query`: SQL.

use std::io::{self, BufWriter};
use std::path::PathBuf;

use crate::cli::engine_args;
use crate::error::FleetError;
use crate::output;
use lucce_command::CommandStatus;

/// Query the dataset by SQL, read-only. Tables: runs, events, stacks, frames, through, numbers, stream.
#[derive(clap::Args)]
pub struct FleetQueryArgs {
    /// SQL of the query
    #[arg(
        value_name = "SQL",
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    sql: Option<String>,
    /// Read the SQL from this file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    limits: engine_args::QueryEngineArgs,
}

pub fn run(args: &FleetQueryArgs) -> Result<CommandStatus, FleetError> {
    let sql = match (&args.sql, &args.file) {
        (Some(sql), _) => sql.clone(),
        (None, Some(file)) => std::fs::read_to_string(file).map_err(FleetError::for_path(file))?,
        (None, None) => return Err(FleetError::Usage("no question".into())),
    };
    let engine = args.limits.open_engine()?;
    let mut out = BufWriter::new(io::stdout().lock());
    output::write_answer(&engine, &sql, args.limits.output, &mut out)?;
    Ok(CommandStatus::Fine)
}
