//! The state of an output file. Somebody may truncate, remove or move it while the JVM runs.

use std::fs::{self, File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lucce_tracelog::FileLoss;

/// The state of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileState {
    Whole,
    /// The file exists under another name. `None`: the new name is unknown.
    Moved(Option<PathBuf>),
    Removed,
    Truncated,
    /// Some pages could not be read or written.
    Failed,
}

impl FileState {
    /// The state of `file`, which was created as `path`.
    pub fn from_file(file: &File, path: &Path, lost: Option<FileLoss>) -> FileState {
        match lost {
            Some(FileLoss::Truncated) => return FileState::Truncated,
            Some(FileLoss::Failed) => return FileState::Failed,
            None => {}
        }
        let Ok(own) = file.metadata() else {
            return FileState::Failed;
        };
        if own.nlink() == 0 {
            return FileState::Removed;
        }
        let is_own =
            |path: &PathBuf| fs::metadata(path).is_ok_and(|found| is_same_file(&own, &found));
        if is_own(&path.to_owned()) {
            return FileState::Whole;
        }
        let link = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        FileState::Moved(link.ok().filter(is_own))
    }

    /// Whether readers cannot get everything that was written.
    pub fn has_lost_data(&self) -> bool {
        matches!(
            self,
            FileState::Removed | FileState::Truncated | FileState::Failed
        )
    }

    /// One word, for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            FileState::Whole => "whole",
            FileState::Moved(_) => "moved",
            FileState::Removed => "removed",
            FileState::Truncated => "truncated",
            FileState::Failed => "failed",
        }
    }

    /// The file's current path.
    pub fn current_path<'a>(&'a self, path: &'a Path) -> &'a Path {
        match self {
            FileState::Moved(Some(now)) => now,
            _ => path,
        }
    }

    /// A description for the user, unless the file is whole.
    pub fn describe_loss(&self, path: &Path) -> Option<String> {
        let path = path.display();
        Some(match self {
            FileState::Whole => return None,
            FileState::Moved(Some(now)) => format!("{path} was moved to {}", now.display()),
            FileState::Moved(None) => format!("{path} was moved"),
            FileState::Removed => format!("{path} was removed while the JVM ran"),
            FileState::Truncated => format!("{path} was truncated while the JVM ran"),
            FileState::Failed => format!("the system could not keep all of {path}"),
        })
    }
}

fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(test)]
mod file_state_tests {
    use super::*;

    #[test]
    fn a_file_is_followed() {
        let folder = std::env::temp_dir().join(format!("lucce-file-state-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, other) = (folder.join("a"), folder.join("b"));
        let file = File::create(&path).unwrap();
        let file_state = || FileState::from_file(&file, &path, None);
        assert_eq!(file_state(), FileState::Whole);
        assert_eq!(
            FileState::from_file(&file, &path, Some(FileLoss::Truncated)),
            FileState::Truncated
        );
        fs::rename(&path, &other).unwrap();
        assert_eq!(file_state(), FileState::Moved(Some(other.clone())));
        // As log rotation does.
        fs::write(&path, b"x").unwrap();
        assert_eq!(file_state(), FileState::Moved(Some(other.clone())));
        fs::remove_file(&other).unwrap();
        assert_eq!(file_state(), FileState::Removed);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(file_state(), FileState::Removed);
    }
}
