//! Where the socket of a process is: `/tmp/.lucce_pidN`, beside the JVM's own `.java_pidN`.
//!
//! N is the number that the process has in its own container, and `/tmp` is the container's, which
//! others see as `/proc/PID/root/tmp`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const FOLDER: &str = "/tmp";

/// There is no process of that number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoProcess;

/// The folder of a process for its sockets, and the number that it has there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    folder: PathBuf,
    inner: u32,
}

impl Place {
    /// This process's own.
    #[must_use]
    pub fn own() -> Place {
        Place {
            folder: FOLDER.into(),
            inner: std::process::id(),
        }
    }

    /// Another process's.
    ///
    /// # Errors
    /// There is none.
    pub fn of(pid: u32) -> Result<Place, NoProcess> {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let status = fs::read_to_string(process.join("status")).map_err(|_| NoProcess)?;
        if is_dead(&status) || is_thread(&status, pid) {
            return Err(NoProcess);
        }
        Ok(Place {
            folder: folder_of(&process),
            inner: inner(&status).unwrap_or(pid),
        })
    }

    /// In another folder: for tests.
    #[must_use]
    pub fn at(folder: PathBuf, inner: u32) -> Place {
        Place { folder, inner }
    }

    /// The process's folder for temporary files, as this process sees it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The number that the process has in its own container.
    #[must_use]
    pub fn inner(&self) -> u32 {
        self.inner
    }

    /// The agent's socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.join(format!(".lucce_pid{}", self.inner))
    }
}

/// Removes the socket that a process left which is dead: one that belongs to this user and to which
/// nobody listens. Returns whether there was one.
#[must_use]
pub fn remove_stale(pid: u32) -> bool {
    let left = Place::at(FOLDER.into(), pid).socket();
    let refused = || {
        let error = std::os::unix::net::UnixStream::connect(&left).err();
        error.is_some_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
    };
    is_own_socket(&left) && refused() && fs::remove_file(&left).is_ok()
}

/// Whether it is a socket of this user.
pub fn is_own_socket(path: &Path) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    fs::symlink_metadata(path)
        .is_ok_and(|found| found.file_type().is_socket() && found.uid() == crate::peer::user())
}

/// Processes of other containers have a root of their own; that of this one may not be readable.
fn folder_of(process: &Path) -> PathBuf {
    let seen = process.join("root/tmp");
    match fs::metadata(&seen) {
        Ok(found) if found.is_dir() => seen,
        _ => FOLDER.into(),
    }
}

/// The last of `NSpid: 4711 12`.
fn inner(status: &str) -> Option<u32> {
    let line = field(status, "NSpid:")?;
    line.split_whitespace().last()?.parse().ok()
}

fn is_dead(status: &str) -> bool {
    field(status, "State:").is_some_and(|state| state.trim_start().starts_with(['Z', 'X']))
}

fn is_thread(status: &str, pid: u32) -> bool {
    field(status, "Tgid:").is_some_and(|group| group.trim().parse() != Ok(pid))
}

fn field<'s>(status: &'s str, name: &str) -> Option<&'s str> {
    status.lines().find_map(|line| line.strip_prefix(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_in_the_innermost_container_counts() {
        assert_eq!(inner("Pid:\t4711\nNSpid:\t4711\t12\n"), Some(12));
        assert_eq!(inner("Pid:\t4711\n"), None);
    }

    #[test]
    fn zombies_and_threads_are_no_processes() {
        assert!(is_dead("State:\tZ (zombie)\n"));
        assert!(!is_dead("State:\tS (sleeping)\n"));
        assert!(is_thread("Tgid:\t5\n", 6) && !is_thread("Tgid:\t5\n", 5));
        assert_eq!(Place::of(u32::MAX), Err(NoProcess));
    }

    #[test]
    fn this_process_finds_itself() {
        let place = Place::of(std::process::id()).unwrap();
        assert_eq!(
            place.socket().file_name(),
            Place::own().socket().file_name()
        );
    }
}
