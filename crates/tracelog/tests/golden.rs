//! The files of each released format version are read as they were when they were written.
//!
//! `BLESS=1` writes the current version's file again: only before that version is released.

mod sample;

use std::fs;
use std::path::{Path, PathBuf};

use lucce_tracelog::{FORMAT_VERSION, InMemoryLog};

#[test]
fn version_1() {
    is_read_as_it_was(1);
}

#[test]
fn version_2() {
    is_read_as_it_was(2);
}

#[test]
fn version_3() {
    is_read_as_it_was(3);
}

#[test]
fn version_4() {
    is_read_as_it_was(4);
    the_writer_still_writes(&golden(4, "log"));
}

fn golden(version: u16, extension: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    dir.join(format!("v{version}.{extension}"))
}

fn is_read_as_it_was(version: u16) {
    let (file, text) = (golden(version, "log"), golden(version, "txt"));
    if std::env::var_os("BLESS").is_some() && FORMAT_VERSION == version {
        sample::write(&file);
        fs::write(&text, sample::print(&InMemoryLog::open(&file).unwrap())).unwrap();
    }
    let read = sample::print(&InMemoryLog::open(&file).unwrap());
    assert_eq!(read, fs::read_to_string(&text).unwrap());
}

fn the_writer_still_writes(golden: &Path) {
    assert_eq!(FORMAT_VERSION, 4, "add a golden file");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    sample::write(&path);
    assert!(fs::read(path).unwrap() == fs::read(golden).unwrap());
}
