//! Opens a log's file: as the agent wrote it, or packed with gzip.
//!
//! ```text
//! run.lucce ──────────────► LogFile (block by block) ──► Profile
//! run.lucce.gz ──► unpack ──► the same
//! ```

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use lucce_export::{GzipReader, is_gzip};
use lucce_tracelog::{InMemoryLog, LogDamage, LogFile, LogHeader, LogItem, OpenError, open_file};

use crate::limits::unpack_limits;
use crate::profile::{Profile, ProgressTick};

/// Number of block-by-block reads of a log whose JVM ends or appends meanwhile; then the whole log is read into memory.
const TRIES: u32 = 4;

/// A log that is read block by block.
pub struct LogSource {
    path: PathBuf,
    pub(crate) log: LogFile,
}

impl LogSource {
    /// # Errors
    /// The file cannot be read, is no regular file, or is not a log.
    pub fn open(path: impl AsRef<Path>) -> Result<LogSource, OpenError> {
        let path = path.as_ref();
        let mut file = open_file(path)?;
        let log = match is_packed(&mut file)? {
            false => LogFile::open(path)?,
            true => open_packed(path, file)?,
        };
        let path = path.to_owned();
        Ok(LogSource { path, log })
    }

    /// Reads the log into a profile. Calls `tick` with the number of bytes read.
    ///
    /// # Errors
    /// As `open`. A damaged log is no error: the profile has all that could be read, and its `damage` names the first
    /// damage.
    pub fn read_profile(&mut self, tick: ProgressTick<'_>) -> Result<Profile, OpenError> {
        for _ in 0..TRIES {
            if let Some(profile) = Profile::from_file(&self.log, tick)? {
                return Ok(profile);
            }
            *self = LogSource::open(&self.path)?;
        }
        let log = InMemoryLog::open(&self.path)?;
        let profile = Profile::from_log(&log, tick);
        self.log = log.into();
        profile
    }

    /// Calls `each` with each item in file order, until it breaks. Nothing follows an `Err`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn for_each_item(
        &self,
        each: impl FnMut(Result<LogItem<'_>, LogDamage>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        self.log.for_each_item(each)
    }

    /// Size of the unpacked log in bytes. For a packed log it is an estimate until the log was read.
    #[must_use]
    pub fn log_size(&self) -> u64 {
        self.log.size()
    }
}

/// Reads only the header of a log.
///
/// # Errors
/// As [`LogSource::open`].
pub fn read_header(path: &Path) -> Result<LogHeader, OpenError> {
    let mut file = open_file(path)?;
    match is_packed(&mut file)? {
        true => Ok(*open_packed(path, file)?.header()),
        false => {
            let mut start = Vec::new();
            file.take(64).read_to_end(&mut start)?;
            LogHeader::decode(&start)
        }
    }
}

/// Whether the file begins with the magic bytes of gzip; rewinds the file.
fn is_packed(file: &mut File) -> io::Result<bool> {
    let mut start = Vec::new();
    file.take(3).read_to_end(&mut start)?;
    file.rewind()?;
    Ok(is_gzip(&start))
}

fn open_packed(path: &Path, file: File) -> Result<LogFile, OpenError> {
    let (path, limits) = (path.to_owned(), unpack_limits(file.metadata()?.len()));
    let open = move || {
        let file = open_file(&path)?;
        Ok(Box::new(GzipReader::new(file, limits)) as Box<dyn Read>)
    };
    LogFile::from_stream(Box::new(open), unpacked_size(file)?)
}

/// The size that a packed file states, modulo 2^32: for a progress bar.
fn unpacked_size(mut file: File) -> io::Result<u64> {
    let mut size = [0; 4];
    if file.metadata()?.len() >= 18 {
        file.seek(SeekFrom::End(-4))?;
        file.read_exact(&mut size)?;
    }
    Ok(u32::from_le_bytes(size).into())
}
