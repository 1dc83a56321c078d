//! `arm64`: the agent for Linux aarch64, built here, and programs under it that qemu runs, numbers compared with the JVM's own traces.
//!
//! qemu keeps the order in which this machine's processor makes loads and stores visible, which is stricter than that of ARM: what is
//! tried are instructions, sizes and addresses. Why each read of what other threads write is sound elsewhere is told in `LucceRt.java`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Outcome, build, place, tools};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const QEMU: &str = "qemu-aarch64-static";
/// Classes that come and go, initialisers, threads, tasks.
const PROGRAMS: [&str; 4] = ["ClassInit", "ManyThreads", "Tasks", "ClassUnloading"];
/// One event in so many is compared.
const SAMPLE: u32 = 7;
/// In KB. qemu notes each page of what a program reserves, and the agent would reserve 32 TB: of so little it takes a third.
const ADDRESSES: &str = "24000000";

const INSTALL: &str = "dpkg --add-architecture arm64 && apt-get update && apt-get install qemu-user-static gcc-aarch64-linux-gnu \
    rustc-web libstd-rust-web-dev:arm64 openjdk-17-jre-headless:arm64 (with rustup in place of rustc-web: rustup target add \
    aarch64-unknown-linux-gnu)";

/// # Errors
/// Something is missing or does not build, or a number was wrong.
pub fn check() -> Outcome {
    let missing = |what: &str| format!("{what} is missing: {INSTALL}");
    for tool in [LINKER, QEMU] {
        let probe = Command::new(tool).arg("--version").output();
        probe.map_err(|_| missing(tool))?;
    }
    let rustc =
        rustc().ok_or_else(|| missing("a compiler with the standard library for aarch64"))?;
    let java = java().ok_or_else(|| missing("a JDK for aarch64"))?;
    build::all()?;
    let agent = built(&rustc)?;
    let folder = place::target().join("arm64/runs");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for program in PROGRAMS {
        run(
            program,
            &java,
            &agent,
            &folder.join(program).with_extension("lucce"),
        )?;
    }
    Ok(())
}

fn run(program: &str, java: &Path, agent: &Path, log: &Path) -> Outcome {
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "ulimit -v $1; shift; exec \"$@\"",
        "limited",
        ADDRESSES,
        QEMU,
    ]);
    shell.arg(java).args(["-Xint", "-Xmx128m"]);
    let options = format!("out={},verify={SAMPLE},ctl=off,strict=on", log.display());
    shell.arg(format!("-agentpath:{}={options}", agent.display()));
    shell
        .arg("-cp")
        .arg(place::harness().join("programs/target/programs.jar"));
    tools::run_quietly(shell.arg(format!("io.lucce.programs.{program}")))?;
    let mut check = Command::new(place::lucce());
    let said = tools::output(check.args(["check", "--json"]).arg(log))?;
    let said: Value = serde_json::from_slice(&said).map_err(|e| e.to_string())?;
    let compared = said["compared"].as_u64().unwrap_or(0);
    match (compared, said["mismatches"].as_u64()) {
        (1.., Some(0)) => println!("{program}: {compared} numbers compared, no mismatch"),
        _ => return Err(format!("{program}: {said}")),
    }
    Ok(())
}

/// In a folder of its own: another compiler would have everything built anew.
fn built(rustc: &Path) -> Result<PathBuf, String> {
    let folder = place::target().join("arm64");
    let mut cargo = place::cargo();
    cargo.args([
        "build",
        "--quiet",
        "--locked",
        "-p",
        "lucce-agent",
        "--target",
        TARGET,
    ]);
    cargo.env("RUSTC", rustc).env("CARGO_TARGET_DIR", &folder);
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER);
    tools::run(build::with_jdk(&mut cargo))?;
    Ok(folder.join(TARGET).join("debug/liblucce.so"))
}

/// The first compiler that has the standard library for it: rustup's, or Debian's.
fn rustc() -> Option<PathBuf> {
    let has_library = |rustc: &PathBuf| {
        let mut ask = Command::new(rustc);
        let said = ask
            .args(["--print", "target-libdir", "--target", TARGET])
            .output();
        let said = said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
        said.is_ok_and(|folder| !folder.is_empty() && Path::new(&folder).exists())
    };
    ["rustc", "/usr/bin/rustc"]
        .map(PathBuf::from)
        .into_iter()
        .find(has_library)
}

fn java() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib/jvm").ok()?.flatten();
    let tools = folders.map(|folder| folder.path());
    let mut tools = tools.filter(|folder| folder.to_string_lossy().ends_with("-arm64"));
    tools.find_map(|folder| Some(folder.join("bin/java")).filter(|java| java.is_file()))
}
