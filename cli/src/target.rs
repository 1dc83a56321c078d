//! The target of commands that read repeatedly: a JVM, or the log of a run.

use std::path::{Path, PathBuf};

use lucce_tracelog::open_file;

use super::list::{find_pid, list_jvms};
use super::{CommandError, agent_status, process};

/// The target as the user names it.
#[derive(clap::Args)]
pub struct TargetArgs {
    /// Process id of the JVM, its main class or jar, or the end of one; or the log of a run
    #[arg(value_name = "JVM|RUN")]
    pub jvm: String,
}

pub struct RunTarget {
    /// The process id; `None`: a log was named.
    pub pid: Option<u32>,
    pub log: PathBuf,
}

/// The log's file, if the name is a file and not a JVM.
///
/// # Errors
/// The path exists and is not a file.
pub fn find_log_file(target: &str) -> Result<Option<PathBuf>, CommandError> {
    let path = Path::new(target);
    // A folder may have the name of a JVM.
    let is_jvm = || path.is_dir() && find_pid(target, &list_jvms()).is_ok();
    if target.parse::<u32>().is_ok() || !path.exists() || is_jvm() {
        return Ok(None);
    }
    match open_file(path) {
        Err(e) if !path.is_file() => Err(CommandError::Open(path.to_owned(), e.into())),
        // Whether it can be read is reported when it is opened.
        _ => Ok(Some(path.to_owned())),
    }
}

/// The log of a process id, a JVM's name, or a file.
pub fn resolve_log(target: &str) -> Result<PathBuf, CommandError> {
    if let Some(log) = find_log_file(target)? {
        return Ok(log);
    }
    let pid = find_pid(target, &list_jvms())?;
    process::find_log(pid).map_err(CommandError::Usage)
}

impl RunTarget {
    /// The target for a process id, a JVM's name, or a file.
    pub fn from_name(target: &str) -> Result<RunTarget, CommandError> {
        if let Some(log) = find_log_file(target)? {
            return Ok(RunTarget { pid: None, log });
        }
        let pid = find_pid(target, &list_jvms())?;
        let log = agent_status::log_path_of(pid)?;
        let pid = Some(pid);
        Ok(RunTarget { pid, log })
    }

    /// Whether the JVM has ended; unknown (false) if a log was named.
    pub fn has_ended(&self) -> bool {
        self.pid.is_some_and(|pid| process::is_gone(pid, &self.log))
    }
}
