//! What a question may use, and where it is asked.

use std::path::PathBuf;

use crate::engine::{QueryEngine, QueryLimits};
use crate::error::FleetError;
use crate::output::OutputFormat;

#[derive(clap::Args)]
#[group(skip)]
pub struct QueryEngineArgs {
    /// The dataset's folder.
    #[arg(long, env = "LUCCE_FLEET")]
    dataset: Option<PathBuf>,
    /// How the answer is written.
    #[arg(long, value_enum, default_value = "table")]
    pub output: OutputFormat,
    /// What the process may use, about: 2g, 500m; what has no room goes to files.
    #[arg(long, value_parser = parse_memory_size)]
    memory: Option<usize>,
    /// Where such files go; else where the system has temporary files.
    #[arg(long)]
    spill: Option<PathBuf>,
    /// Processors that are used; else all.
    #[arg(long)]
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
        QueryEngine::open(dataset, &limits)
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

/// `2g`, `500m`, `64k`, or bytes.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let wrong = || "a number with k, m or g was expected, as 2g".to_owned();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: usize = number.parse().map_err(|_| wrong())?;
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
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
