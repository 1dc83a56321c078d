//! Saving the present log: to the disk, and as a copy.
//!
//! The present records are sealed first. Then only counters change in the copied part, each of which is one word. So the program
//! continues to count during the copy.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lucce_control::json::ReplyObject;
use lucce_stream::events_path;

use crate::registry::file_state::FileState;
use crate::session::Agent;

/// Copies the log and the stream to `file`, an absolute path. An existing file is only replaced if it is empty or an earlier copy
/// of this log.
///
/// # Errors
/// One line for the user: the disk's error, or another file exists.
pub fn dump_files(agent: &Agent, file: Option<&str>) -> Result<String, String> {
    let file_state = agent.core.log.file_state(&agent.core.options.out);
    if let FileState::Truncated | FileState::Failed = file_state {
        return Err(file_state
            .describe_loss(&agent.core.options.out)
            .unwrap_or_default());
    }
    let Some(file) = file else {
        return sync_files(agent, &file_state);
    };
    // The stream comes first, so that the log explains everything in it.
    let stream = copy_stream(agent, file)?;
    let (log, bytes) = agent
        .core
        .log
        .checkpoint()
        .map_err(|e| format!("cannot read the log: {e}"))?;
    let failed = |e| format!("cannot write {file}: {e}");
    let to = Path::new(file);
    let copied = UnfinishedCopy::copy_from(&log, || bytes, to).map_err(failed)?;
    // Both or none: a failure up to here leaves no file behind.
    let streamed = stream.as_ref().map(|copy| (copy.to.clone(), copy.bytes));
    let named = stream
        .map(UnfinishedCopy::finish_copy)
        .transpose()
        .map_err(failed)?;
    if let Err(e) = copied.finish_copy() {
        // The earlier error is returned.
        let _ = named.map(fs::remove_file);
        return Err(failed(e));
    }
    Ok(dump_json(to, bytes, streamed))
}

/// Writes the files to the disk without a copy.
fn sync_files(agent: &Agent, file_state: &FileState) -> Result<String, String> {
    if *file_state == FileState::Removed {
        let log = agent.core.options.out.display();
        return Err(format!(
            "{log} was removed while the JVM ran: say in which file it is to be saved"
        ));
    }
    let streamed = agent.core.streamer.as_ref().map(|streamer| {
        let (stream, bytes) = streamer.file_with_size()?;
        stream.sync_data()?;
        Ok((streamer.path().to_owned(), bytes))
    });
    let streamed = streamed.transpose();
    let streamed = streamed.map_err(|e: io::Error| format!("cannot write the stream: {e}"))?;
    let synced = agent.core.log.checkpoint().and_then(|(log, bytes)| {
        log.sync_data()?;
        Ok(bytes)
    });
    let bytes = synced.map_err(|e| format!("cannot write the log: {e}"))?;
    Ok(dump_json(
        file_state.current_path(&agent.core.options.out),
        bytes,
        streamed,
    ))
}

/// Copies the stream beside the log's copy, if there is a stream.
fn copy_stream(agent: &Agent, file: &str) -> Result<Option<UnfinishedCopy>, String> {
    let Some(streamer) = &agent.core.streamer else {
        return Ok(None);
    };
    let file_state = streamer.file_state();
    if let FileState::Truncated | FileState::Failed = file_state {
        return Err(file_state
            .describe_loss(streamer.path())
            .unwrap_or_default());
    }
    let from = streamer.file_with_size();
    let (stream, _) = from.map_err(|e| format!("cannot read the stream: {e}"))?;
    let to = events_path(Path::new(file));
    // A thread that has begun in the meantime continues in a block that existed before its own.
    let copied = UnfinishedCopy::copy_from(&stream, || streamer.written_bytes(), &to);
    let copied = copied.map_err(|e| format!("cannot write {}: {e}", to.display()))?;
    Ok(Some(copied))
}

fn dump_json(file: &Path, bytes: u64, stream: Option<(PathBuf, u64)>) -> String {
    let done = file_object(file, bytes);
    match stream {
        None => done.into_json(),
        Some((stream, bytes)) => done
            .with_raw("stream", file_object(&stream, bytes).into_json())
            .into_json(),
    }
}

fn file_object(file: &Path, bytes: u64) -> ReplyObject {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    ReplyObject::default()
        .with_text("file", &file.to_string_lossy())
        .with_raw("bytes", bytes)
}

/// A copy without its final name. Dropping it removes the file.
struct UnfinishedCopy {
    unfinished: PathBuf,
    to: PathBuf,
    bytes: u64,
}

