//! `lucce fleet query`: SQL.

use std::io::{self, BufWriter};
use std::path::PathBuf;

use crate::cli::{End, limits};
use crate::error::Error;
use crate::output;

/// Asks the dataset by SQL; it is only read. Tables: runs, events, stacks, frames, through, numbers, stream.
#[derive(clap::Args)]
pub struct Args {
    /// The question.
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    sql: Option<String>,
    /// A file that has it.
    #[arg(long)]
    file: Option<PathBuf>,
    #[command(flatten)]
    limits: limits::Args,
}

pub fn run(args: &Args) -> Result<End, Error> {
    let sql = match (&args.sql, &args.file) {
        (Some(sql), _) => sql.clone(),
        (None, Some(file)) => std::fs::read_to_string(file).map_err(Error::of(file))?,
        (None, None) => return Err(Error::Usage("no question".into())),
    };
    let engine = args.limits.engine()?;
    let mut out = BufWriter::new(io::stdout().lock());
    output::answer(&engine, &sql, args.limits.output, &mut out)?;
    Ok(End::Fine)
}
