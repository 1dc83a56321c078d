//! The file that a log is in: as the agent wrote it, or packed with gzip.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use lucce_formats::{is_gzip, unpacked};
use lucce_tracelog::{Damage, Header, Log, LogFile, OpenError};

use crate::profile::{Profile, Tick};

/// What a packed file may hold: no machine has written a log of half of this yet.
const LIMIT: usize = 16 << 30;
/// A log's header, packed, and what gzip puts in front of it: a file's name may stand there.
const START: u64 = 4 << 10;

/// A log in memory.
pub struct Source {
    pub log: Log,
    /// What is wrong with the packed file around it.
    damage: Option<Damage>,
}

impl Source {
    /// # Errors
    /// The file cannot be read or is not a log.
    pub fn open(path: impl AsRef<Path>) -> Result<Source, OpenError> {
        let path = path.as_ref();
        if !is_packed(path)? {
            let log = Log::open(path)?;
            return Ok(Source { log, damage: None });
        }
        // First, so that a large packed file of another kind is not unpacked.
        header_of(path)?;
        let packed = std::fs::read(path)?;
        let unpacked = unpacked(&packed, LIMIT);
        let end = packed.len() as u64;
        Ok(Source {
            log: Log::from_bytes(unpacked.bytes)?,
            damage: unpacked.damage.map(|reason| Damage::at(end, reason)),
        })
    }

    /// `tick` is told the bytes that were read.
    ///
    /// # Errors
    /// As `open`.
    pub fn profile(&self, tick: Tick<'_>) -> Result<Profile, OpenError> {
        let mut profile = Profile::from_log(&self.log, tick)?;
        if let Some(damage) = &self.damage {
            profile.damage.get_or_insert_with(|| damage.clone());
        }
        Ok(profile)
    }

    /// What is wrong with the packed file.
    #[must_use]
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }
}

/// The log, if it is a file as the agent writes it: it need not be in memory as a whole.
///
/// # Errors
/// As [`Source::open`].
pub fn log_file(path: &Path) -> Result<Option<LogFile>, OpenError> {
    let is_plain = fs::metadata(path)?.is_file() && !is_packed(path)?;
    match is_plain {
        true => LogFile::open(path).map(Some),
        false => Ok(None),
    }
}

/// The header alone: the rest of the file is not read.
///
/// # Errors
/// As [`Source::open`].
pub fn header_of(path: &Path) -> Result<Header, OpenError> {
    let start = start_of(&mut File::open(path)?, START)?;
    match is_gzip(&start) {
        true => Header::decode(&unpacked(&start, 1 << 20).bytes),
        false => Header::decode(start.get(..64).unwrap_or(&start)),
    }
}

/// Of a pipe nothing can be read twice: what comes through one is a log.
fn is_packed(path: &Path) -> Result<bool, OpenError> {
    if !fs::metadata(path)?.is_file() {
        return Ok(false);
    }
    Ok(is_gzip(&start_of(&mut File::open(path)?, 3)?))
}

fn start_of(file: &mut File, bytes: u64) -> Result<Vec<u8>, OpenError> {
    let mut start = Vec::new();
    file.take(bytes).read_to_end(&mut start)?;
    Ok(start)
}
