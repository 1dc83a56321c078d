//! `lucce fleet compact`: few large files, and what is old as sums.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::cli::{FleetExitStatus, engine_args};
use crate::compact::{RetentionPolicy, compact_dataset};
use crate::engine::QueryLimits;
use crate::error::FleetError;

/// Makes few large files of many small ones, and drops what need not be kept. Readers and writers go on meanwhile.
#[derive(clap::Args)]
pub struct FleetCompactArgs {
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
    #[arg(long, value_parser = engine_args::parse_memory_size, default_value = "1g")]
    memory: usize,
}

pub fn run(args: &FleetCompactArgs) -> Result<FleetExitStatus, FleetError> {
    let policy = RetentionPolicy {
        numbers: args.numbers,
        runs: args.runs,
        sums: args.sums,
        grace: Duration::from_secs(args.grace.saturating_mul(60)),
        now: SystemTime::now(),
    };
    let limits = QueryLimits {
        memory: Some(args.memory),
        ..QueryLimits::default()
    };
    let done = compact_dataset(&args.dataset, &policy, &limits)?;
    println!(
        "{} files of {} bytes are now {} of {}; {} runs became sums; {} files are gone",
        done.files_before,
        done.bytes_before,
        done.files_after,
        done.bytes_after,
        done.runs_summed,
        done.files_removed
    );
    Ok(FleetExitStatus::Fine)
}
