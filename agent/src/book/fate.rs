//! What has become of a file of the run's: somebody may truncate, remove or move it while the JVM runs.

use std::fs::{self, File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lucce_tracelog::Lost;

/// Of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    Whole,
    /// It is there, under another name; `None`: which one is not known.
    Moved(Option<PathBuf>),
    Removed,
    Truncated,
    /// Pages of it could not be read or written.
    Failed,
}

impl Fate {
    /// Of the file that was made under the name `path`.
    pub fn of(file: &File, path: &Path, lost: Option<Lost>) -> Fate {
        match lost {
            Some(Lost::Truncated) => return Fate::Truncated,
            Some(Lost::Failed) => return Fate::Failed,
            None => {}
        }
        let Ok(own) = file.metadata() else {
            return Fate::Failed;
        };
        if own.nlink() == 0 {
            return Fate::Removed;
        }
        let is_own = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| same(&own, &found));
        if is_own(&path.to_owned()) {
            return Fate::Whole;
        }
        let link = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        Fate::Moved(link.ok().filter(is_own))
    }

    /// Whether no reader gets the whole of what was written.
    pub fn is_lost(&self) -> bool {
        matches!(self, Fate::Removed | Fate::Truncated | Fate::Failed)
    }

    /// One word, for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Fate::Whole => "whole",
            Fate::Moved(_) => "moved",
            Fate::Removed => "removed",
            Fate::Truncated => "truncated",
            Fate::Failed => "failed",
        }
    }

    /// What the file is called now.
    pub fn path<'a>(&'a self, path: &'a Path) -> &'a Path {
        match self {
            Fate::Moved(Some(now)) => now,
            _ => path,
        }
    }

    /// What has happened, if something has.
    pub fn told(&self, path: &Path) -> Option<String> {
        let path = path.display();
        Some(match self {
            Fate::Whole => return None,
            Fate::Moved(Some(now)) => format!("{path} was moved to {}", now.display()),
            Fate::Moved(None) => format!("{path} was moved"),
            Fate::Removed => format!("{path} was removed while the JVM ran"),
            Fate::Truncated => format!("{path} was truncated while the JVM ran"),
            Fate::Failed => format!("the system could not keep all of {path}"),
        })
    }
}

fn same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_followed() {
        let folder = std::env::temp_dir().join(format!("lucce-fate-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, other) = (folder.join("a"), folder.join("b"));
        let file = File::create(&path).unwrap();
        let fate = || Fate::of(&file, &path, None);
        assert_eq!(fate(), Fate::Whole);
        assert_eq!(
            Fate::of(&file, &path, Some(Lost::Truncated)),
            Fate::Truncated
        );
        fs::rename(&path, &other).unwrap();
        assert_eq!(fate(), Fate::Moved(Some(other.clone())));
        // As a rotation of logs does.
        fs::write(&path, b"x").unwrap();
        assert_eq!(fate(), Fate::Moved(Some(other.clone())));
        fs::remove_file(&other).unwrap();
        assert_eq!(fate(), Fate::Removed);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(fate(), Fate::Removed);
    }
}
