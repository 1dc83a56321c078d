//! The files of each released format version are read as they were when they were written.
//!
//! `BLESS=1` writes the current version's file again: only before that version is released.

mod sample;

use std::fs;
use std::path::Path;

use lucce_tracelog::{FORMAT_VERSION, Log};

#[test]
fn version_1() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let (file, text) = (dir.join("v1.log"), dir.join("v1.txt"));
    if std::env::var_os("BLESS").is_some() && FORMAT_VERSION == 1 {
        sample::write(&file);
        fs::write(&text, sample::print(&Log::open(&file).unwrap())).unwrap();
    }
    let read = sample::print(&Log::open(&file).unwrap());
    assert_eq!(read, fs::read_to_string(&text).unwrap());
    the_writer_still_writes(&file);
}

fn the_writer_still_writes(golden: &Path) {
    assert_eq!(FORMAT_VERSION, 1, "add a golden file");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    sample::write(&path);
    assert!(fs::read(path).unwrap() == fs::read(golden).unwrap());
}
