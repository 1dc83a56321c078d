//! Kotlin's coroutines: behind a suspension, traces go on at the callers that the suspended call had. The program passes the
//! lines of its calls on as an argument, and prints how many events have happened below which lines.

use std::collections::BTreeMap;

use lucce_tests::{Checked, Setup, ensure};
use serde_json::Value;

use crate::Test;
use crate::modes::{self, Case, Mode};

const PROGRAM: &str = "io.lucce.logical.CoroutinesKt";
const OWN: &str = "io.lucce.logical.";
/// Each event of the program allocates one.
const MARKER: &str = r"logical\.Marker$";
/// The outermost frame of a trace whose callers are not known.
const UNKNOWN: &str = "unknownCaller";

/// Numbers of events by lines, innermost first.
type Counts = BTreeMap<String, u64>;

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 2] = [
        ("default", &[], "events=alloc,verify=1"),
        (
            "include",
            &["-Xcheck:jni"],
            "events=alloc+thread,include=io.lucce.*,verify=7",
        ),
    ];
    modes::each(setup, "coroutines", &MODES, check)
}

fn check(case: &Case) -> Checked {
    let built = case.harness().join("logical/target");
    let java = case
        .java(case.options)
        .class_path(format!("{0}/logical.jar:{0}/lib/*", built.display()))
        .main([PROGRAM]);
    let ended = java.run()?.expect(0)?;
    let expected: Counts = ended.stdout.lines().filter_map(parse_expected).collect();
    ended.ensure(expected.len() > 40, "the program says what to expect")?;
    // The field of continuations does not change the version of their serialized form.
    ended.ensure(
        ended.stdout.contains("version 2811486131293361187\n"),
        "the serial version is that of the class without the field",
    )?;
    java.lucce().check(&java.log())?;

    let log = java.log().display().to_string();
    let selection = ["--across-threads", "--type", MARKER, "--top", "0"];
    let report = [&["report", "--json"], &selection[..], &[log.as_str()]].concat();
    let report = java.lucce().json(&report)?;
    let mut found = Counts::new();
    for row in report["contexts"].as_array().ok_or("no contexts")? {
        let count = row["count"].as_u64().ok_or("no count")?;
        *found.entry(lines_of_row(row)).or_default() += count;
    }
    ensure(found == expected, || modes::differences(&expected, &found))?;
    java.clean();
    Ok(())
}

/// `count|line;line;…`
fn parse_expected(line: &str) -> Option<(String, u64)> {
    let (count, lines) = line.split_once('|')?;
    Some((lines.to_owned(), count.parse().ok()?))
}

/// The program's own lines below `record`, and the line that has started the coroutine.
fn lines_of_row(row: &Value) -> String {
    let mut lines = own_lines(&row["frames"]);
    lines.remove(0);
    let started = &row["started_by"]["traces"][0]["frames"];
    if let Some(start) = own_lines(started).into_iter().next() {
        lines.extend(["started".to_owned(), start]);
    }
    lines.join(";")
}

/// Frames without a line are the compiler's.
fn own_lines(frames: &Value) -> Vec<String> {
    let line = |frame: &Value| {
        let (class, method) = (frame["class"].as_str()?, frame["method"].as_str()?);
        if method == UNKNOWN {
            return Some("unknown".to_owned());
        }
        let line = frame["line"].as_u64()?;
        class
            .starts_with(OWN)
            .then(|| format!("{class}.{method}:{line}"))
    };
    let frames = frames.as_array().into_iter().flatten();
    frames.filter_map(line).collect()
}
