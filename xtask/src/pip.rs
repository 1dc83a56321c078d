//! Packages of PyPI, each set in a folder of its own.

use std::path::Path;
use std::process::Command;

use crate::{Outcome, tools};

/// These packages and no others, as they are built already.
///
/// # Errors
/// pip is missing, or cannot get one of them.
pub fn install(folder: &Path, packages: &[&str]) -> Outcome {
    tools::run(command(folder).args(packages))
}

/// The same, as they are built for a platform of PyPI's: `manylinux_2_17_aarch64`.
///
/// # Errors
/// As for [`install`].
pub fn install_for(platform: &str, folder: &Path, packages: &[&str]) -> Outcome {
    let mut pip = command(folder);
    tools::run(pip.args(["--platform", platform]).args(packages))
}

fn command(folder: &Path) -> Command {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]);
    pip.arg("--only-binary=:all:").arg("--target").arg(folder);
    pip
}
