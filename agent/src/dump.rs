//! The log as it is now: on the disk, and as a copy.
//!
//! What was recorded so far is sealed first, so that nothing in the copied part changes any more but
//! counters, each of which is one word. So the program goes on counting while it is copied.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lucce_control::json::Object;

use crate::agent::Agent;

/// `file`: an absolute path. It is replaced if it is an ordinary file.
///
/// # Errors
/// One line for the user: what the disk says, or that there is something else.
pub fn dump(agent: &Agent, file: Option<&str>) -> Result<String, String> {
    let (log, bytes) = agent
        .log
        .checkpoint()
        .map_err(|e| format!("cannot read the log: {e}"))?;
    let Some(file) = file else {
        log.sync_data()
            .map_err(|e| format!("cannot write the log: {e}"))?;
        return Ok(done(&agent.options.out, bytes));
    };
    let to = Path::new(file);
    copy(&log, bytes, to).map_err(|e| format!("cannot write {file}: {e}"))?;
    Ok(done(to, bytes))
}

fn done(file: &Path, bytes: u64) -> String {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    Object::default()
        .text("file", &file.to_string_lossy())
        .raw("bytes", bytes)
        .end()
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
