//! The file that a log is in: as the agent wrote it, or packed with gzip.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use lucce_export::{GzipReader, is_gzip};
use lucce_tracelog::{InMemoryLog, LogDamage, LogFile, LogHeader, LogItem, OpenError, open_file};

use crate::limits::unpack_limits;
use crate::profile::{Profile, ProgressTick};

/// A log of a JVM that ends or appends at each look is read as a whole in the end.
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

    /// All that the log says. `tick` is told the bytes that were read.
    ///
    /// # Errors
    /// As `open`. A damaged log is no error: what could be read is there, and `damage` says where the first damage is.
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

    /// Everything in the order of the file, until `each` says that it is enough. After an `Err` nothing follows.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn for_each_item(
        &self,
        each: impl FnMut(Result<LogItem<'_>, LogDamage>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        self.log.for_each_item(each)
    }

    /// Bytes of the log, unpacked. Of a packed one it is a guess until the log was read.
    #[must_use]
    pub fn log_size(&self) -> u64 {
        self.log.size()
    }
}

/// The header alone: the rest of the file is not read.
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

/// What the file begins with, which is read again then.
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

/// As a packed file says it, modulo 2^32: for a progress bar.
fn unpacked_size(mut file: File) -> io::Result<u64> {
    let mut size = [0; 4];
    if file.metadata()?.len() >= 18 {
        file.seek(SeekFrom::End(-4))?;
        file.read_exact(&mut size)?;
    }
    Ok(u32::from_le_bytes(size).into())
}
