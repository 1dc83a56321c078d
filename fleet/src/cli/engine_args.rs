//! Resource limits of a question, and its dataset.

use std::path::PathBuf;

use lucce_options::units;

use crate::engine::{QueryEngine, QueryLimits};
use crate::error::FleetError;
use crate::output::OutputFormat;
use crate::store::open_store;

#[derive(clap::Args)]
#[group(skip)]
pub struct QueryEngineArgs {
    /// Dataset: a folder, or a URL as of `add`
    #[arg(long, value_name = "DATASET", env = "LUCCE_FLEET")]
    dataset: Option<PathBuf>,
    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "table")]
    pub output: OutputFormat,
    /// Maximum memory of the process, about; data beyond it go to files [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory_size)]
    memory: Option<usize>,
    /// Folder for these files [default: the system's folder for temporary files]
    #[arg(long, value_name = "FOLDER")]
    spill: Option<PathBuf>,
    /// Number of processors to use [default: all]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

impl QueryEngineArgs {
    pub fn open_engine(&self) -> Result<QueryEngine, FleetError> {
        let limits = QueryLimits {
            memory: self.memory,
            spill: self.spill.clone(),
            threads: self.threads,
            time: None,
        };
        let dataset = self.dataset.as_ref();
        let dataset = dataset.ok_or_else(|| {
            FleetError::Usage("which dataset? --dataset DIR, or DIR in LUCCE_FLEET".into())
        })?;
        QueryEngine::open(&open_store(dataset)?, &limits)
    }
}

/// As [`parse_size`], and not less than a process can do with.
pub fn parse_memory_size(text: &str) -> Result<usize, String> {
    let bytes = parse_size(text)?;
    match bytes >= 16 << 20 {
        true => Ok(bytes),
        false => Err("at least 16m".to_owned()),
    }
}

/// A size of memory or of files on this machine.
///
/// # Errors
/// The text is no size, or one that this machine cannot have.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let bytes = units::parse_size(text)?;
    usize::try_from(bytes).map_err(|_| "too large for this machine".to_owned())
}

#[cfg(test)]
mod engine_args_tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_memory_size("2g"), Ok(2 << 30));
        assert_eq!(parse_memory_size("64M"), Ok(64 << 20));
        assert_eq!(parse_size("1k"), Ok(1 << 10));
        for wrong in ["", "g", "2gb", "-1", "1k", "99999999999g"] {
            assert!(parse_memory_size(wrong).is_err(), "{wrong}");
        }
    }
}
