//! The file of single events beside the log, with `record=stream`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use lucce_stream::Writer;
use lucce_tracelog::Header;
use lucce_vm::clock;

use crate::book::fate::Fate;
use crate::options::Level;

/// The stream of all threads.
pub struct Streamer {
    pub writer: Writer,
    path: PathBuf,
}

impl Streamer {
    /// Beside the log, whose header this is.
    ///
    /// # Errors
    /// The file cannot be made, or something has the name already.
    pub fn create(path: &Path, log: &Header, limit: u64) -> io::Result<Streamer> {
        let since_start = clock::nanos().saturating_sub(log.start);
        let header = lucce_stream::Header {
            pid: log.pid,
            start: log.start,
            clock: clock::nano_time().saturating_sub(since_start),
        };
        let writer = Writer::create(path, &header, limit)?;
        let path = path.to_owned();
        Ok(Streamer { writer, path })
    }

    /// The file, to be read, and its size; entries in it go on being written.
    ///
    /// # Errors
    /// The system's.
    pub fn file(&self) -> io::Result<(File, u64)> {
        let bytes = self.writer.bytes();
        Ok((self.writer.file()?, bytes))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn fate(&self) -> Fate {
        let lost = self.writer.lost();
        let file = self.writer.file();
        file.map_or(Fate::Failed, |file| Fate::of(&file, &self.path, lost))
    }

    pub fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    pub fn is_full(&self) -> bool {
        self.writer.is_full()
    }

    /// The JVM ends; what the user is told.
    pub fn finish(&self) -> (Level, String) {
        self.writer.finish(clock::nano_time());
        let megabytes = self.writer.bytes() as f64 / 1e6;
        let full = match self.writer.is_full() {
            true => "; it is full, later events are counted only",
            false => "",
        };
        let fate = self.fate();
        let path = fate.path(&self.path).display();
        match fate.told(&self.path).filter(|_| fate.is_lost()) {
            Some(what) => {
                let line = format!("{what}: the events' times are lost");
                (Level::Error, line)
            }
            None => {
                let line = format!("events streamed to {path} ({megabytes:.1} MB{full})");
                (Level::Info, line)
            }
        }
    }
}
