//! `lucce fleet compact`: few large files, and what is old as sums.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::cli::{End, limits};
use crate::compact::{Policy, compact};
use crate::engine::Limits;
use crate::error::Error;

/// Makes few large files of many small ones, and drops what need not be kept. Readers and writers go on meanwhile.
#[derive(clap::Args)]
pub struct Args {
    /// The dataset's folder.
    #[arg(env = "LUCCE_FLEET")]
    dataset: PathBuf,
    /// Days for which numbers can be decoded, and single events are kept; else for good.
    #[arg(long, value_name = "DAYS")]
    numbers: Option<u32>,
    /// Days for which each run is kept; then runs of a service, a day, a version and a JVM are one sum. Else for good.
    #[arg(long, value_name = "DAYS")]
    runs: Option<u32>,
    /// Days for which sums are kept; else for good.
    #[arg(long, value_name = "DAYS")]
    sums: Option<u32>,
    /// Minutes for which replaced files stay for readers who began before.
    #[arg(long, value_name = "MINUTES", default_value = "60")]
    grace: u64,
    /// What the process may use, about: 2g, 500m.
    #[arg(long, value_parser = limits::bytes, default_value = "1g")]
    memory: usize,
}

pub fn run(args: &Args) -> Result<End, Error> {
    let policy = Policy {
        numbers: args.numbers,
        runs: args.runs,
        sums: args.sums,
        grace: Duration::from_secs(args.grace.saturating_mul(60)),
        now: SystemTime::now(),
    };
    let limits = Limits {
        memory: Some(args.memory),
        ..Limits::default()
    };
    let done = compact(&args.dataset, &policy, &limits)?;
    println!(
        "{} files of {} bytes are now {} of {}; {} runs became sums; {} files are gone",
        done.before, done.bytes_before, done.behind, done.bytes_behind, done.summed, done.gone
    );
    Ok(End::Fine)
}
