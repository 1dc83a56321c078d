//! README and what it refers to, in `share/doc/lucce` under the names that the repository has for them, so that links between
//! them hold there, too.

use std::fs;
use std::path::{Path, PathBuf};

use super::created;
use crate::{Outcome, paths};

/// Where they are, below an archive's folder.
pub const FOLDER: &str = "share/doc/lucce";

/// What is copied as it is: files, and folders with all that is in them.
const ALL: [&str; 13] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE",
    "NOTICE",
    "docs",
    "lab/docs",
    "lab/notes",
    "agent/include/lucce.h",
    "java-harness/README.md",
    "java-harness/native/sampler.c",
];

/// Copies them, and puts a README at the top of `stage` that refers to the copies.
pub fn write(stage: &Path) -> Outcome {
    let root = paths::root();
    for name in ALL {
        copy(&root.join(name), &stage.join(FOLDER).join(name))?;
    }
    let text = read(&root.join("README.md"))?;
    let text = with_links(&text, |link| match is_elsewhere(link) {
        true => link.to_owned(),
        false => format!("{FOLDER}/{link}"),
    });
    let file = stage.join("README.md");
    fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))
}

fn copy(from: &Path, to: &Path) -> Outcome {
    if from.is_dir() {
        for entry in entries(from)? {
            copy(&entry, &to.join(entry.file_name().unwrap_or_default()))?;
        }
        return Ok(());
    }
    created(to.parent().unwrap_or(to))?;
    let copied = fs::copy(from, to).map_err(|e| format!("{}: {e}", from.display()));
    copied.map(|_| ())
}

/// Whether each link of each document below `folder` leads to a file.
///
/// # Errors
/// Those that lead nowhere.
pub fn hold_together(folder: &Path) -> Outcome {
    let mut dead = Vec::new();
    let mut documents = 0;
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in entries(&at)? {
            if entry.is_dir() {
                open.push(entry);
            } else if entry.extension().is_some_and(|kind| kind == "md") {
                documents += 1;
                let from = entry.parent().unwrap_or(folder);
                with_links(&read(&entry)?, |link| {
                    let file = link.split('#').next().unwrap_or_default();
                    if !is_elsewhere(link) && !from.join(file).exists() {
                        dead.push(format!("{}: {link}", entry.display()));
                    }
                    link.to_owned()
                });
            }
        }
    }
    match dead.is_empty() && documents > 0 {
        true => Ok(()),
        false => Err(format!(
            "of {documents} documents these links lead nowhere: {dead:?}"
        )),
    }
}

/// On another machine, or in the same document.
fn is_elsewhere(link: &str) -> bool {
    link.contains("://") || link.starts_with('#')
}

/// The text with other targets for its links, `[words](target)`.
fn with_links(text: &str, mut other: impl FnMut(&str) -> String) -> String {
    let mut parts = text.split("](");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        result.push_str("](");
        match part.split_once(')') {
            Some((link, rest)) => {
                result.push_str(&other(link));
                result.push(')');
                result.push_str(rest);
            }
            None => result.push_str(part),
        }
    }
    result
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

#[cfg(test)]
mod documents_tests {
    use super::*;

    #[test]
    fn the_documents_hold_together() {
        let stage = paths::target().join("documents-test");
        let _ = fs::remove_dir_all(&stage);
        write(&stage).unwrap();
        hold_together(&stage).unwrap();
        let gone = stage.join(FOLDER).join("docs/reference/coverage.md");
        fs::remove_file(gone).unwrap();
        let dead = hold_together(&stage).unwrap_err();
        assert!(dead.contains("README.md: share/doc/lucce/docs/reference/coverage.md"));
        assert!(
            dead.contains("README.md: docs/reference/coverage.md"),
            "{dead}"
        );
        fs::remove_dir_all(&stage).unwrap();
    }

    #[test]
    fn links_are_found() {
        let text = "a [b](c.md) ![d](e.png) `[f]` (g) [h](http://i/j) [k](l";
        let other = with_links(text, |link| link.to_uppercase());
        assert_eq!(
            other,
            "a [b](C.MD) ![d](E.PNG) `[f]` (g) [h](HTTP://I/J) [k](l"
        );
    }
}
