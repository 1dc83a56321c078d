//! The log as it is now: on the disk, and as a copy.
//!
//! What was recorded so far is sealed first, so that nothing in the copied part changes any more but
//! counters, each of which is one word. So the program goes on counting while it is copied.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lucce_control::json::Object;
use lucce_stream::path_beside;

use crate::agent::Agent;

/// `file`: an absolute path. It is replaced if it is an ordinary file.
///
/// # Errors
/// One line for the user: what the disk says, or that there is something else.
pub fn dump(agent: &Agent, file: Option<&str>) -> Result<String, String> {
    // First, so that the log explains all that is in it.
    let stream = stream(agent, file)?;
    let (log, bytes) = agent
        .log
        .checkpoint()
        .map_err(|e| format!("cannot read the log: {e}"))?;
    let Some(file) = file else {
        log.sync_data()
            .map_err(|e| format!("cannot write the log: {e}"))?;
        return Ok(done(&agent.options.out, bytes, stream));
    };
    let to = Path::new(file);
    copy(&log, bytes, to).map_err(|e| format!("cannot write {file}: {e}"))?;
    Ok(done(to, bytes, stream))
}

/// The same of the stream, if there is one: its copy lies beside that of the log.
fn stream(agent: &Agent, file: Option<&str>) -> Result<Option<(PathBuf, u64)>, String> {
    let Some(streamer) = &agent.streamer else {
        return Ok(None);
    };
    let from = streamer.file();
    let (stream, bytes) = from.map_err(|e| format!("cannot read the stream: {e}"))?;
    let Some(file) = file else {
        let synced = stream.sync_data();
        synced.map_err(|e| format!("cannot write the stream: {e}"))?;
        return Ok(Some((streamer.path().to_owned(), bytes)));
    };
    let to = path_beside(Path::new(file));
    let copied = copy(&stream, bytes, &to);
    copied.map_err(|e| format!("cannot write {}: {e}", to.display()))?;
    Ok(Some((to, bytes)))
}

fn done(file: &Path, bytes: u64, stream: Option<(PathBuf, u64)>) -> String {
    let done = file_and_size(file, bytes);
    match stream {
        None => done.end(),
        Some((stream, bytes)) => done
            .raw("stream", file_and_size(&stream, bytes).end())
            .end(),
    }
}

fn file_and_size(file: &Path, bytes: u64) -> Object {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    Object::default()
        .text("file", &file.to_string_lossy())
        .raw("bytes", bytes)
}

/// The copy gets its name when it is whole.
fn copy(log: &File, bytes: u64, to: &Path) -> io::Result<()> {
    replaceable(log, to)?;
    let mut unfinished = to.to_owned().into_os_string();
    unfinished.push(format!(".{}.part", std::process::id()));
    let unfinished = PathBuf::from(unfinished);
    let written = write(log, bytes, &unfinished).and_then(|()| fs::rename(&unfinished, to));
    if written.is_err() {
        // The error is the one before.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

fn replaceable(log: &File, to: &Path) -> io::Result<()> {
    let refused = |why| Err(io::Error::other(why));
    let (log, there) = (
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
    match (there.dev(), there.ino()) == (log.dev(), log.ino()) {
        true => refused("this is the log itself"),
        false => Ok(()),
    }
}

fn write(log: &File, bytes: u64, to: &Path) -> io::Result<()> {
    const PIECE: u64 = 1 << 20;
    let mut copy = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(to)?;
    let mut piece = vec![0; PIECE as usize];
    let mut at = 0;
    while at < bytes {
        let want = PIECE.min(bytes - at) as usize;
        let piece = piece.get_mut(..want).unwrap_or_default();
        log.read_exact_at(piece, at)?;
        copy.write_all(piece)?;
        at += want as u64;
    }
    copy.sync_data()
}
