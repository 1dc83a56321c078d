//! `arm64`: the agent for Linux aarch64 as it is shipped, and programs under it that qemu runs, numbers compared with the JVM's own
//! traces.
//!
//! qemu keeps the order in which this machine's processor makes loads and stores visible, which is stricter than that of ARM: what is
//! tried are instructions, sizes and addresses. Why each read of what other threads write is sound elsewhere is told in `LucceRtFrames.java`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::shipped::FLOOR;
use crate::shipped::glibc;
use crate::systems::{BuildSources, System, Tools};
use crate::{Outcome, dist, paths, tools};

/// Classes that come and go, initialisers, tasks.
const PROGRAMS: [&str; 2] = ["ClassInit", "Tasks"];
/// One event in so many is compared.
const SAMPLE: u32 = 7;

/// # Errors
/// A tool cannot be had, the agent does not build or wants a glibc that is too new, or a number was wrong.
pub fn check() -> Outcome {
    let of = System::ARM64.tools()?;
    let agent = of.built(
        BuildSources::Workspace(&["lucce-agent"]),
        "release",
        &dist::epoch()?,
    )?;
    let agent = agent.join("liblucce.so");
    let wanted = glibc::linked(&agent)?;
    if wanted > FLOOR {
        return Err(format!("{}: wants glibc {wanted}", agent.display()));
    }
    let folder = paths::target().join("systems/arm64/runs");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for program in PROGRAMS {
        let log = folder.join(program).with_extension("lucce");
        run(program, &of, &agent, &log)?;
    }
    Ok(())
}

fn run(program: &str, of: &Tools, agent: &Path, log: &Path) -> Outcome {
    let mut java = Command::new(of.java()?.join("java"));
    java.arg("-Xmx128m");
    let options = format!("out={},verify={SAMPLE},ctl=off,strict=on", log.display());
    java.arg(format!("-agentpath:{}={options}", agent.display()));
    java.arg("-cp")
        .arg(paths::harness().join("programs/target/programs.jar"));
    tools::run_quietly(java.arg(format!("io.lucce.programs.{program}")))?;
    let mut check = Command::new(paths::lucce());
    let said = tools::output(check.args(["check", "--json"]).arg(log))?;
    let said: Value = serde_json::from_slice(&said).map_err(|e| e.to_string())?;
    let compared = said["compared"].as_u64().unwrap_or(0);
    match (compared, said["mismatches"].as_u64()) {
        (1.., Some(0)) => println!("{program}: {compared} numbers compared, no mismatch"),
        _ => return Err(format!("{program}: {said}")),
    }
    Ok(())
}
