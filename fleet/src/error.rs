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
pub enum Error {
    /// A file or a folder could not be read or written.
    File(PathBuf, io::Error),
    /// The folder is no dataset, or not as one must be.
    Dataset(PathBuf, String),
    /// Two different things have one id.
    Collision(String),
    /// What was asked for is not there.
    Absent(String),
    /// It cannot be asked so.
    Usage(String),
    /// What SQL or its engine says.
    Engine(String),
    /// An answer was not there in this time.
    Time(Duration),
    /// The output's.
    Output(io::Error),
}

impl Error {
    /// A question had no room in memory.
    pub fn is_exhausted(&self) -> bool {
        matches!(self, Error::Engine(what) if what.contains("Resources exhausted"))
    }

    /// For `map_err`: what happened to this file.
    pub fn of(path: &Path) -> impl Fn(io::Error) -> Error {
        let path = path.to_owned();
        move |error| Error::File(path.clone(), error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::File(path, error) => write!(f, "{}: {error}", path.display()),
            Error::Dataset(path, what) => write!(f, "{}: {what}", path.display()),
            Error::Time(time) => write!(f, "no answer in {} s", time.as_secs()),
            Error::Output(error) => write!(f, "cannot write: {error}"),
            Error::Collision(what)
            | Error::Absent(what)
            | Error::Usage(what)
            | Error::Engine(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        Error::Engine(error.strip_backtrace())
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        Error::Engine(error.to_string())
    }
}

impl From<ParquetError> for Error {
    fn from(error: ParquetError) -> Self {
        Error::Engine(error.to_string())
    }
}
