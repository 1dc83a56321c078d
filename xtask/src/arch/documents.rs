//! Files that documents name are there, and ARCHITECTURE.md can be read in one sitting.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, paths, tools};

/// Where files of the code are named.
const DOCUMENTS: [&str; 5] = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/internals",
    "docs/reference",
    "lab/docs",
];

/// As many lines as ARCHITECTURE.md may have: mechanism stands in `docs/internals`.
const MOST_LINES: usize = 120;

/// # Errors
/// Names every file that is named and is not there.
pub fn check() -> Outcome {
    files_are_there()?;
    let architecture = paths::root().join("ARCHITECTURE.md");
    let text = fs::read_to_string(architecture).map_err(|e| format!("ARCHITECTURE.md: {e}"))?;
    match text.lines().count() {
        0..=MOST_LINES => Ok(()),
        more => Err(format!(
            "ARCHITECTURE.md has {more} lines, {MOST_LINES} are allowed"
        )),
    }
}

fn files_are_there() -> Outcome {
    let mut git = Command::new("git");
    let listed = tools::output(git.current_dir(paths::root()).args(["ls-files"]))?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let files: Vec<&str> = listed.lines().collect();
    let mut wrong = Vec::new();
    for document in documents()? {
        let text =
            fs::read_to_string(&document).map_err(|e| format!("{}: {e}", document.display()))?;
        for name in named(&text).filter(|name| !is_there(name, &files)) {
            let document = document.file_name().unwrap_or_default().to_string_lossy();
            wrong.push(format!("{document} names {name}"));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "files that are not there:\n  {}",
            wrong.join("\n  ")
        )),
    }
}

fn documents() -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for document in DOCUMENTS {
        let path = paths::root().join(document);
        if !path.is_dir() {
            found.push(path);
            continue;
        }
        let entries = fs::read_dir(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        for entry in entries {
            found.push(entry.map_err(|e| e.to_string())?.path());
        }
    }
    found.sort();
    Ok(found)
}

/// What stands between backticks and ends as sources do.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|name| {
        let is_source = Path::new(name)
            .extension()
            .is_some_and(|kind| kind == "rs" || kind == "java");
        is_source
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || "_-/.".contains(c))
    })
}

/// Folders at its beginning may be left out.
fn is_there(name: &str, files: &[&str]) -> bool {
    let mut files = files.iter();
    files.any(|file| {
        file.strip_suffix(name)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    })
}

#[cfg(test)]
mod documents_tests {
    use super::*;

    #[test]
    fn names_are_found_and_looked_up() {
        let text = "see `a/b.rs` and `C.java`, not `x` nor `*.rs`";
        assert_eq!(named(text).collect::<Vec<_>>(), ["a/b.rs", "C.java"]);
        let files = ["agent/src/a/b.rs", "D.java"];
        assert!(is_there("a/b.rs", &files) && is_there("b.rs", &files));
        assert!(!is_there("C.java", &files) && !is_there("c/b.rs", &files));
        assert!(is_there("D.java", &files));
    }
}
