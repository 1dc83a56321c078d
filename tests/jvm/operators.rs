//! Operators of Reactor and RxJava: traces of their code go on where the program has assembled them. The program's lambdas know
//! these lines, and it prints how many events have happened below which.

use std::collections::BTreeMap;

use lucce_tests::{Checked, Setup, ensure};
use serde_json::Value;

use crate::Test;
use crate::modes::{self, Case, Mode};

const PROGRAM: &str = "io.lucce.logical.Operators";
/// Each event of the program allocates one.
const MARKER: &str = r"Operators\$Signal$";
/// The frame between an operator's code and what has assembled it.
const ASSEMBLED: &str = "assembled";

/// Numbers of events by the lines that have assembled the innermost operator, innermost first.
type Counts = BTreeMap<String, u64>;

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 1] = [("default", &["-Xcheck:jni"], "events=alloc+thread,verify=1")];
    modes::each(setup, "operators", &MODES, check)
}

fn check(case: &Case) -> Checked {
    let built = case.harness().join("logical/target");
    let java = case
        .java(case.options)
        .class_path(format!("{0}/logical.jar:{0}/lib/*", built.display()))
        .main([PROGRAM]);
    let ended = java.run()?.expect(0)?;
    let expected: Counts = ended.stdout.lines().filter_map(parse_expected).collect();
    ended.ensure(expected.len() > 20, "the program says what to expect")?;
    java.lucce().check(&java.log())?;

    let log = java.log().display().to_string();
    let report = ["report", "--json", "--type", MARKER, "--top", "0", &log];
    let report = java.lucce().json(&report)?;
    let mut found = Counts::new();
    for row in report["contexts"].as_array().ok_or("no contexts")? {
        let count = row["count"].as_u64().ok_or("no count")?;
        *found.entry(assembling_lines(row)).or_default() += count;
    }
    ensure(found == expected, || modes::differences(&expected, &found))?;

    let shown = java.lucce().run(&["report", "--type", MARKER, &log])?;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    ensure(shown.contains("(assembled at)\n"), || shown.clone())?;
    java.clean();
    Ok(())
}

/// `count|line;line;…`
fn parse_expected(line: &str) -> Option<(String, u64)> {
    let (count, lines) = line.split_once('|')?;
    Some((lines.to_owned(), count.parse().ok()?))
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
