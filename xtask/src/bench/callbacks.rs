//! What the agent's callbacks for locks take, of a contended monitor: `java-harness/native/callbacks.c`.
//!
//! Times of a whole hand-over differ by more than an event costs, so the callbacks themselves are timed.

use std::process::Command;

use super::micro::Jmh;
use crate::{Outcome, paths, tools};

/// Prints them, if this is the benchmark and the variant is asked for.
///
/// # Errors
/// The agent that looks at the clock does not compile, or the benchmark fails.
pub fn tell(jmh: &Jmh<'_>, benchmark: &str) -> Outcome {
    let mut variants = jmh.plan.variants.iter();
    let Some(lock) = variants.find(|variant| variant.name == "lock") else {
        return Ok(());
    };
    if !benchmark.contains(".ContendedLock.") {
        return Ok(());
    }
    let library = jmh.plan.scratch.join("callbacks.so");
    let include = jmh.jdk.home.join("include");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-I"])
        .arg(&include)
        .arg("-I")
        .arg(include.join("linux"))
        .arg("-o")
        .arg(&library)
        .arg(paths::harness().join("native/callbacks.c"));
    tools::run(&mut cc)?;
    let mut flag = std::ffi::OsString::from("-agentpath:");
    flag.push(&library);
    let said = tools::output(&mut jmh.command(benchmark, lock, &[flag])?)?;
    for line in String::from_utf8_lossy(&said).lines() {
        if line.starts_with("callbacks: MonitorContended") {
            println!("  {line}");
        }
    }
    Ok(())
}
