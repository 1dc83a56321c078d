//! `arm64`: the agent for Linux aarch64 as it is shipped, and programs under it that qemu runs, numbers compared with the JVM's own
//! traces.
//!
//! qemu keeps the order in which this machine's processor makes loads and stores visible, which is stricter than that of ARM: what is
//! tried are instructions, sizes and addresses. Why each read of what other threads write is sound elsewhere is told in `LucceRtFrames.java`.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::shipped::FLOOR;
use crate::shipped::glibc;
use crate::systems::{BuildSources, System, Tools};
use crate::{Outcome, build, dist, jdk, paths, tools};

/// A program that runs under the agent in qemu.
struct EmulatedProgram {
    name: &'static str,
    jdk: u32,
    /// The JVM's flags.
    flags: &'static [&'static str],
    /// How many contexts the program compares by itself, as on x86-64; none: that differs between runs.
    contexts: Option<u32>,
}

/// Class initialisers, tasks, classes of loaders, objects that threads hand over, virtual threads that change their carrier.
const PROGRAMS: [EmulatedProgram; 5] = [
    EmulatedProgram {
        name: "ClassInit",
        jdk: jdk::OLD,
        flags: &[],
        contexts: None,
    },
    EmulatedProgram {
        name: "Tasks",
        jdk: jdk::OLD,
        flags: &[],
        contexts: None,
    },
    EmulatedProgram {
        name: "ClassLoading",
        jdk: jdk::OLD,
        flags: &["-Dlucce.loaders=3"],
        contexts: Some(1_320),
    },
    EmulatedProgram {
        name: "HandOver",
        jdk: jdk::OLD,
        flags: &[],
        contexts: Some(290),
    },
    EmulatedProgram {
        name: "VirtualThreads",
        jdk: jdk::NEW,
        // qemu has addresses for the shadow stacks of some 800 threads; a thousand live at a time. Wrong numbers still fail.
        flags: &["-Dlucce.threads=20", "-Dlucce.check.none-allowed=true"],
        contexts: Some(10_896),
    },
];
/// One event in so many is compared by the agent: the emulator takes long for the VM's stacks. Programs compare numbers themselves.
const SAMPLE: u32 = 31;

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
    let class_path = class_path()?;
    for program in &PROGRAMS {
        let log = folder.join(program.name).with_extension("lucce");
        program.run(&of, &class_path, &agent, &log)?;
    }
    Ok(())
}

fn class_path() -> Result<OsString, String> {
    let classes = paths::target().join("systems/arm64/programs-21");
    let new = build::programs_21(&jdk::newest()?, classes)?;
    let programs = paths::harness().join("programs/target/programs.jar");
    env::join_paths([programs, new]).map_err(|e| e.to_string())
}

impl EmulatedProgram {
    fn run(&self, of: &Tools, class_path: &OsStr, agent: &Path, log: &Path) -> Outcome {
        let EmulatedProgram {
            name,
            jdk,
            flags,
            contexts,
        } = self;
        let folder = match *jdk {
            jdk::OLD => of.java()?,
            version => of.image_java(version)?,
        };
        let mut java = Command::new(folder.join("java"));
        java.arg("-Xmx128m").args(*flags);
        let options = format!("out={},verify={SAMPLE},ctl=off,strict=on", log.display());
        java.arg(format!("-agentpath:{}={options}", agent.display()));
        java.arg("-cp").arg(class_path);
        let said = tools::output_quietly(java.arg(format!("io.lucce.programs.{name}")))?;
        let said = String::from_utf8_lossy(&said);
        let result = said.lines().last().unwrap_or_default();
        let expected = contexts.map_or("OK ".to_owned(), |known| format!("OK {known} contexts "));
        if !result.starts_with(&expected) {
            return Err(format!("{name}: {result:?}, not {expected:?}"));
        }
        let mut check = Command::new(paths::lucce());
        let said = tools::output(check.args(["check", "--json"]).arg(log))?;
        let said: Value = serde_json::from_slice(&said).map_err(|e| e.to_string())?;
        let compared = said["compared"].as_u64().unwrap_or(0);
        match (compared, said["mismatches"].as_u64()) {
            (1.., Some(0)) => {
                println!("{name} on JDK {jdk}: {result}; {compared} events compared, no mismatch");
                Ok(())
            }
            _ => Err(format!("{name}: {said}")),
        }
    }
}
