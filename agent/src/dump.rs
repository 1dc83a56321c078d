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
    copy(&log, || bytes, to).map_err(|e| format!("cannot write {file}: {e}"))?;
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
    // A thread that has begun in the meantime goes on in a block that was there before its own.
    let copied = copy(&stream, || streamer.bytes(), &to);
    let bytes = copied.map_err(|e| format!("cannot write {}: {e}", to.display()))?;
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

/// The copy gets its name when it is whole: as many bytes as are said in the end.
fn copy(log: &File, bytes: impl Fn() -> u64, to: &Path) -> io::Result<u64> {
    replaceable(log, to)?;
    let mut unfinished = to.to_owned().into_os_string();
    unfinished.push(format!(".{}.part", std::process::id()));
    let unfinished = PathBuf::from(unfinished);
    let written = write(log, bytes, &unfinished);
    let written = written.and_then(|bytes| fs::rename(&unfinished, to).map(|()| bytes));
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

/// Goes on while the file grows, but not for ever.
fn write(log: &File, bytes: impl Fn() -> u64, to: &Path) -> io::Result<u64> {
    const PIECE: u64 = 1 << 20;
    const LOOKS: u32 = 16;
    let mut copy = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(libc::O_NOFOLLOW)
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
mod tests {
    use std::cell::Cell;

    use super::*;

    /// What has been copied already may name what was added since.
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
        assert_eq!(copy(&log, growing, &to).unwrap(), 24);
        assert_eq!(fs::read(&to).unwrap(), b"a block, and another one");
        let endless = Cell::new(0);
        let more = || endless.replace(endless.get() + 1);
        assert!(copy(&log, more, &to).unwrap() < 24);
        fs::remove_dir_all(&folder).unwrap();
    }
}
