//! Programs of `java-harness/logical`: each says how many events have happened below which lines, and the log must say the same.

use std::collections::BTreeMap;

use lucce_tests::{Checked, Ended, Java, ensure};
use serde_json::Value;

use crate::modes::{self, Case};

/// Numbers of events by lines, innermost first.
pub type LineCounts = BTreeMap<String, u64>;

/// Runs a program. Returns what it says of its events, of which there must be more than `least` different ones.
pub fn run_program<'c>(
    case: &'c Case,
    program: &str,
    least: usize,
) -> Result<(Java<'c>, Ended, LineCounts), String> {
    let built = case.harness().join("logical/target");
    let java = case
        .java(case.options)
        .class_path(format!("{0}/logical.jar:{0}/lib/*", built.display()))
        .main([program]);
    let ended = java.run()?.expect(0)?;
    let expected: LineCounts = ended.stdout.lines().filter_map(parse_expected).collect();
    ended.ensure(expected.len() > least, "the program says what to expect")?;
    java.lucce().check(&java.log())?;
    Ok((java, ended, expected))
}

/// Compares the report's contexts with what the program has said. `selection`: options of the report.
pub fn compare_counts(
    java: &Java,
    selection: &[&str],
    lines_of_row: fn(&Value) -> String,
    expected: &LineCounts,
) -> Checked {
    let log = java.log().display().to_string();
    let report = [&["report", "--json", "--top", "0", &log], selection].concat();
    let report = java.lucce().json(&report)?;
    let mut found = LineCounts::new();
    for row in report["contexts"].as_array().ok_or("no contexts")? {
        let count = row["count"].as_u64().ok_or("no count")?;
        *found.entry(lines_of_row(row)).or_default() += count;
    }
    ensure(found == *expected, || modes::differences(expected, &found))
}

/// `count|line;line;…`
fn parse_expected(line: &str) -> Option<(String, u64)> {
    let (count, lines) = line.split_once('|')?;
    Some((lines.to_owned(), count.parse().ok()?))
}
