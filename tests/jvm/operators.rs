//! Operators of Reactor and RxJava: traces of their code go on where the program has assembled them. The program's lambdas know
//! these lines, and it prints how many events have happened below which.

use lucce_tests::{Checked, Setup, ensure};
use serde_json::Value;

use crate::modes::{self, Case, Mode};
use crate::{Test, logical};

const PROGRAM: &str = "io.lucce.logical.Operators";
/// Each event of the program allocates one.
const MARKER: &str = r"Operators\$Signal$";
/// The frame between an operator's code and what has assembled it.
const ASSEMBLED: &str = "assembled";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 1] = [("default", &["-Xcheck:jni"], "events=alloc+thread,verify=1")];
    modes::each(setup, "operators", &MODES, check)
}

fn check(case: &Case) -> Checked {
    let (java, _, expected) = logical::run_program(case, PROGRAM, 20)?;
    logical::compare_counts(&java, &["--type", MARKER], assembling_lines, &expected)?;

    let log = java.log().display().to_string();
    let shown = java.lucce().run(&["report", "--type", MARKER, &log])?;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    ensure(shown.contains("(assembled at)\n"), || shown.clone())?;
    java.clean();
    Ok(())
}

/// The program's own lines below the innermost operator.
fn assembling_lines(row: &Value) -> String {
    let frames = row["frames"].as_array().into_iter().flatten();
    let below = frames.skip_while(|frame| frame["method"] != ASSEMBLED);
    let line = |frame: &Value| {
        let method = frame["method"].as_str()?;
        let method = match method.starts_with("lambda$") {
            true => "lambda",
            false => method,
        };
        (frame["class"] == PROGRAM).then(|| format!("{method}:{}", frame["line"]))
    };
    below.filter_map(line).collect::<Vec<_>>().join(";")
}
