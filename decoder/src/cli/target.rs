//! Whom verbs are about that look again and again: a JVM, or the log of a run.

use std::path::{Path, PathBuf};

use lucce_tracelog::open_file;

use super::list::{find, jvms};
use super::{Failure, ctl, process};

pub struct Target {
    /// `None`: a log was named.
    pub pid: Option<u32>,
    pub log: PathBuf,
}

/// The file, if one is named and not a JVM.
///
/// # Errors
/// What is there is no file.
pub fn named_log(asked: &str) -> Result<Option<PathBuf>, Failure> {
    let path = Path::new(asked);
    // A folder may be called as a JVM is.
    let is_jvm = || path.is_dir() && find(asked, &jvms()).is_ok();
    if asked.parse::<u32>().is_ok() || !path.exists() || is_jvm() {
        return Ok(None);
    }
    match open_file(path) {
        Err(e) if !path.is_file() => Err(Failure::Open(path.to_owned(), e.into())),
        // Whether it can be read is told by who reads it.
        _ => Ok(Some(path.to_owned())),
    }
}

impl Target {
    /// Of a process id, the name of a JVM, or a file.
    pub fn of(asked: &str) -> Result<Target, Failure> {
        if let Some(log) = named_log(asked)? {
            return Ok(Target { pid: None, log });
        }
        let pid = find(asked, &jvms())?;
        let log = ctl::log_of(pid)?;
        let pid = Some(pid);
        Ok(Target { pid, log })
    }

    /// The JVM has ended. Of a log that was named this is not known.
    pub fn has_ended(&self) -> bool {
        self.pid.is_some_and(|pid| process::is_gone(pid, &self.log))
    }
}
