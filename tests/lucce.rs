//! The `lucce` command.

use std::ffi::OsStr;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};

use serde_json::Value;

use crate::json_rows::read_rows;
use crate::{Checked, Setup, cpu_time, ensure};

#[derive(Clone, Copy)]
pub struct Lucce<'a> {
    setup: &'a Setup,
}

impl<'a> Lucce<'a> {
    pub fn new(setup: &'a Setup) -> Lucce<'a> {
        Lucce { setup }
    }

    pub fn command(self) -> Command {
        Command::new(&self.setup.lucce)
    }

    /// # Errors
    /// It cannot be started.
    pub fn run(self, args: &[impl AsRef<OsStr>]) -> Result<Output, String> {
        let mut command = self.command();
        command.args(args).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn();
        let output = child.and_then(wait_with_output);
        output.map_err(|e| format!("cannot start lucce: {e}"))
    }

    /// Hands over each row of the list `key` in the JSON that it prints. Gives the rest.
    ///
    /// # Errors
    /// It fails, prints no such JSON, or a row is refused.
    pub fn json_rows(
        self,
        args: &[impl AsRef<OsStr>],
        key: &str,
        each: &mut dyn FnMut(Value) -> Checked,
    ) -> Result<Value, String> {
        let mut command = self.command();
        command.args(args).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn();
        let read = |stdout: ChildStdout| Ok(read_rows(BufReader::new(stdout), key, each));
        let ended = child.and_then(|child| read_and_wait(child, read));
        let (rest, stderr, _) = ended.map_err(|e| format!("cannot start lucce: {e}"))?;
        let errors = String::from_utf8_lossy(&stderr);
        rest.map_err(|e| format!("no JSON from lucce: {e}\n{errors}"))
    }

    /// # Errors
    /// It cannot be started.
    pub fn run_with_input(self, args: &[impl AsRef<OsStr>], input: &str) -> Result<Output, String> {
        let mut command = self.command();
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|e| format!("cannot start lucce: {e}"))?;
        let stdin = child.stdin.take();
        stdin
            .map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes()))
            .map_err(|e| e.to_string())?;
        wait_with_output(child).map_err(|e| e.to_string())
    }

    /// What it prints.
    ///
    /// # Errors
    /// It ends with another exit code.
    pub fn text(self, code: i32, args: &[impl AsRef<OsStr>]) -> Result<String, String> {
        let output = self.run(args)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        let ended = output.status.code();
        ensure(ended == Some(code), || {
            let args: Vec<_> = args
                .iter()
                .map(|arg| arg.as_ref().to_string_lossy())
                .collect();
            let shown = head_and_tail(&text);
            format!(
                "lucce {}: exit code {code} expected, was {ended:?}\n{shown}\n{errors}",
                args.join(" ")
            )
        })?;
        Ok(text + &errors)
    }

    /// # Errors
    /// It fails or prints no JSON.
    pub fn json(self, args: &[impl AsRef<OsStr>]) -> Result<Value, String> {
        let output = self.run(args)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout)
            .map_err(|e| format!("no JSON from lucce: {e}\n{errors}"))
    }

    /// What `lucce stats --json` says of a log.
    ///
    /// # Errors
    /// As of `json`.
    pub fn stats(self, log: impl AsRef<OsStr>) -> Result<Value, String> {
        self.json(&["stats".as_ref(), "--json".as_ref(), log.as_ref()])
    }

    /// The log is whole, numbers decode, events were compared and none differed.
    ///
    /// # Errors
    /// Says what `lucce check` says.
    pub fn check(self, log: &Path) -> Checked {
        let log = log.as_os_str();
        let output = self.run(&[OsStr::new("check"), OsStr::new("--json"), log])?;
        let checked: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let none = |key: &str| checked[key].as_u64() == Some(0);
        let fine = none("mismatches") && none("unknown") && checked["compared"].as_u64() > Some(0);
        if output.status.code() == Some(0) && fine && checked["ended"] == true {
            return Ok(());
        }
        // In words what is wrong, with its exit code.
        self.text(0, &[OsStr::new("check"), log])?;
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(format!("lucce check: {checked}\n{errors}"))
    }
}

/// As `Child::wait_with_output`, and counts the process's CPU time for the test.
///
/// # Errors
/// Its output cannot be read.
pub fn wait_with_output(child: Child) -> io::Result<Output> {
    let read = |mut out: ChildStdout| {
        let mut stdout = Vec::new();
        out.read_to_end(&mut stdout).map(|_| stdout)
    };
    let (stdout, stderr, status) = read_and_wait(child, read)?;
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}

/// Reads standard output by `read`, and gives standard error and the exit code with what was read.
fn read_and_wait<T>(
    mut child: Child,
    read: impl FnOnce(ChildStdout) -> io::Result<T>,
) -> io::Result<(T, Vec<u8>, ExitStatus)> {
    let mut stderr = Vec::new();
    let out = child.stdout.take();
    let out = out.ok_or_else(|| io::Error::other("its output has no pipe"))?;
    let err = child.stderr.take();
    let read = std::thread::scope(|scope| {
        let reader = scope.spawn(|| err.map_or(Ok(0), |mut err| err.read_to_end(&mut stderr)));
        let read = read(out);
        let other = reader.join();
        let other = other.unwrap_or_else(|_| Err(io::Error::other("the reader panicked")));
        other.and(read)
    })?;
    let status = cpu_time::wait(&mut child)?;
    Ok((read, stderr, status))
}

/// Shortens a long text: mismatches come first, the counts last.
pub fn head_and_tail(text: &str) -> String {
    const HEAD: usize = 60;
    const TAIL: usize = 5;
    let lines: Vec<&str> = text.lines().collect();
    match lines.len() > HEAD + TAIL {
        true => [&lines[..HEAD], &["…"], &lines[lines.len() - TAIL..]]
            .concat()
            .join("\n"),
        false => text.to_owned(),
    }
}
