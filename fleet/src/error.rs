//! What can go wrong with a dataset.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use parquet::errors::ParquetError;

/// Why something could not be done.
#[derive(Debug)]
pub enum FleetError {
    /// A file or a folder could not be read or written.
    File(PathBuf, io::Error),
    /// The folder is no dataset, or not as one must be.
    Dataset(PathBuf, String),
    /// Two different things have one id.
    Collision(String),
    /// The requested thing does not exist.
    Absent(String),
    /// The request is not valid.
    Usage(String),
    /// What SQL or its engine says.
    Engine(String),
    /// An answer was not there in this time.
    Time(Duration),
    /// The output's.
    Output(io::Error),
}

impl FleetError {
    /// A question had no room in memory.
    pub fn is_exhausted(&self) -> bool {
        matches!(self, FleetError::Engine(what) if what.contains("Resources exhausted"))
    }

    /// For `map_err`: what happened to this file.
    pub fn for_path(path: &Path) -> impl Fn(io::Error) -> FleetError {
        let path = path.to_owned();
        move |error| FleetError::File(path.clone(), error)
    }
}

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FleetError::File(path, error) => write!(f, "{}: {error}", path.display()),
            FleetError::Dataset(path, what) => write!(f, "{}: {what}", path.display()),
            FleetError::Time(time) => write!(f, "no answer in {} s", time.as_secs()),
            FleetError::Output(error) => write!(f, "cannot write: {error}"),
            FleetError::Collision(what)
            | FleetError::Absent(what)
            | FleetError::Usage(what)
            | FleetError::Engine(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for FleetError {}

impl From<DataFusionError> for FleetError {
    fn from(error: DataFusionError) -> Self {
        FleetError::Engine(error.strip_backtrace())
    }
}

impl From<ArrowError> for FleetError {
    fn from(error: ArrowError) -> Self {
        FleetError::Engine(error.to_string())
    }
}

impl From<ParquetError> for FleetError {
    fn from(error: ParquetError) -> Self {
        FleetError::Engine(error.to_string())
    }
}
