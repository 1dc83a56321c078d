//! Zig's linker knows each glibc and each processor: `cargo zigbuild`, fetched from PyPI into the target folder.

use std::path::PathBuf;
use std::process::Command;

use crate::{Outcome, paths, pip};

const PACKAGES: [&str; 2] = ["cargo-zigbuild==0.24.0", "ziglang==0.17.1"];

fn folder() -> PathBuf {
    paths::target().join("zig")
}

/// # Errors
/// PyPI cannot be asked.
pub fn fetched() -> Outcome {
    let folder = folder();
    match folder.join("bin/cargo-zigbuild").exists() {
        true => Ok(()),
        false => pip::install(&folder, &PACKAGES),
    }
}

/// `cargo zigbuild`, of this workspace.
///
/// Zig compiles libraries of its own when it links. Their debug information names the folder of their sources, as Zig is
/// told it. So Zig gets the folder as an open descriptor, whose name is true on any machine.
///
/// # Errors
/// It cannot be had.
pub fn cargo() -> Result<Command, String> {
    fetched()?;
    let mut cargo = Command::new("sh");
    cargo
        .args(["-c", r#"exec 9<"$0" && exec "$@""#])
        .arg(folder().join("ziglang/lib"))
        .arg(folder().join("bin/cargo-zigbuild"));
    cargo.current_dir(paths::root()).arg("zigbuild");
    cargo.env("ZIG_LIB_DIR", "/proc/self/fd/9");
    // It asks Python for `ziglang`.
    cargo.env("PYTHONPATH", folder());
    Ok(cargo)
}

/// Zig as a C compiler. [`fetched`] has it there.
pub fn c_compiler() -> Command {
    let mut compiler = Command::new("python3");
    compiler.args(["-m", "ziglang", "cc"]);
    compiler.env("PYTHONPATH", folder());
    compiler
}
