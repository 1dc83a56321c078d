//! The file of a recording: it ends where this process has written last, or nothing more is written.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use lucce_tracelog::new_file;

/// A file that no other process should change.
#[derive(Debug)]
pub struct RecordingFile {
    file: File,
    written: u64,
}

impl RecordingFile {
    /// # Errors
    /// The file cannot be made, or something has the name already.
    pub fn create(path: &Path) -> io::Result<RecordingFile> {
        let file = new_file(path)?;
        Ok(RecordingFile { file, written: 0 })
    }

    /// The same file.
    ///
    /// # Errors
    /// The system's.
    pub fn clone_file(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

impl Write for RecordingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Behind a gap nothing could be read.
        if self.file.metadata()?.len() != self.written {
            return Err(io::Error::other("the file was truncated"));
        }
        let written = self.file.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod file_tests {
    use super::*;

    #[test]
    fn nothing_is_written_behind_a_gap() {
        let path = std::env::temp_dir().join(format!("lucce-own-{}", std::process::id()));
        let mut own = RecordingFile::create(&path).unwrap();
        assert!(RecordingFile::create(&path).is_err());
        own.write_all(b"one").unwrap();
        own.write_all(b"two").unwrap();
        own.clone_file().unwrap().set_len(2).unwrap();
        assert!(own.write_all(b"three").is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"on");
        std::fs::remove_file(&path).unwrap();
    }
}
