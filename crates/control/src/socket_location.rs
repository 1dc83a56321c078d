//! The location of a process's socket: `/tmp/.lucce_pidN`, beside the JVM's own `.java_pidN`.
//!
//! N is the process's number in its own container. `/tmp` is the container's folder, which other processes see as
//! `/proc/PID/root/tmp`.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

const FOLDER: &str = "/tmp";
const SOCKET: &str = ".lucce_pid";

/// No process has that number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoProcess;

/// The folder of a process for its sockets, and its number there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SocketLocation {
    folder: PathBuf,
    inner_pid: u32,
}

impl SocketLocation {
    /// Returns the location of this process.
    #[must_use]
    pub fn for_current_process() -> SocketLocation {
        SocketLocation {
            folder: FOLDER.into(),
            inner_pid: std::process::id(),
        }
    }

    /// Returns the location of another process.
    ///
    /// # Errors
    /// The process does not exist.
    pub fn from_pid(pid: u32) -> Result<SocketLocation, NoProcess> {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let status = fs::read_to_string(process.join("status")).map_err(|_| NoProcess)?;
        if is_dead(&status) || is_thread(&status, pid) {
            return Err(NoProcess);
        }
        Ok(SocketLocation {
            folder: temporary_folder(&process),
            inner_pid: parse_inner_pid(&status).unwrap_or(pid),
        })
    }

    /// Returns a location in another folder, for tests.
    #[must_use]
    pub fn in_folder(folder: PathBuf, inner: u32) -> SocketLocation {
        SocketLocation {
            folder,
            inner_pid: inner,
        }
    }

    /// Returns the process's folder for temporary files, as this process sees it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the process's number in its own container.
    #[must_use]
    pub fn inner_pid(&self) -> u32 {
        self.inner_pid
    }

    /// Returns the path of the agent's socket.
    #[must_use]
    pub fn socket_path(&self) -> PathBuf {
        self.folder.join(format!("{SOCKET}{}", self.inner_pid))
    }
}

/// Removes the socket that a dead process left: it belongs to this user, and no process listens to it.
///
/// Returns whether there was one.
#[must_use]
pub fn remove_stale(pid: u32) -> bool {
    remove_if_dead(&SocketLocation::in_folder(FOLDER.into(), pid).socket_path())
}

/// Removes the sockets that killed processes of this user left in a folder.
///
/// A socket gets its name only while it is listened to, so a socket without a listener is useless.
pub fn remove_dead_sockets(place: &SocketLocation) {
    /// Other programs may have filled the folder.
    const MOST: usize = 10_000;
    let entries = fs::read_dir(place.folder()).into_iter().flatten();
    for entry in entries.take(MOST).flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(SOCKET));
        if let Some(Ok(inner)) = number.map(str::parse::<u32>)
            && inner != place.inner_pid
            && !Path::new("/proc").join(inner.to_string()).exists()
        {
            remove_if_dead(&entry.path());
        }
    }
}

fn remove_if_dead(path: &Path) -> bool {
    let refused = || {
        let error = UnixStream::connect(path).err();
        error.is_some_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
    };
    is_own_socket(path) && refused() && fs::remove_file(path).is_ok()
}

/// Whether the path is a socket of this user.
pub fn is_own_socket(path: &Path) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    fs::symlink_metadata(path).is_ok_and(|found| {
        found.file_type().is_socket() && found.uid() == crate::peer::effective_user()
    })
}

/// Returns the folder for temporary files. Processes of other containers have their own root; the root of a process of
/// this container may be unreadable.
fn temporary_folder(process: &Path) -> PathBuf {
    let seen = process.join("root/tmp");
    match fs::metadata(&seen) {
        Ok(found) if found.is_dir() => seen,
        _ => FOLDER.into(),
    }
}

/// Returns the last number of `NSpid: 4711 12`.
fn parse_inner_pid(status: &str) -> Option<u32> {
    let line = status_field(status, "NSpid:")?;
    line.split_whitespace().last()?.parse().ok()
}

fn is_dead(status: &str) -> bool {
    status_field(status, "State:").is_some_and(|state| state.trim_start().starts_with(['Z', 'X']))
}

fn is_thread(status: &str, pid: u32) -> bool {
    status_field(status, "Tgid:").is_some_and(|group| group.trim().parse() != Ok(pid))
}

fn status_field<'s>(status: &'s str, name: &str) -> Option<&'s str> {
    status.lines().find_map(|line| line.strip_prefix(name))
}

#[cfg(test)]
mod socket_location_tests {
    use super::*;

    #[test]
    fn the_number_in_the_innermost_container_counts() {
        assert_eq!(parse_inner_pid("Pid:\t4711\nNSpid:\t4711\t12\n"), Some(12));
        assert_eq!(parse_inner_pid("Pid:\t4711\n"), None);
    }

    #[test]
    fn zombies_and_threads_are_no_processes() {
        assert!(is_dead("State:\tZ (zombie)\n"));
        assert!(!is_dead("State:\tS (sleeping)\n"));
        assert!(is_thread("Tgid:\t5\n", 6) && !is_thread("Tgid:\t5\n", 5));
        assert_eq!(SocketLocation::from_pid(u32::MAX), Err(NoProcess));
    }

    #[test]
    fn what_dead_processes_have_left_is_swept() {
        use std::os::unix::net::UnixListener;
        let folder = tempfile::tempdir().unwrap();
        let at = |inner| SocketLocation::in_folder(folder.path().to_owned(), inner);
        let (dead, alive, heard) = (at(u32::MAX), at(std::process::id()), at(u32::MAX - 1));
        for place in [&dead, &alive] {
            drop(UnixListener::bind(place.socket_path()).unwrap());
        }
        let _listener = UnixListener::bind(heard.socket_path()).unwrap();
        fs::write(folder.path().join(".lucce_pid4294967293"), "no socket").unwrap();
        remove_dead_sockets(&at(1));
        assert!(!dead.socket_path().exists());
        assert!(alive.socket_path().exists() && heard.socket_path().exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn this_process_finds_itself() {
        let place = SocketLocation::from_pid(std::process::id()).unwrap();
        assert_eq!(
            place.socket_path().file_name(),
            SocketLocation::for_current_process()
                .socket_path()
                .file_name()
        );
    }
}
