//! async-profiler, from its Maven artifact, which carries the native library.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{build, jdk, paths, tools};

const ARTIFACT: &str = "tools.profiler:async-profiler:4.4";
const JAR: &str = "async-profiler-4.4.jar";
const LIBRARY: &str = "linux-x64/libasyncProfiler.so";

/// The library; None, and a line that says why, if it is not to be had.
pub fn fetched() -> Option<PathBuf> {
    let folder = paths::target().join("async-profiler");
    let library = folder.join(LIBRARY);
    if !library.exists() {
        println!("fetching {ARTIFACT} into {}", paths::short(&folder));
        if let Err(e) = fetch(&folder) {
            println!("no async-profiler: {e}");
            return None;
        }
    }
    Some(library)
}

fn fetch(folder: &PathBuf) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut mvn = Command::new("mvn");
    mvn.args(["--batch-mode", "--no-transfer-progress", "--quiet"]);
    mvn.arg("org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy");
    mvn.arg(format!("-Dartifact={ARTIFACT}"));
    mvn.arg(format!("-DoutputDirectory={}", folder.display()));
    tools::run_quietly(build::with_jdk(&mut mvn))?;
    let jdk = jdk::compiler().ok_or("no JDK with its tools")?;
    let mut unpack = Command::new(jdk.tool("jar"));
    tools::run(
        unpack
            .current_dir(folder)
            .arg("xf")
            .arg(folder.join(JAR))
            .arg(LIBRARY),
    )
}
