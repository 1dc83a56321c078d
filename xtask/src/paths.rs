//! Where things are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace.
pub fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}

/// Cargo's target folder.
pub fn target() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

pub fn agent() -> PathBuf {
    target().join("release/liblucce.so")
}

/// The agent with the papers' systems.
pub fn lab_agent() -> PathBuf {
    target().join("release/liblucce-lab.so")
}

pub fn lucce() -> PathBuf {
    target().join("release/lucce")
}

pub fn harness() -> PathBuf {
    root().join("java-harness")
}

/// The Java libraries that are published.
pub fn artifacts() -> PathBuf {
    harness().join("artifacts")
}

/// The class path of the applications.
pub fn apps() -> String {
    let apps = harness().join("apps/target");
    format!("{0}/apps.jar:{0}/lib/*", apps.display())
}

/// The cargo that runs this.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// A path as a person in the workspace would type it.
pub fn short(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}
