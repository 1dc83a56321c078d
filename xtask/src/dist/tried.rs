//! Whether what was packed runs: unpacked into an empty folder, on a `PATH` that has a JDK and nothing else. What is for another
//! processor runs in qemu.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::documents;
use crate::systems::Tools;
use crate::{Outcome, paths, tools};

/// A program of musl that loads the agent.
const LOADS: &str = include_str!("loads.c");

/// A program that allocates a little.
const PROGRAM: &str = "io.lucce.programs.Tasks";

/// # Errors
/// What is in the archive or in the package does not run, or records nothing.
pub fn archive(at: &Path, name: &str, of: &Tools) -> Outcome {
    let folder = empty(at)?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(at.join(format!("{name}.tar.gz")));
    tools::run_quietly(tar.arg("-C").arg(&folder))?;
    let root = folder.join(name);
    runs(&root, at, of)?;
    documents::hold_together(&root)?;
    remove(&folder)
}

/// Where no JVM is: a C program loads the agent and calls it, and the command prints its help.
///
/// # Errors
/// The agent or the command does not load, or the agent lacks a function.
pub fn musl_archive(at: &Path, name: &str, of: &Tools) -> Outcome {
    let folder = empty(at)?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(at.join(format!("{name}.tar.gz")));
    tools::run_quietly(tar.arg("-C").arg(&folder))?;
    let root = folder.join(name);
    let (source, program) = (folder.join("loads.c"), folder.join("loads"));
    fs::write(&source, LOADS).map_err(|e| format!("{}: {e}", source.display()))?;
    of.compile_c(&source, &program)?;
    let mut loads = of.c_command(&program);
    let said = tools::output(loads.env_clear().arg(root.join("lib/liblucce.so")))?;
    let said = String::from_utf8_lossy(&said);
    let expected = format!("lucce {}, not running: -1\n", env!("CARGO_PKG_VERSION"));
    if said != expected {
        return Err(format!("the agent under musl: {said:?}, not {expected:?}"));
    }
    let mut version = of.command(&root.join("bin/lucce"));
    let said = tools::output(version.env_clear().arg("--version"))?;
    let said = String::from_utf8_lossy(&said);
    if !said.contains(env!("CARGO_PKG_VERSION")) {
        return Err(format!("the command under musl: {said}"));
    }
    documents::hold_together(&root)?;
    remove(&folder)
}

/// # Errors
/// As for [`archive`].
pub fn deb(at: &Path, file: &str, of: &Tools) -> Outcome {
    let folder = empty(at)?;
    let mut unpack = Command::new("dpkg-deb");
    tools::run_quietly(unpack.arg("--extract").arg(at.join(file)).arg(&folder))?;
    runs(&folder.join("usr"), at, of)?;
    documents::hold_together(&folder.join("usr").join(documents::FOLDER))?;
    remove(&folder)
}

/// # Errors
/// lucce-fleet of the archive does not run, or answers wrongly.
pub fn fleet_archive(at: &Path, name: &str, of: &Tools) -> Outcome {
    let folder = empty(at)?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(at.join(format!("{name}.tar.gz")));
    tools::run_quietly(tar.arg("-C").arg(&folder))?;
    answers(&folder.join(name).join("bin/lucce-fleet"), of)?;
    remove(&folder)
}

/// # Errors
/// As for [`fleet_archive`].
pub fn fleet_deb(at: &Path, file: &str, of: &Tools) -> Outcome {
    let folder = empty(at)?;
    let mut unpack = Command::new("dpkg-deb");
    tools::run_quietly(unpack.arg("--extract").arg(at.join(file)).arg(&folder))?;
    answers(&folder.join("usr/bin/lucce-fleet"), of)?;
    remove(&folder)
}

/// A question about the dataset of the crate's tests, without any environment.
fn answers(program: &Path, of: &Tools) -> Outcome {
    let dataset = paths::root().join("fleet/tests/data/version-1");
    let mut query = of.command(program);
    query.env_clear().args(["query", "--output", "json"]);
    query.arg("--dataset").arg(dataset);
    let said = tools::output(query.arg("SELECT COUNT(*) AS runs FROM runs"))?;
    let said: Value = serde_json::from_slice(&said).map_err(|e| e.to_string())?;
    match said[0]["runs"].as_u64() {
        Some(1..) => Ok(()),
        _ => Err(format!("{}: {said}", program.display())),
    }
}

/// A JVM with the agent, and one that the command starts with the agent that it finds beside itself; both logs are read.
fn runs(root: &Path, at: &Path, of: &Tools) -> Outcome {
    let (lucce, agent) = (root.join("bin/lucce"), root.join("lib/liblucce.so"));
    let jdk = of.java()?;
    let logs = at.join("tried logs");
    let _ = fs::remove_dir_all(&logs);
    fs::create_dir_all(&logs).map_err(|e| e.to_string())?;
    let by_hand = logs.join("by-hand.lucce");
    let mut java = alone(Command::new(jdk.join("java")), &jdk);
    java.arg(format!(
        "-agentpath:{}=out={}",
        agent.display(),
        by_hand.display()
    ));
    tools::run_quietly(java.arg("-cp").arg(programs()).arg(PROGRAM))?;
    let by_command = logs.join("by-command.lucce");
    let mut run = alone(of.command(&lucce), &jdk);
    run.args(["run", "--out"]).arg(&by_command);
    run.args(["--", "java", "-cp"]).arg(programs()).arg(PROGRAM);
    tools::run_quietly(&mut run)?;
    for log in [by_hand, by_command] {
        let mut report = alone(of.command(&lucce), &jdk);
        let said = tools::output(report.args(["report", "--top", "1"]).arg(&log))?;
        let said = String::from_utf8_lossy(&said);
        if !said.contains(PROGRAM) || !said.contains("#1 ") {
            return Err(format!("{}: {said}", log.display()));
        }
    }
    remove(&logs)
}

/// Nothing of the environment but where the JDK is.
fn alone(mut command: Command, jdk: &Path) -> Command {
    command.env_clear().env("PATH", jdk);
    command
}

fn programs() -> PathBuf {
    paths::harness().join("programs/target/programs.jar")
}

/// Its name has a space, as users' folders may.
fn empty(at: &Path) -> Result<PathBuf, String> {
    let folder = at.join("tried here");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    Ok(folder)
}

fn remove(folder: &Path) -> Outcome {
    fs::remove_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}
