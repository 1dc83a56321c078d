//! Marks logs that a collector does not have yet.
//!
//! Such a log has a mark beside it, `LOG.push`, which names the destination. The JVM holds the mark's lock while it
//! runs. A process that finds a mark without an owner may send the log.
#![allow(unsafe_code, reason = "flock is a system call")]

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use lucce_tracelog::open_file;

use crate::wire::RunLabels;

const EXTENSION: &str = ".push";
/// The maximum size of a mark in bytes.
const MAX_MARK_BYTES: u64 = 8 << 10;

/// A log's mark, locked.
pub struct PushMark {
    path: PathBuf,
    /// Dropping this releases the lock.
    _locked: File,
    pub to: String,
    pub labels: RunLabels,
}

impl PushMark {
    /// Marks a log that is to be sent.
    ///
    /// # Errors
    /// The mark cannot be written, or another process holds it.
    pub fn create(log: &Path, to: &str, labels: &RunLabels) -> io::Result<PushMark> {
        let path = mark_path(log);
        let mut file = File::create_new(&path)?;
        if !lock_file(&file) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let RunLabels {
            service,
            version,
            host,
        } = labels;
        let lines = [to, service, version, host].map(|line| line.replace(['\n', '\r'], " "));
        file.write_all((lines.join("\n") + "\n").as_bytes())?;
        Ok(PushMark {
            path,
            _locked: file,
            to: to.to_owned(),
            labels: labels.clone(),
        })
    }

    /// Locks the mark of a log, if its JVM has ended and no other process sends the log.
    #[must_use]
    pub fn claim_mark(log: &Path) -> Option<PushMark> {
        let path = mark_path(log);
        let file = open_file(&path).ok()?;
        if !lock_file(&file) {
            return None;
        }
        let mut text = String::new();
        (&file)
            .take(MAX_MARK_BYTES)
            .read_to_string(&mut text)
            .ok()?;
        let mut lines = text.lines().map(str::to_owned);
        // The process that created it was killed meanwhile, or the file is no mark.
        let to = lines.next()?;
        let labels = RunLabels {
            service: lines.next()?,
            version: lines.next()?,
            host: lines.next()?,
        };
        // Another process held it until now, and has finished with the log.
        path.exists().then_some(PushMark {
            path,
            _locked: file,
            to,
            labels,
        })
    }

    /// Removes the mark, because the collector has the log.
    pub fn remove_mark(self) {
        // A mark that stays causes another transfer, which changes nothing.
        let _ = fs::remove_file(&self.path);
    }
}

fn mark_path(log: &Path) -> PathBuf {
    let mut name = OsString::from(log);
    name.push(EXTENSION);
    name.into()
}

/// Returns the logs of a folder that have marks.
///
/// # Errors
/// The folder cannot be read.
pub fn list_marked_logs(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().into_string();
        if let Some(log) = name
            .as_deref()
            .ok()
            .and_then(|name| name.strip_suffix(EXTENSION))
        {
            logs.push(folder.join(log));
        }
    }
    logs.sort();
    Ok(logs)
}

/// Locks a file until it is closed. Returns whether no other process holds the lock.
#[must_use]
pub fn lock_file(file: &File) -> bool {
    // SAFETY: a system call on a file that is open.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Returns the name of this machine; empty if it has none.
#[must_use]
pub fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

#[cfg(test)]
mod push_mark_tests {
    use super::*;

    #[test]
    fn a_log_is_sent_by_others_once_its_owner_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("a.lucce");
        let labels = RunLabels {
            service: "shop\nx".into(),
            version: "1".into(),
            host: String::new(),
        };
        let own = PushMark::create(&log, "http://h", &labels).unwrap();
        assert!(PushMark::claim_mark(&log).is_none());
        assert!(PushMark::create(&log, "http://h", &labels).is_err());
        drop(own);
        assert_eq!(
            list_marked_logs(folder.path()).unwrap(),
            std::slice::from_ref(&log)
        );
        let mark = PushMark::claim_mark(&log).unwrap();
        assert_eq!(mark.to, "http://h");
        assert_eq!(mark.labels.service, "shop x");
        assert!(PushMark::claim_mark(&log).is_none());
        mark.remove_mark();
        assert!(PushMark::claim_mark(&log).is_none());
        assert!(list_marked_logs(folder.path()).unwrap().is_empty());
    }
}
