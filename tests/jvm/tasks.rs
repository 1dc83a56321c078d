//! `events=thread`: tasks of executors go on where they were submitted. The program prints the numbers that it
//! takes in tasks, with the stack that it saw there and the one it saw where it submitted the task.

use std::path::Path;

use lucce_tests::{COMPILE_PROGRAMS, Checked, Lucce, Setup, ensure};
use serde_json::Value;

use crate::Test;
use crate::modes::{self, Case, Mode};

/// In place of a submission that is not known.
const UNKNOWN: &str = "java.lang.LucceRt$Tasks.unknownCaller:-1";
const PROGRAM: &str = "io.lucce.programs.Tasks";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 5] = [
        ("default", &[], "events=thread,verify=1"),
        (
            "int",
            &["-Xint", "-Xcheck:jni"],
            "events=alloc+thread,verify=9",
        ),
        (
            "comp",
            &[
                COMPILE_PROGRAMS,
                "-XX:-TieredCompilation",
                "-XX:+UseSerialGC",
            ],
            "events=thread,verify=1",
        ),
        ("z", &["-XX:+UseZGC"], "events=alloc+thread,verify=9"),
        ("cct", &[], "events=thread,tracking=cct,verify=1"),
    ];
    modes::each_from_11(setup, "tasks", &MODES, check)
}

fn check(case: &Case) -> Checked {
    let java = case.java(case.options).main([PROGRAM, "print"]);
    let ended = java.run()?.expect(0)?;
    let taken: Vec<Taken> = ended.stdout.lines().filter_map(Taken::of).collect();
    ended.ensure(taken.len() > 900, "the program says what to expect")?;
    java.lucce().check(&java.log())?;
    // Nodes of a thread's own tree have no callers in another thread.
    if case.name != "cct" {
        compare(java.lucce(), &java.log(), &taken)?;
    }
    java.clean();
    Ok(())
}

/// `kind|number|frame;frame;…|frame;frame;…`
struct Taken {
    kind: String,
    number: String,
    here: Vec<String>,
    origin: Vec<String>,
}

impl Taken {
    fn of(line: &str) -> Option<Taken> {
        let mut fields = line.split('|');
        let mut field = || fields.next().map(str::to_owned);
        let (kind, number) = (field()?, field()?);
        let mut frames = || field().map(|text| text.split(';').map(str::to_owned).collect());
        Some(Taken {
            kind,
            number,
            here: frames()?,
            origin: frames()?,
        })
    }

    /// Whether the trace is that of the line that submitted the task, and above it of the JDK's methods that
    /// it called.
    fn is_origin(&self, trace: &[String]) -> bool {
        let above = trace.strip_suffix(self.origin.as_slice());
        above.is_some_and(|above| above.iter().all(|frame| frame.starts_with("java.")))
    }

    fn check(&self, decoded: &Value) -> Checked {
        let traces = decoded["started_by"]["traces"].as_array();
        let traces = traces.ok_or("nothing about other threads")?;
        let traces: Vec<Vec<String>> = traces.iter().map(frames).collect();
        let right = match &*self.kind {
            "first" => traces.first().is_some_and(|trace| self.is_origin(trace)),
            "last" => traces.last().map_or_else(
                || self.here.ends_with(&self.origin),
                |trace| self.is_origin(trace),
            ),
            "unknown" => traces == [[UNKNOWN]],
            "none" => !traces.iter().any(|trace| self.is_origin(trace)),
            other => return Err(format!("unknown kind {other}")),
        };
        ensure(right && frames(decoded) == self.here, || {
            let Taken { here, origin, .. } = self;
            format!(
                "{}: taken in {here:#?}\nsubmitted in {origin:#?}\ndecoded {decoded:#}",
                self.kind
            )
        })
    }
}

fn compare(lucce: Lucce, log: &Path, taken: &[Taken]) -> Checked {
    let log = log.to_string_lossy();
    let numbers: Vec<&str> = taken.iter().map(|taken| &*taken.number).collect();
    let args = ["decode", "--across-threads", "--json", &*log, "-"];
    let output = lucce.run_with_input(&args, &numbers.join("\n"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let decoded: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    let decoded = decoded.map_err(|e| e.to_string())?;
    ensure(decoded.len() == taken.len(), || {
        format!("{} of {} decoded", decoded.len(), taken.len())
    })?;
    taken
        .iter()
        .zip(&decoded)
        .try_for_each(|(taken, decoded)| taken.check(decoded))
}

fn frames(trace: &Value) -> Vec<String> {
    let frames = trace["frames"].as_array().into_iter().flatten();
    let text = |frame: &Value| {
        let text = |key: &str| frame[key].as_str().unwrap_or_default();
        format!("{}.{}:{}", text("class"), text("method"), frame["line"])
    };
    frames.map(text).collect()
}
