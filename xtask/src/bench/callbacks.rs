//! What the agent's callbacks for locks take, of a contended monitor: `java-harness/native/callbacks.c`.
//!
//! Times of a whole hand-over differ by more than an event costs, so the callbacks themselves are timed.

use std::ffi::OsString;
use std::process::Command;

use lucce_bench::{Plan, Variant};

use crate::jdk::Jdk;
use crate::{Outcome, paths, tools};

/// Prints them if the benchmark is the one of contended locks and the variant `lock` is measured.
///
/// `command` runs the benchmark with a variant and more options of the JVM.
///
/// # Errors
/// The agent that looks at the clock does not compile, or the benchmark fails.
pub fn print_times(
    plan: &Plan,
    jdk: &Jdk,
    benchmark: &str,
    command: impl Fn(&Variant, &[OsString]) -> Result<Command, String>,
) -> Outcome {
    let mut variants = plan.variants.iter();
    let Some(lock) = variants.find(|variant| variant.name == "lock") else {
        return Ok(());
    };
    if !benchmark.contains(".ContendedLock.") {
        return Ok(());
    }
    let library = plan.scratch.join("callbacks.so");
    let include = jdk.home.join("include");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-I"])
        .arg(&include)
        .arg("-I")
        .arg(include.join("linux"))
        .arg("-o")
        .arg(&library)
        .arg(paths::harness().join("native/callbacks.c"));
    tools::run(&mut cc)?;
    let mut flag = OsString::from("-agentpath:");
    flag.push(&library);
    let said = tools::output(&mut command(lock, &[flag])?)?;
    for line in String::from_utf8_lossy(&said).lines() {
        if line.starts_with("callbacks: MonitorContended") {
            println!("  {line}");
        }
    }
    Ok(())
}
