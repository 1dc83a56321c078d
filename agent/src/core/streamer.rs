//! The stream: the file of single events beside the log, with `stream=on`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use lucce_jvmti::clock;
use lucce_stream::StreamWriter;
use lucce_tracelog::LogHeader;

use crate::options::LogLevel;
use crate::registry::file_state::FileState;

/// The stream of all threads.
pub struct EventStreamer {
    pub writer: StreamWriter,
    path: PathBuf,
}

impl EventStreamer {
    /// Creates the stream beside the log with this header.
    ///
    /// # Errors
    /// The file cannot be created, or a file of the name exists.
    pub fn create(path: &Path, log: &LogHeader, limit: u64) -> io::Result<EventStreamer> {
        let since_start = clock::unix_nanos().saturating_sub(log.start);
        let header = lucce_stream::StreamHeader {
            pid: log.pid,
            start: log.start,
            clock: clock::nano_time().saturating_sub(since_start),
        };
        let writer = StreamWriter::create(path, &header, limit)?;
        let path = path.to_owned();
        Ok(EventStreamer { writer, path })
    }

    /// The file for reading, and its size in bytes. Threads continue to write entries.
    ///
    /// # Errors
    /// The system's error.
    pub fn file_with_size(&self) -> io::Result<(File, u64)> {
        let bytes = self.writer.size_bytes();
        Ok((self.writer.clone_file()?, bytes))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file_state(&self) -> FileState {
        let lost = self.writer.file_loss();
        let file = self.writer.clone_file();
        file.map_or(FileState::Failed, |file| {
            FileState::from_file(&file, &self.path, lost)
        })
    }

    pub fn written_bytes(&self) -> u64 {
        self.writer.size_bytes()
    }

    pub fn is_full(&self) -> bool {
        self.writer.is_full()
    }

    /// Ends the stream when the JVM ends. Returns the message for the user.
    pub fn finish(&self) -> (LogLevel, String) {
        self.writer.finish_stream(clock::nano_time());
        let megabytes = self.writer.size_bytes() as f64 / 1e6;
        let full = match self.writer.is_full() {
            true => "; it is full, later events are counted only",
            false => "",
        };
        let file_state = self.file_state();
        let path = file_state.current_path(&self.path).display();
        match file_state
            .describe_loss(&self.path)
            .filter(|_| file_state.has_lost_data())
        {
            Some(what) => {
                let line = format!("{what}: the events' times are lost");
                (LogLevel::Error, line)
            }
            None => {
                let line = format!("events streamed to {path} ({megabytes:.1} MB{full})");
                (LogLevel::Info, line)
            }
        }
    }
}
