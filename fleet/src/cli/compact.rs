//! `lucce fleet compact`: few large files, and what is old as sums.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use lucce_options::units::parse_duration;

use crate::cli::engine_args;
use crate::compact::{RetentionPolicy, compact_dataset};
use crate::engine::QueryLimits;
use crate::error::FleetError;
use crate::store::open_store;
use lucce_command::CommandStatus;

/// Merge small files into few large ones, and drop old data. Readers and writers go on meanwhile.
#[derive(clap::Args)]
pub struct FleetCompactArgs {
    /// Dataset: a folder, or a URL as of `add`
    #[arg(value_name = "DATASET", env = "LUCCE_FLEET")]
    dataset: PathBuf,
    /// Keep numbers (for decoding) and single events for this time, in days: 30d [default: forever]
    #[arg(long, value_name = "TIME", value_parser = parse_days)]
    numbers: Option<u32>,
    /// Keep each run for this time, in days; then runs of a service, a day, a version and a JVM become one sum [default: forever]
    #[arg(long, value_name = "TIME", value_parser = parse_days)]
    runs: Option<u32>,
    /// Keep sums for this time, in days [default: forever]
    #[arg(long, value_name = "TIME", value_parser = parse_days)]
    sums: Option<u32>,
    /// Keep replaced files for this time, for readers that began before
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_duration)]
    grace: Duration,
    /// Maximum memory of the process, about
    #[arg(long, value_name = "SIZE", value_parser = engine_args::parse_memory_size, default_value = "1g")]
    memory: usize,
}

/// A number of whole days, one or more.
fn parse_days(text: &str) -> Result<u32, String> {
    const DAY: u64 = 86_400;
    let time = parse_duration(text)?;
    let days = u32::try_from(time.as_secs() / DAY).ok();
    let is_whole = time.as_secs() % DAY == 0 && time.subsec_nanos() == 0;
    days.filter(|days| is_whole && *days > 0)
        .ok_or_else(|| "the time must be a number of days, such as 30d".to_owned())
}

pub fn run(args: &FleetCompactArgs) -> Result<CommandStatus, FleetError> {
    let policy = RetentionPolicy {
        numbers: args.numbers,
        runs: args.runs,
        sums: args.sums,
        grace: args.grace,
        now: SystemTime::now(),
    };
    let limits = QueryLimits {
        memory: Some(args.memory),
        ..QueryLimits::default()
    };
    let done = compact_dataset(&open_store(&args.dataset)?, &policy, &limits)?;
    println!(
        "{} files of {} bytes are now {} of {}; {} runs became sums; {} files are gone",
        done.files_before,
        done.bytes_before,
        done.files_after,
        done.bytes_after,
        done.runs_summed,
        done.files_removed
    );
    Ok(CommandStatus::Fine)
}

#[cfg(test)]
mod compact_tests {
    use super::*;

    #[test]
    fn data_are_kept_for_whole_days() {
        assert_eq!(parse_days("30d"), Ok(30));
        assert_eq!(parse_days("48h"), Ok(2));
        for wrong in ["", "30", "0", "0d", "36h", "30 weeks"] {
            assert!(parse_days(wrong).is_err(), "{wrong}");
        }
    }
}
