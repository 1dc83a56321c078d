//! Running other programs.

use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Outcome;

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
    output_quietly(command).map(|_| ())
}

/// Runs a command for its output; its messages matter only if it fails.
///
/// # Errors
/// It cannot be started, or says that it failed.
pub fn output_quietly(command: &mut Command) -> Result<Vec<u8>, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("cannot start {name}: {e}"))?;
    if output.status.success() {
        return Ok(output.stdout);
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
