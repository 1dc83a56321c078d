//! The tools that read what is exported, fetched into the target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{build, paths, pip, tools};

const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/// Their lists, locks and sources.
pub fn sources() -> PathBuf {
    paths::root().join("tests/consumers")
}

/// A file of a package of npm's that is in the lock.
pub fn npm(file: &str) -> Result<PathBuf, String> {
    let folder = folder()?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(sources().join(file), folder.join(file)).map_err(|e| format!("{file}: {e}"))?;
    }
    let file = folder.join("node_modules").join(file);
    if !file.exists() {
        let mut npm = Command::new("npm");
        npm.current_dir(&folder)
            .args(["ci", "--silent", "--no-audit", "--no-fund"]);
        tools::run_quietly(&mut npm)?;
    }
    Ok(file)
}

/// `python3` with these packages, and no others.
pub fn python(packages: &[&str]) -> Result<Command, String> {
    let site = folder()?.join("python").join(packages.join("+"));
    if !site.exists() {
        pip::install(&site, packages)?;
    }
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", site).arg("-B");
    Ok(python)
}

/// A folder with the jars of Maven's that are in the list.
pub fn jars() -> Result<PathBuf, String> {
    maven_jars(&sources().join("pom.xml"), "jars")
}

/// A folder of this name with the jars that a `pom.xml` lists.
pub fn maven_jars(list: &Path, name: &str) -> Result<PathBuf, String> {
    let jars = folder()?.join(name);
    if !jars.exists() {
        let fresh = folder()?.join(format!("{name}.fresh"));
        let mut mvn = build::mvn();
        mvn.args(["--batch-mode", "--no-transfer-progress", "--quiet", COPY]);
        mvn.arg("-f").arg(list);
        mvn.arg(format!("-DoutputDirectory={}", fresh.display()));
        tools::run_quietly(&mut mvn)?;
        fs::rename(&fresh, &jars).map_err(|e| format!("{}: {e}", jars.display()))?;
    }
    Ok(jars)
}

/// A program of Go's, built of a folder of the sources.
pub fn go(name: &str) -> Result<PathBuf, String> {
    let program = folder()?.join(name);
    let mut go = Command::new("go");
    go.current_dir(sources().join(name))
        .args(["build", "-o"])
        .arg(&program)
        .arg(".");
    tools::run_quietly(&mut go)?;
    Ok(program)
}

fn folder() -> Result<PathBuf, String> {
    let folder = paths::target().join("consumers");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

/// What a tool printed of a file, as JSON.
pub fn json(command: &mut Command, file: &Path) -> Result<serde_json::Value, String> {
    let said = tools::output(command.arg(file))?;
    serde_json::from_slice(&said).map_err(|e| format!("{}: {e}", file.display()))
}
