//! The processes that write logs: their mapped files, and whether they still run.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lucce_tracelog::MAGIC;

/// Whether no process writes the log any more: the process has ended, or the process with its id has not mapped the file.
/// Best effort.
pub fn is_gone(pid: u32, log: &Path) -> bool {
    match read_maps(pid) {
        Ok(maps) => {
            let file =
                fs::canonicalize(log).and_then(|path| Ok((fs::metadata(&path)?.ino(), path)));
            file.is_ok_and(|(inode, path)| !maps_file(&maps, inode, &path))
        }
        // Maps of other users' processes cannot be read.
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// The mapped files of a process, from the kernel.
pub fn read_maps(pid: u32) -> io::Result<String> {
    let maps = fs::read(format!("/proc/{pid}/maps"))?;
    Ok(String::from_utf8_lossy(&maps).into_owned())
}

/// Inode and name of mapped files. A line has address, rights, offset, device, inode, and then the file.
pub fn mapped_files(maps: &str) -> impl Iterator<Item = (Option<u64>, &str)> {
    maps.lines().filter_map(|line| {
        let inode = line.split_ascii_whitespace().nth(4);
        let name = line.find('/').and_then(|at| line.get(at..))?;
        Some((inode.and_then(|inode| inode.parse().ok()), name))
    })
}

/// Whether a process maps the file. Another mount may have another name, and an overlay file system another inode.
fn maps_file(maps: &str, inode: u64, path: &Path) -> bool {
    mapped_files(maps).any(|(found, name)| found == Some(inode) || Path::new(name) == path)
}

/// The log that a process has mapped.
pub fn find_log(pid: u32) -> Result<PathBuf, String> {
    let mapped = read_maps(pid).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => format!("there is no process {pid}"),
        _ => format!("process {pid}: {e}"),
    })?;
    let mut last = "";
    for (_, file) in mapped_files(&mapped) {
        if file != last && is_log(Path::new(file)) {
            return Ok(file.into());
        }
        last = file;
    }
    Err(format!(
        "process {pid} has no log open: it does not run under the agent, or its log was removed"
    ))
}

fn is_log(path: &Path) -> bool {
    let mut magic = [0; MAGIC.len()];
    let ordinary = fs::metadata(path).is_ok_and(|file| file.is_file());
    let mut read = || File::open(path)?.read_exact(&mut magic);
    ordinary && read().is_ok() && magic == MAGIC
}

#[cfg(test)]
mod process_tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_that_has_not_mapped_the_log_is_another_one() {
        let own = std::process::id();
        // Every process maps its own code.
        assert!(!is_gone(own, &std::env::current_exe().unwrap()));
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, "").unwrap();
        assert!(is_gone(own, &log));
        assert!(is_gone(u32::MAX, &std::env::current_exe().unwrap()));
        // The file was removed; its process may still run.
        assert!(!is_gone(own, &folder.path().join("none")));
    }

    #[test]
    fn files_are_identified_by_inode_or_name() {
        let maps = "7f00-7f01 rw-s 00000000 fd:00 4711                       /tmp/a b.lucce\n\
                    7f02-7f03 rw-p 00000000 00:00 0\n";
        let mapped = |inode, path: &str| maps_file(maps, inode, Path::new(path));
        assert!(mapped(4711, "/mnt/b") && mapped(1, "/tmp/a b.lucce"));
        assert!(!mapped(471, "/tmp/a"));
    }

    #[test]
    fn a_process_without_a_log_is_reported() {
        assert!(find_log(u32::MAX).unwrap_err().contains("no process"));
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        let message = find_log(other.id()).unwrap_err();
        other.kill().and_then(|()| other.wait()).unwrap();
        assert!(message.contains("has no log open"), "{message}");
    }
}
