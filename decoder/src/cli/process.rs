//! The process that a log names: is it still there?

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether nobody writes the log any more, as far as can be told: the process has ended, or what has its number
/// today has not mapped the file.
pub fn is_gone(pid: u32, log: &Path) -> bool {
    match fs::read(format!("/proc/{pid}/maps")) {
        Ok(maps) => {
            let file =
                fs::canonicalize(log).and_then(|path| Ok((fs::metadata(&path)?.ino(), path)));
            file.is_ok_and(|(inode, path)| {
                !maps_file(&String::from_utf8_lossy(&maps), inode, &path)
            })
        }
        // Others' processes do not say what they map.
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Lines have address, rights, offset, device, inode; then the file. Another mount has another name for it, and
/// a file system of layers may tell another inode.
fn maps_file(maps: &str, inode: u64, path: &Path) -> bool {
    maps.lines().any(|line| {
        let found = line.split_ascii_whitespace().nth(4);
        let named = line.find('/').and_then(|at| line.get(at..));
        found.and_then(|found| found.parse().ok()) == Some(inode)
            || named.map(Path::new) == Some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_not_mapped_the_log_is_another_one() {
        let own = std::process::id();
        // Of every process: its own code.
        assert!(!is_gone(own, &std::env::current_exe().unwrap()));
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, "").unwrap();
        assert!(is_gone(own, &log));
        assert!(is_gone(u32::MAX, &std::env::current_exe().unwrap()));
        // Somebody took it away: its process may be there.
        assert!(!is_gone(own, &folder.path().join("none")));
    }

    #[test]
    fn files_are_told_by_inode_or_name() {
        let maps = "7f00-7f01 rw-s 00000000 fd:00 4711                       /tmp/a b.lucce\n\
                    7f02-7f03 rw-p 00000000 00:00 0\n";
        let mapped = |inode, path: &str| maps_file(maps, inode, Path::new(path));
        assert!(mapped(4711, "/mnt/b") && mapped(1, "/tmp/a b.lucce"));
        assert!(!mapped(471, "/tmp/a"));
    }
}
