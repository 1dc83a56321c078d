//! The folder of the class cache. Only the current user may be able to write to it.
#![allow(unsafe_code, reason = "asks the C library who the user is")]

use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{env, process};

use crate::options::ClassCacheOption;

const FILE_EXTENSION: &str = "classes";
/// Maximum number of files, which belong to different agents and options. The oldest files are removed first.
const MAX_FILES: usize = 8;
/// Minimum age after which reading a file renews its time of modification.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The folder by the options. `None`: no cache, or the user has no cache folder.
pub fn choose_folder(of: &ClassCacheOption) -> Option<PathBuf> {
    match of {
        ClassCacheOption::Off => None,
        ClassCacheOption::In(folder) => Some(folder.clone()),
        ClassCacheOption::User => user_folder(|name| env::var_os(name).map(PathBuf::from)),
    }
}

/// The user's cache folder, by the XDG base directory specification.
fn user_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(caches.join("lucce"))
}

/// The name of the file with this key.
pub fn file_name(key: u128) -> String {
    format!("{key:032x}.{FILE_EXTENSION}")
}

/// Opens a file that only this user can have written. `None`: it does not exist, or somebody else may have written it.
pub fn open(folder: &Path, name: &str) -> Option<File> {
    if !is_own(&fs::metadata(folder).ok()?) {
        return None;
    }
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(folder.join(name))
        .ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || !is_own(&metadata) {
        return None;
    }
    if file_age(&metadata) > DAY {
        // The file is in use: other files are removed first.
        let now = SystemTime::now();
        let _ = file.set_modified(now);
    }
    Some(file)
}

/// Whether the folder or file belongs to this user, and no other user may write to it.
fn is_own(metadata: &Metadata) -> bool {
    const OTHERS_WRITE: u32 = 0o022;
    // SAFETY: always succeeds.
    let user = unsafe { libc::geteuid() };
    metadata.uid() == user && metadata.mode() & OTHERS_WRITE == 0
}

fn file_age(metadata: &Metadata) -> Duration {
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    modified.elapsed().unwrap_or_default()
}

/// Replaces the file of this name as a whole.
///
/// # Errors
/// The file cannot be written, or other users may write to the folder. The old file remains.
pub fn replace_file(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    if !is_own(&fs::metadata(folder)?) {
        let why = "others may write to the folder";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    remove_old_files(folder, name);
    let new = folder.join(format!("{name}.{}", process::id()));
    // Left by a killed process with the same id.
    let _ = fs::remove_file(&new);
    let written = write_new_file(&new, bytes).and_then(|()| fs::rename(&new, folder.join(name)));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

fn write_new_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)
}

/// Removes the oldest files beyond the maximum, and files left by killed processes.
fn remove_old_files(folder: &Path, name: &str) {
    let mut files: Vec<(Duration, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(of) = entry.metadata() else { continue };
        let its_name = entry.file_name().into_string().unwrap_or_default();
        let (whole, rest) = its_name.split_at(its_name.len().min(name.len()));
        if !is_cache_file_name(whole) || whole == name {
            continue;
        }
        match rest {
            "" => files.push((file_age(&of), path)),
            _ if file_age(&of) > DAY => drop(fs::remove_file(path)),
            _ => {}
        }
    }
    files.sort();
    for (_, path) in files.into_iter().skip(MAX_FILES - 1) {
        let _ = fs::remove_file(path);
    }
}

fn is_cache_file_name(text: &str) -> bool {
    let number = text
        .strip_suffix(FILE_EXTENSION)
        .and_then(|rest| rest.strip_suffix('.'));
    number.is_some_and(|number| number.len() == 32 && number.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod cache_folder_tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let name = format!("lucce-cache-{name}-{}", process::id());
            Folder(env::temp_dir().join(name))
        }

        fn names(&self) -> Vec<String> {
            let files = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> = files
                .map(|file| file.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn the_users_folder_is_where_others_have_theirs() {
        let of = |variables: &[(&str, &str)]| {
            user_folder(|name| {
                let variable = variables.iter().find(|(known, _)| *known == name);
                variable.map(|(_, path)| path.into())
            })
        };
        assert_eq!(
            of(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")]),
            Some("/c/lucce".into())
        );
        assert_eq!(
            of(&[("HOME", "/h"), ("XDG_CACHE_HOME", "c")]),
            Some("/h/.cache/lucce".into())
        );
        assert_eq!((of(&[]), of(&[("HOME", "")])), (None, None));
    }

    #[test]
    fn a_file_takes_the_place_of_the_one_before() {
        let folder = Folder::new("place");
        let below = folder.0.join("below");
        let name = file_name(1);
        assert!(open(&below, &name).is_none());
        for text in [b"one", b"two"] {
            replace_file(&below, &name, text).unwrap();
            let file = open(&below, &name).unwrap();
            assert_eq!(io::read_to_string(file).unwrap().as_bytes(), text);
            assert_eq!((mode(&below), mode(&below.join(&name))), (0o700, 0o600));
        }
        assert_eq!(fs::read_dir(&below).unwrap().count(), 1);
    }

    #[test]
    fn what_others_may_have_written_is_not_read_nor_written() {
        let folder = Folder::new("others");
        let name = file_name(2);
        replace_file(&folder.0, &name, b"x").unwrap();
        let path = folder.0.join(&name);
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&path, 0o620);
        assert!(open(&folder.0, &name).is_none());
        set(&path, 0o644);
        assert!(open(&folder.0, &name).is_some());
        set(&folder.0, 0o777);
        assert!(open(&folder.0, &name).is_none());
        let error = replace_file(&folder.0, &name, b"y").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        set(&folder.0, 0o700);
        assert_eq!(fs::read(&path).unwrap(), b"x");
        // Neither a link nor a folder.
        fs::rename(&path, folder.0.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        assert!(open(&folder.0, &name).is_none());
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(open(&folder.0, &name).is_none());
        assert!(replace_file(&folder.0, &name, b"z").is_err());
        assert_eq!(folder.names(), [name, "elsewhere".into()]);
    }

    #[test]
    fn old_files_go_and_what_is_not_ours_stays() {
        let folder = Folder::new("room");
        let old = SystemTime::now() - 3 * DAY;
        fs::create_dir(&folder.0).unwrap();
        let make = |name: &str, modified| {
            let path = folder.0.join(name);
            fs::write(&path, b"").unwrap();
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(modified).unwrap();
        };
        make("notes.txt", old);
        make("notes.classes", old);
        make(&format!("{}.17", file_name(3)), old);
        make(&format!("{}.18", file_name(3)), SystemTime::now());
        for n in 0..12 {
            make(
                &file_name(100 + n),
                old + Duration::from_secs(60 * n as u64),
            );
        }
        replace_file(&folder.0, &file_name(4), b"").unwrap();
        let mut expected: Vec<String> = (105..112).map(file_name).collect();
        expected.extend([
            file_name(4),
            format!("{}.18", file_name(3)),
            "notes.txt".into(),
            "notes.classes".into(),
        ]);
        expected.sort();
        assert_eq!(folder.names(), expected);
    }
}
