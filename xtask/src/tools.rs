//! The programs that are needed, and how to get those that are missing.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Outcome, jdk};

struct Tool {
    /// What is run to see whether it is there.
    probe: fn() -> Command,
    name: &'static str,
    install: &'static str,
}

const TOOLS: [Tool; 3] = [
    Tool {
        probe: || Command::new("cc"),
        name: "cc, a C compiler",
        install: "apt-get install gcc libc6-dev",
    },
    Tool {
        probe: || Command::new(javac()),
        name: "javac, of a JDK 17 or later",
        install: "apt-get install openjdk-17-jdk-headless",
    },
    Tool {
        probe: || Command::new("mvn"),
        name: "mvn, Apache Maven",
        install: "apt-get install maven",
    },
];

const VALGRIND: Tool = Tool {
    probe: || Command::new("valgrind"),
    name: "valgrind, which counts instructions",
    install: "apt-get install valgrind",
};

const FOR_PAGES: [Tool; 2] = [
    Tool {
        probe: || Command::new("node"),
        name: "node and npm, for tests in a browser",
        install: "apt-get install nodejs npm",
    },
    Tool {
        probe: || Command::new("chromium"),
        name: "chromium, the browser",
        install: "apt-get install chromium",
    },
];

const FOR_FORMATS: [Tool; 2] = [
    Tool {
        probe: || Command::new("go"),
        name: "go, whose pprof reads profiles",
        install: "apt-get install golang-go",
    },
    Tool {
        probe: || Command::new("python3"),
        name: "python3 with pip, for Perfetto's description of traces",
        install: "apt-get install python3-pip",
    },
];

/// # Errors
/// A tool that reads what `lucce export` writes is missing.
pub fn needed_for_formats() -> Outcome {
    needed_for_pages()?;
    all_there(&FOR_FORMATS)
}

/// # Errors
/// A tool for tests in a browser is missing.
pub fn needed_for_pages() -> Outcome {
    all_there(&FOR_PAGES)
}

/// # Errors
/// Names every tool that is missing with the command that installs it.
pub fn needed() -> Outcome {
    all_there(&TOOLS)
}

/// # Errors
/// valgrind is missing.
pub fn needed_for_counts() -> Outcome {
    all_there(&[VALGRIND])
}

/// How Miri is installed.
pub const MIRI: &str = "rustup toolchain install nightly --component miri,rust-src";

pub fn has_miri() -> bool {
    let mut miri = Command::new("rustup");
    miri.args(["run", "nightly", "cargo", "miri", "--version"]);
    let quiet = miri.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn all_there(tools: &[Tool]) -> Outcome {
    let missing: Vec<String> = tools
        .iter()
        .filter(|tool| !starts((tool.probe)()))
        .map(|tool| format!("\n  {}: {}", tool.name, tool.install))
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!("missing on this machine:{}", missing.concat())),
    }
}

fn starts(mut probe: Command) -> bool {
    let quiet = probe
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    quiet.stderr(Stdio::null()).status().is_ok()
}

fn javac() -> PathBuf {
    jdk::compiler().map_or("javac".into(), |jdk| jdk.tool("javac"))
}

/// Runs a command that prints for itself.
///
/// # Errors
/// It cannot be started, or says that it failed.
pub fn run(command: &mut Command) -> Outcome {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: {status}")),
        Err(e) => Err(format!("cannot start {name}: {e}")),
    }
}

/// Runs a command whose output matters only if it fails.
///
/// # Errors
/// It cannot be started, or says that it failed.
pub fn run_quietly(command: &mut Command) -> Outcome {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("cannot start {name}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let status = output.status;
    Err(format!(
        "{name}: {status}\n{}",
        String::from_utf8_lossy(&said)
    ))
}

/// Runs a command for its output.
///
/// # Errors
/// It cannot be started, or says that it failed.
pub fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => Err(format!("{name}: {}", output.status)),
        Err(e) => Err(format!("cannot start {name}: {e}")),
    }
}

/// Ends a command that takes too long.
///
/// # Errors
/// It cannot be started or fails; the kind is `TimedOut` if it took too long.
pub fn within(limit: Duration, command: &mut Command) -> io::Result<std::process::ExitStatus> {
    let started = Instant::now();
    let mut child = command.stdin(Stdio::null()).spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if started.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
