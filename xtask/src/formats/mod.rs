//! `format-tests`: what `lucce export` writes, read by the tools that it is for.

pub mod consumers;

mod converter;
mod firefox;
mod jfr;
mod mission_control;
mod otlp;
mod perfetto;
mod pprof;
mod push;
mod speedscope;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::requirements::{self, GO, PAGES, PIP};
use crate::{Outcome, jdk, pages, paths, tools};

/// Logs of real runs.
struct Logs {
    folder: PathBuf,
    /// A program that allocates and contends for a lock, with its stream; and a run of it that did less.
    shop: PathBuf,
    less: PathBuf,
    /// A program that leaks, with followed objects.
    leaks: PathBuf,
    /// A program that reads and writes files and sockets, and throws, with its stream.
    io: PathBuf,
    /// A run without events.
    idle: PathBuf,
}

type Test = fn(&Logs) -> Outcome;

const TESTS: &[(&str, Test)] = &[
    ("converter::collapsed", converter::collapsed),
    ("firefox::sums", firefox::sums),
    ("firefox::views", firefox::views),
    ("firefox::nothing", firefox::nothing),
    ("jfr::summary", jfr::summary),
    ("jfr::events", jfr::events),
    ("jfr::views", jfr::views),
    ("mission_control::contexts", mission_control::contexts),
    ("otlp::sums", otlp::sums),
    ("otlp::attributes", otlp::attributes),
    ("perfetto::events", perfetto::events),
    ("perfetto::sums", perfetto::sums),
    ("pprof::sums", pprof::sums),
    ("pprof::differences", pprof::differences),
    ("pprof::living_objects", pprof::living_objects),
    ("pprof::labels", pprof::labels),
    ("push::restart", push::restart),
    ("push::times", push::times),
    ("speedscope::page", speedscope::page),
];

/// Those whose names begin so.
///
/// # Errors
/// A tool is missing, or a test failed.
pub fn tests(name: &str) -> Outcome {
    requirements::check(&[PAGES, GO, PIP])?;
    let logs = Logs::record()?;
    let wanted = TESTS.iter().filter(|(test, _)| test.starts_with(name));
    let (mut passed, mut failed) = (0, 0);
    for (name, test) in wanted {
        match test(&logs) {
            Ok(()) => passed += 1,
            Err(message) => {
                failed += 1;
                println!("{name}: {message}");
            }
        }
    }
    println!("format-tests: {passed} passed, {failed} failed");
    match (passed, failed) {
        (0, 0) => Err(format!("no test begins with {name:?}")),
        (_, 0) => Ok(()),
        (_, failed) => Err(format!("{failed} of {} failed", passed + failed)),
    }
}

impl Logs {
    fn record() -> Result<Self, String> {
        let folder = paths::target().join("format-tests");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        pages::compile(&folder)?;
        Ok(Logs {
            shop: pages::record(&folder, "shop", 4)?,
            less: pages::record(&folder, "less", 1)?,
            leaks: leaks(&folder)?,
            io: io(&folder)?,
            idle: idle(&folder)?,
            folder,
        })
    }

    /// A file of another tool's.
    fn export(
        &self,
        log: &Path,
        format: &str,
        name: &str,
        options: &[&str],
    ) -> Result<PathBuf, String> {
        let file = self.folder.join(name);
        let mut lucce = Command::new(paths::lucce());
        lucce.args(["export", "--format", format]).args(options);
        tools::run_quietly(lucce.arg(log).arg("-o").arg(&file))?;
        Ok(file)
    }
}

fn leaks(folder: &Path) -> Result<PathBuf, String> {
    let program = ["-Xmx40m", "io.lucce.programs.Leaks", "listeners"];
    program_of(folder, ("leaks", "events=leak=16k"), &program)
}

fn io(folder: &Path) -> Result<PathBuf, String> {
    let events = "events=alloc+lock+exception+io,stream=on";
    program_of(folder, ("io", events), &["io.lucce.programs.Io"])
}

/// Of locks alone, and no thread waits for one: the program is not there.
fn idle(folder: &Path) -> Result<PathBuf, String> {
    program_of(folder, ("idle", "events=lock"), &["--version"])
}

/// The log of one of the tests' programs, under the agent with these options.
fn program_of(
    folder: &Path,
    (name, options): (&str, &str),
    args: &[&str],
) -> Result<PathBuf, String> {
    let log = folder.join(name).with_extension("lucce");
    let agent = paths::agent();
    let programs = paths::harness().join("programs/target/programs.jar");
    let options = format!("out={},{options}", log.display());
    let mut java = jdk::compiler().ok_or("no JDK that compiles")?.light_java();
    java.arg(format!("-agentpath:{}={options}", agent.display()))
        .arg("-cp")
        .arg(programs)
        .args(args);
    tools::run_quietly(&mut java)?;
    Ok(log)
}

/// What lucce itself says of a log.
fn told(log: &Path, args: &[&str]) -> Result<Value, String> {
    let said = tools::output(
        Command::new(paths::lucce())
            .args(args)
            .arg("--json")
            .arg(log),
    )?;
    serde_json::from_slice(&said).map_err(|e| format!("lucce {}: {e}", args.join(" ")))
}

/// The sum and the number of a kind's events.
fn totals(log: &Path, kind: &str) -> Result<(u64, u64), String> {
    let report = told(log, &["report", "--top", "1", "--event", kind])?;
    let total = |key: &str| report["totals"][key].as_u64();
    let found = total("value").zip(total("count"));
    found.ok_or_else(|| format!("no totals of {kind}"))
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Outcome {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found:?}, and {expected:?} expected")),
    }
}

fn holds(text: &str, part: &str) -> Outcome {
    match text.contains(part) {
        true => Ok(()),
        false => Err(format!("no {part:?} in\n{text}")),
    }
}

/// `a.b.C.m(:0)` of `a.b.C.m(C.java:0)`; none: it has a line.
fn without_file(frame: &str) -> Option<String> {
    let (method, place) = frame.split_once('(')?;
    place.ends_with(":0)").then(|| format!("{method}(:0)"))
}

/// Some of the contexts, as a tool shows them: their numbers decode to these stacks.
fn decodes(log: &Path, stacks: &Value) -> Outcome {
    let stacks = stacks.as_object().ok_or("no stacks")?;
    let some = stacks.len().div_ceil(20);
    for (number, stack) in stacks.iter().step_by(some) {
        let decoded = tools::output(
            Command::new(paths::lucce())
                .arg("decode")
                .arg(log)
                .arg(number),
        )?;
        let decoded = String::from_utf8_lossy(&decoded).into_owned();
        let frames = decoded
            .lines()
            .filter_map(|line| line.strip_prefix("\tat "));
        // Modules, and what has no line, are told in other ways.
        let named = |frame: &str| {
            let frame = frame.rsplit_once('/').map_or(frame, |(_, frame)| frame);
            frame.replace("(Native Method)", "(:0)")
        };
        let frames: Vec<Value> = frames.map(|frame| named(frame).into()).collect();
        // A native method has a file in the tool, and none in Java's text.
        let shown = stack.as_array().ok_or("no frames")?.iter();
        let shown = shown.map(|frame| match frame.as_str().and_then(without_file) {
            Some(native) => native.into(),
            None => frame.clone(),
        });
        equal(number, &shown.collect::<Value>(), &frames.into())?;
    }
    Ok(())
}
