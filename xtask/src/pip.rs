//! Packages of PyPI, each set in a folder of its own.

use std::path::Path;
use std::process::Command;

use crate::{Outcome, tools};

/// These packages and no others, as they are built already.
///
/// # Errors
/// pip is missing, or cannot get one of them.
pub fn install(folder: &Path, packages: &[&str]) -> Outcome {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]);
    pip.arg("--only-binary=:all:");
    tools::run(pip.arg("--target").arg(folder).args(packages))
}
