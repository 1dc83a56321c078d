//! Whom verbs are about that look again and again: a JVM, or the log of a run.

use std::path::{Path, PathBuf};

use super::list::{find, jvms};
use super::{Failure, ctl, process};

pub struct Target {
    /// `None`: a log was named.
    pub pid: Option<u32>,
    pub log: PathBuf,
}

impl Target {
    /// Of a process id, the name of a JVM, or a file.
    pub fn of(asked: &str) -> Result<Target, Failure> {
        let path = Path::new(asked);
        if asked.parse::<u32>().is_err() && path.is_file() {
            let log = path.to_owned();
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
