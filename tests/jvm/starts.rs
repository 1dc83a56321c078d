//! `events=thread`: a program says from which lines it starts threads; with classes in scope that have
//! `Thread.start` among them and without.

use std::collections::BTreeMap;

use lucce_tests::{COMPILE_PROGRAMS, Checked, Lucce, Setup, ensure};
use serde_json::Value;

use crate::Test;
use crate::expected::expected;
use crate::modes::{self, Case, Mode};

const PROGRAM: &str = "io.lucce.programs.Starts";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 6] = [
        ("default", &[], "events=thread"),
        ("call", &[], "events=thread+call"),
        ("app", &["-Xcheck:jni"], "events=thread,instrument=app"),
        (
            "app-comp",
            &[COMPILE_PROGRAMS, "-XX:-TieredCompilation"],
            "events=thread+alloc,instrument=app",
        ),
        (
            "include",
            &["-Xint"],
            "events=thread+call,include=io.lucce.*",
        ),
        ("exclude", &[], "events=thread+call,exclude=java.lang.*"),
    ];
    modes::each(setup, "starts", &MODES, check)
}

fn check(case: &Case) -> Checked {
    let java = case.java(&format!("{},verify=1", case.options));
    let java = java.main([PROGRAM]);
    let ended = java.run()?.expect(0)?;
    let said: BTreeMap<_, _> = ended.stdout.lines().filter_map(expected).collect();
    ended.ensure(said.len() == 6, "the program says what to expect")?;
    let found = reported(java.lucce(), &java.log().to_string_lossy())?;
    for ((what, line), (number, _)) in &said {
        let row = found.get(line).ok_or(format!("line {line}: {found:?}"))?;
        match &**what {
            "thread" => ensure(row.0 == *number, || {
                format!("{line}: {row:?}, not {number}")
            })?,
            // And the line of the task in between.
            _ => ensure(
                row.1.len() == 3 && row.1.last() == Some(&(*number as i64)),
                || format!("{line}: {row:?}, below it {number}"),
            )?,
        }
    }
    if case.name == "call" {
        let log = java.log();
        let stats = java.lucce().text(0, &["stats", &*log.to_string_lossy()])?;
        let lost = stats.lines().find(|line| line.contains("events.lost"));
        ensure(lost.is_some_and(|line| line.ends_with(" 0")), || {
            format!("every entry is counted: {lost:?}")
        })?;
    }
    ensure(found.len() == 5, || format!("no other lines: {found:?}"))?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// By the line of the program's innermost frame: how many threads were started, and the lines of the program,
/// innermost first, through all threads.
fn reported(lucce: Lucce, log: &str) -> Result<BTreeMap<i64, (u64, Vec<i64>)>, String> {
    let report = lucce.json(&[
        "report",
        "--json",
        "--top",
        "0",
        "--event",
        "thread",
        "--across-threads",
        log,
    ])?;
    let mut counts: BTreeMap<i64, (u64, Vec<i64>)> = BTreeMap::new();
    for row in report["contexts"].as_array().ok_or("no contexts")? {
        let frames = row["frames"].as_array().ok_or("no frames")?;
        let own = |frame: &&Value| {
            let class = frame["class"].as_str().unwrap_or_default();
            class == PROGRAM || class.starts_with(&format!("{PROGRAM}$"))
        };
        let before = row["started_by"]["traces"].as_array();
        let before = before.ok_or("no traces")?.iter();
        let before = before.filter_map(|trace| trace["frames"].as_array());
        let lines = frames.iter().chain(before.flatten()).filter(own);
        let lines: Vec<i64> = lines.filter_map(|frame| frame["line"].as_i64()).collect();
        if let Some(first) = lines.first() {
            let sums = counts.entry(*first).or_default();
            sums.0 += row["count"].as_u64().ok_or("no count")?;
            sums.1 = lines;
        }
    }
    Ok(counts)
}
