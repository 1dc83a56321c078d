//! Files of new projects, the local repository that they share, and builds that must fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Maven, url};
use crate::Outcome;

/// A repository of its own: what an earlier run left in this user's would hide what is tried.
pub fn local(maven: &Maven) -> PathBuf {
    maven.to.join("local")
}

/// Writes files of a project: paths in it, and texts to fill in.
///
/// # Errors
/// A file cannot be written.
pub fn write_files(maven: &Maven, project: &Path, files: &[(&str, &str)]) -> Outcome {
    for (file, text) in files {
        let text = fill_in(maven, text);
        let path = project.join(file);
        let folder = path.parent().unwrap_or(project);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// The text with the version and the addresses of the repositories.
pub fn fill_in(maven: &Maven, text: &str) -> String {
    text.replace("VERSION", env!("CARGO_PKG_VERSION"))
        .replace("REPOSITORY", &url(&maven.repository()))
        .replace("CENTRAL", &url(&local(maven)))
}

/// All that a build tool prints, which must fail.
///
/// # Errors
/// It has not failed, or cannot be started.
pub fn failure(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| e.to_string())?;
    let both = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&both).into_owned();
    match output.status.success() {
        true => Err(format!("{command:?} has not failed: {text}")),
        false => Ok(text),
    }
}
