//! Class files with hooks at every place.

use std::fs;
use std::path::{Path, PathBuf};

use lucce_classkit::plans;

use crate::measured;

/// How much was done.
pub fn rewrite(folder: &Path) -> String {
    let classes = read_classes(&class_files(folder));
    assert!(
        !classes.is_empty(),
        "no class files in {}",
        folder.display()
    );
    let mut grown = 0;
    measured(&mut || {
        for class in &classes {
            let rewritten = plans::rewrite_everything(class);
            grown += rewritten.bytes.len() - class.len();
        }
    });
    assert!(grown > 0, "nothing was inserted");
    format!("{} classes", classes.len())
}

pub fn read_classes(files: &[PathBuf]) -> Vec<Vec<u8>> {
    let read = files.iter().map(fs::read);
    read.map(|bytes| bytes.expect("a class file")).collect()
}

/// In a fixed order.
pub fn class_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let of = |path: PathBuf| match path.is_dir() {
        true => class_files(&path),
        false if path.extension().is_some_and(|e| e == "class") => vec![path],
        false => Vec::new(),
    };
    paths.into_iter().flat_map(of).collect()
}
