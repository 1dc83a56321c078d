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

use crate::book::fate::Fate;
use crate::session::Agent;

/// `file`: an absolute path. What is there stays as it is, unless it is an earlier copy of this log or empty.
///
/// # Errors
/// One line for the user: what the disk says, or that there is something else.
pub fn dump(agent: &Agent, file: Option<&str>) -> Result<String, String> {
    let fate = agent.log.fate(&agent.options.out);
    if let Fate::Truncated | Fate::Failed = fate {
        return Err(fate.told(&agent.options.out).unwrap_or_default());
    }
    let Some(file) = file else {
        return flush(agent, &fate);
    };
    // First, so that the log explains all that is in it.
    let stream = stream(agent, file)?;
    let (log, bytes) = agent
        .log
        .checkpoint()
        .map_err(|e| format!("cannot read the log: {e}"))?;
    let failed = |e| format!("cannot write {file}: {e}");
    let to = Path::new(file);
    let copied = Copied::of(&log, || bytes, to).map_err(failed)?;
    // Both or none: a failure so far leaves no file behind.
    let streamed = stream.as_ref().map(|copy| (copy.to.clone(), copy.bytes));
    let named = stream.map(Copied::named).transpose().map_err(failed)?;
    if let Err(e) = copied.named() {
        // The error is the one before.
        let _ = named.map(fs::remove_file);
        return Err(failed(e));
    }
    Ok(done(to, bytes, streamed))
}

/// Nothing is copied.
fn flush(agent: &Agent, fate: &Fate) -> Result<String, String> {
    if *fate == Fate::Removed {
        let log = agent.options.out.display();
        return Err(format!(
            "{log} was removed while the JVM ran: say in which file it is to be saved"
        ));
    }
    let streamed = agent.streamer.as_ref().map(|streamer| {
        let (stream, bytes) = streamer.file()?;
        stream.sync_data()?;
        Ok((streamer.path().to_owned(), bytes))
    });
    let streamed = streamed.transpose();
    let streamed = streamed.map_err(|e: io::Error| format!("cannot write the stream: {e}"))?;
    let synced = agent.log.checkpoint().and_then(|(log, bytes)| {
        log.sync_data()?;
        Ok(bytes)
    });
    let bytes = synced.map_err(|e| format!("cannot write the log: {e}"))?;
    Ok(done(fate.path(&agent.options.out), bytes, streamed))
}

/// A copy of the stream beside that of the log, if there is a stream.
fn stream(agent: &Agent, file: &str) -> Result<Option<Copied>, String> {
    let Some(streamer) = &agent.streamer else {
        return Ok(None);
    };
    let fate = streamer.fate();
    if let Fate::Truncated | Fate::Failed = fate {
        return Err(fate.told(streamer.path()).unwrap_or_default());
    }
    let from = streamer.file();
    let (stream, _) = from.map_err(|e| format!("cannot read the stream: {e}"))?;
    let to = path_beside(Path::new(file));
    // A thread that has begun in the meantime goes on in a block that was there before its own.
    let copied = Copied::of(&stream, || streamer.bytes(), &to);
    let copied = copied.map_err(|e| format!("cannot write {}: {e}", to.display()))?;
    Ok(Some(copied))
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

/// A copy that has not its own name yet; without one it is removed.
struct Copied {
    unfinished: PathBuf,
    to: PathBuf,
    bytes: u64,
}

impl Copied {
    /// As many bytes as are said in the end.
    fn of(log: &File, bytes: impl Fn() -> u64, to: &Path) -> io::Result<Copied> {
        replaceable(log, to)?;
        let mut unfinished = to.to_owned().into_os_string();
        unfinished.push(format!(".{}.part", std::process::id()));
        let mut copied = Copied {
            unfinished: unfinished.into(),
            to: to.to_owned(),
            bytes: 0,
        };
        copied.bytes = write(log, bytes, &copied.unfinished)?;
        Ok(copied)
    }

    fn named(self) -> io::Result<PathBuf> {
        fs::rename(&self.unfinished, &self.to)?;
        Ok(self.to.clone())
    }
}

impl Drop for Copied {
    /// It is gone if it has its name.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.unfinished);
    }
}

fn replaceable(log: &File, to: &Path) -> io::Result<()> {
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
    match there.len() == 0 || head(log)? == head(&File::open(to)?)? {
        true => Ok(()),
        false => refused("there is a file that is no copy of this log; it stays as it is"),
    }
}

/// The beginning of a log or stream: no two runs have one in common.
fn head(file: &File) -> io::Result<[u8; 64]> {
    let mut head = [0; 64];
    match file.read_exact_at(&mut head, 0) {
        // It is none.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok([0; 64]),
        read => read.map(|()| head),
    }
}

/// Goes on while the file grows, but not for ever.
fn write(log: &File, bytes: impl Fn() -> u64, to: &Path) -> io::Result<u64> {
    const PIECE: u64 = 1 << 20;
    const LOOKS: u32 = 16;
    // What an earlier copy has left unfinished, of this process or one of its number.
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
        let copied = Copied::of(&log, growing, &to).unwrap();
        assert_eq!(copied.bytes, 24);
        assert_eq!(copied.named().unwrap(), to);
        assert_eq!(fs::read(&to).unwrap(), b"a block, and another one");
        let endless = Cell::new(0);
        let more = || endless.replace(endless.get() + 1);
        assert!(Copied::of(&log, more, &to).unwrap().bytes < 24);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_copy_without_a_name_leaves_nothing_behind() {
        let folder = std::env::temp_dir().join(format!("lucce-no-dump-{}", std::process::id()));
        fs::create_dir_all(folder.join("folder")).unwrap();
        fs::write(folder.join("from"), b"a block").unwrap();
        let log = File::open(folder.join("from")).unwrap();
        let files = || fs::read_dir(&folder).unwrap().count();
        // What would be beyond the end of the file cannot be read.
        assert!(Copied::of(&log, || 100, &folder.join("to")).is_err());
        assert!(Copied::of(&log, || 7, &folder.join("folder")).is_err());
        assert!(Copied::of(&log, || 7, &folder.join("none/to")).is_err());
        drop(Copied::of(&log, || 7, &folder.join("to")).unwrap());
        assert_eq!(files(), 2);
        fs::remove_dir_all(&folder).unwrap();
    }
}