impl UnfinishedCopy {
    /// Copies the number of bytes that `bytes` finally returns.
    fn copy_from(log: &File, bytes: impl Fn() -> u64, to: &Path) -> io::Result<UnfinishedCopy> {
        check_replaceable(log, to)?;
        let mut unfinished = to.to_owned().into_os_string();
        unfinished.push(format!(".{}.part", std::process::id()));
        let mut copied = UnfinishedCopy {
            unfinished: unfinished.into(),
            to: to.to_owned(),
            bytes: 0,
        };
        copied.bytes = copy_bytes(log, bytes, &copied.unfinished)?;
        Ok(copied)
    }

    fn finish_copy(self) -> io::Result<PathBuf> {
        fs::rename(&self.unfinished, &self.to)?;
        Ok(self.to.clone())
    }
}

impl Drop for UnfinishedCopy {
    /// Removes the unfinished file; it does not exist any more if the copy has its name.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.unfinished);
    }
}

fn check_replaceable(log: &File, to: &Path) -> io::Result<()> {
    let refused = |why| Err(io::Error::other(why));
    let (own, there) = (
        log.metadata()?,
        match fs::symlink_metadata(to) {
            Ok(there) => there,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(e),
        },
    );
    if !there.is_file() {
        return refused("there is something that is not an ordinary file");
    }
    if (there.dev(), there.ino()) == (own.dev(), own.ino()) {
        return refused("this is the log itself");
    }
    match there.len() == 0 || read_head(log)? == read_head(&File::open(to)?)? {
        true => Ok(()),
        false => refused("there is a file that is no copy of this log; it stays as it is"),
    }
}

/// The beginning of a log or stream, which is unique to its run.
fn read_head(file: &File) -> io::Result<[u8; 64]> {
    let mut head = [0; 64];
    match file.read_exact_at(&mut head, 0) {
        // The file is shorter: it is neither.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok([0; 64]),
        read => read.map(|()| head),
    }
}

/// Continues while the file grows, up to a limit.
fn copy_bytes(log: &File, bytes: impl Fn() -> u64, to: &Path) -> io::Result<u64> {
    const PIECE: u64 = 1 << 20;
    const LOOKS: u32 = 16;
    // Left by an unfinished copy of this process, or of a process with the same id.
    let _ = fs::remove_file(to);
    let mut copy = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    let mut piece = vec![0; PIECE as usize];
    let mut at = 0;
    for _ in 0..LOOKS {
        let end = bytes();
        if at == end {
            break;
        }
        while at < end {
            let want = PIECE.min(end - at) as usize;
            let piece = piece.get_mut(..want).unwrap_or_default();
            log.read_exact_at(piece, at)?;
            copy.write_all(piece)?;
            at += want as u64;
        }
    }
    copy.sync_data()?;
    Ok(at)
}

#[cfg(test)]
mod dump_tests {
    use std::cell::Cell;

    use super::*;

    /// The part copied earlier may refer to data that was added since.
    #[test]
    fn what_is_added_while_a_file_is_copied_is_copied_too() {
        let folder = std::env::temp_dir().join(format!("lucce-dump-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (from, to) = (folder.join("from"), folder.join("to"));
        fs::write(&from, b"a block, and another one").unwrap();
        let log = File::open(&from).unwrap();
        let sizes = Cell::new(7);
        let growing = || {
            let size = sizes.get();
            sizes.set((size + 9).min(24));
            size
        };
        let copied = UnfinishedCopy::copy_from(&log, growing, &to).unwrap();
        assert_eq!(copied.bytes, 24);
        assert_eq!(copied.finish_copy().unwrap(), to);
        assert_eq!(fs::read(&to).unwrap(), b"a block, and another one");
        let endless = Cell::new(0);
        let more = || endless.replace(endless.get() + 1);
        assert!(UnfinishedCopy::copy_from(&log, more, &to).unwrap().bytes < 24);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_copy_without_a_name_leaves_nothing_behind() {
        let folder = std::env::temp_dir().join(format!("lucce-no-dump-{}", std::process::id()));
        fs::create_dir_all(folder.join("folder")).unwrap();
        fs::write(folder.join("from"), b"a block").unwrap();
        let log = File::open(folder.join("from")).unwrap();
        let files = || fs::read_dir(&folder).unwrap().count();
        // Bytes beyond the end of the file cannot be read.
        assert!(UnfinishedCopy::copy_from(&log, || 100, &folder.join("to")).is_err());
        assert!(UnfinishedCopy::copy_from(&log, || 7, &folder.join("folder")).is_err());
        assert!(UnfinishedCopy::copy_from(&log, || 7, &folder.join("none/to")).is_err());
        drop(UnfinishedCopy::copy_from(&log, || 7, &folder.join("to")).unwrap());
        assert_eq!(files(), 2);
        fs::remove_dir_all(&folder).unwrap();
    }
}
