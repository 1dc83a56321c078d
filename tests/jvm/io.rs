//! `events=io`: what a program says that it read and wrote, and at which line, is what the report says:
//! operations and bytes; each was timed, and every number decodes to the VM's own trace.

use std::collections::BTreeMap;
use std::path::Path;

use lucce_tests::{COMPILE_PROGRAMS, Checked, Java, Jdk, Lucce, Setup, ensure};
use serde_json::Value;

use crate::expected::expected;
use crate::{Test, test};

const PROGRAM: &str = "io.lucce.programs.Io";

/// Name, how Java is run, options of the agent, the program's arguments, from which JDK on.
type Mode = (
    &'static str,
    &'static [&'static str],
    &'static str,
    &'static [&'static str],
    u32,
);

const MODES: [Mode; 8] = [
    ("default", &["-Xcheck:jni"], "events=io,verify=1", &[], 11),
    (
        "int",
        &["-Xint", "-Xcheck:jni"],
        "events=io+alloc,verify=1",
        &[],
        11,
    ),
    (
        "comp",
        &[
            COMPILE_PROGRAMS,
            "-XX:-TieredCompilation",
            "-XX:+UseSerialGC",
        ],
        "events=io,verify=1",
        &[],
        11,
    ),
    (
        "z",
        &["-XX:+UseZGC"],
        "events=io+lock+call,verify=1",
        &[],
        11,
    ),
    ("cct", &[], "events=io,tracking=cct,verify=1", &[], 11),
    (
        "app",
        &["-Xcheck:jni"],
        "events=io,instrument=app,verify=1",
        &[],
        11,
    ),
    ("stream", &[], "events=io,stream=on,verify=1", &[], 11),
    ("virtual", &[], "events=io,verify=1", &["--virtual"], 25),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in setup.jdks_from_11() {
        for mode in MODES.iter().filter(|mode| jdk.version >= mode.4) {
            let quick = jdk == setup.jdk() && mode.0 == "default";
            let name = format!("io::{}::{}", jdk.version, mode.0);
            tests.push(test(name, quick, move || check(setup, jdk, mode)));
        }
    }
    tests
}

/// Count and sum by what was done and line.
type Counts = BTreeMap<(String, i64), (u64, u64)>;

fn check(setup: &Setup, jdk: &Jdk, &(name, flags, options, arguments, _): &Mode) -> Checked {
    let java = Java::new(setup, jdk, &format!("io-{}-{name}", jdk.version));
    let java = java.agent(options).flags(flags);
    let java = java.main([PROGRAM].iter().chain(arguments));
    let ended = java.run()?.expect(0)?;
    let wanted: Counts = ended.stdout.lines().filter_map(expected).collect();
    ended.ensure(wanted.len() >= 35, "the program says what to expect")?;
    let (bytes, rows) = reported(java.lucce(), &java.log(), "io")?;
    let (times, _) = reported(java.lucce(), &java.log(), "io-time")?;
    for (place, wanted) in &wanted {
        let found = bytes.get(place);
        ensure(found == Some(wanted), || {
            format!("{place:?}: {wanted:?} expected, but {found:?}\n{bytes:#?}")
        })?;
        let timed = times.get(place).copied().unwrap_or_default();
        ensure(timed.0 == wanted.0 && timed.1 > 0, || {
            format!("{place:?}: timed {timed:?}, not {}", wanted.0)
        })?;
    }
    // Sockets are the program's alone; how often it waits for one is not known.
    let is_known = |what: &str| what.starts_with("(socket") && what != "(socket wait)";
    let more = bytes.keys().filter(|place| is_known(&place.0));
    let more: Vec<_> = more
        .filter(|place| !wanted.contains_key(place) && !is_unix(place))
        .collect();
    ensure(more.is_empty(), || format!("not expected: {more:?}"))?;
    // Virtual threads park.
    let waits = name == "virtual" || bytes.keys().any(|place| place.0 == "(socket wait)");
    ensure(waits, || format!("no wait: {bytes:?}"))?;
    let sums = bytes.keys().all(|place| times.contains_key(place)) && bytes.len() == times.len();
    ensure(sums, || format!("{bytes:?}\n{times:?}"))?;
    shows_both(&rows)?;
    java.lucce().check(&java.log())?;
    if name == "stream" {
        streamed(java.lucce(), &java.log(), &bytes)?;
    }
    java.clean();
    Ok(())
}

/// Accepting and connecting, of a kind that the program does not note.
fn is_unix((what, _): &(String, i64)) -> bool {
    what == "(socket accept)" || what == "(socket connect)"
}

/// By the line of the program's innermost frame.
fn reported(lucce: Lucce, log: &Path, kind: &str) -> Result<(Counts, Vec<Value>), String> {
    let log = log.to_string_lossy();
    let report = lucce.json(&["report", "--json", "--top", "0", "--event", kind, &*log])?;
    let rows = report["contexts"].as_array().ok_or("no contexts")?;
    let mut counts = Counts::new();
    for row in rows {
        let frames = row["frames"].as_array().ok_or("no frames")?;
        let line = frames.iter().find(|frame| frame["class"] == PROGRAM);
        let line = line.and_then(|frame| frame["line"].as_i64());
        if let (Some(line), Some(what)) = (line, row["class"].as_str()) {
            let sums = counts.entry((what.to_owned(), line)).or_default();
            sums.0 += row["count"].as_u64().ok_or("no count")?;
            sums.1 += row["value"].as_u64().ok_or("no value")?;
        }
    }
    Ok((counts, rows.clone()))
}

/// The report of bytes says the time as well.
fn shows_both(rows: &[Value]) -> Checked {
    let without = rows
        .iter()
        .find(|row| row["nanos"].as_u64().is_none_or(|nanos| nanos == 0));
    ensure(without.is_none(), || format!("no time: {without:?}"))
}

/// The stream has the same operations, and a time line has a bar for each.
fn streamed(lucce: Lucce, log: &Path, counts: &Counts) -> Checked {
    let log = log.to_string_lossy();
    let lines = lucce.text(0, &["stream", "--json", "--event", "io", &*log])?;
    let lines = lines.lines().filter(|line| line.starts_with('{'));
    let lines: Vec<Value> = lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let sum: u64 = lines.iter().filter_map(|line| line["value"].as_u64()).sum();
    let own = counts
        .values()
        .fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    ensure(lines.len() as u64 >= own.0 && sum >= own.1, || {
        format!("{} events, {sum} bytes; counted {own:?}", lines.len())
    })?;
    let chrome = lucce.json(&["export", "--format", "chrome", "--event", "io-time", &*log])?;
    let events = chrome["traceEvents"].as_array().ok_or("no time line")?;
    let bars = events
        .iter()
        .filter(|event| event["ph"] == "X" && event["dur"].as_f64() > Some(0.0));
    ensure(bars.count() == lines.len(), || {
        format!("{} operations", lines.len())
    })
}
