//! Kotlin's coroutines: behind a suspension, traces go on at the callers that the suspended call had. The program passes the
//! lines of its calls on as an argument, and prints how many events have happened below which lines.

use lucce_tests::{Checked, Setup};
use serde_json::Value;

use crate::modes::{self, Case, Mode};
use crate::{Test, logical};

const PROGRAM: &str = "io.lucce.logical.CoroutinesKt";
const OWN: &str = "io.lucce.logical.";
/// Each event of the program allocates one.
const MARKER: &str = r"logical\.Marker$";
/// The outermost frame of a trace whose callers are not known.
const UNKNOWN: &str = "unknownCaller";

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
    let (java, ended, expected) = logical::run_program(case, PROGRAM, 40)?;
    // The field of continuations does not change the version of their serialized form.
    ended.ensure(
        ended.stdout.contains("version 2811486131293361187\n"),
        "the serial version is that of the class without the field",
    )?;
    let selection = ["--across-threads", "--type", MARKER];
    logical::compare_counts(&java, &selection, lines_of_row, &expected)?;
    java.clean();
    Ok(())
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
