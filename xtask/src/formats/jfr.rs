//! The JDK's own `jfr` reads recordings.

use std::path::Path;

use serde_json::Value;

use super::{Logs, equal, holds, told, totals};
use crate::{Outcome, jdk, tools};

/// As many events as the log has, where each is one with its time, and their sums are the log's.
pub fn summary(logs: &Logs) -> Outcome {
    let file = logs.export(&logs.shop, "jfr", "shop.jfr", &[])?;
    let summary = jfr(&["summary"], &file)?;
    let allocations = totals(&logs.shop, "alloc")?;
    let row = |name: &str| {
        let line = summary.lines().find(|line| line.trim().starts_with(name));
        let count = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        count.ok_or_else(|| format!("no {name} in\n{summary}"))
    };
    equal(
        "allocations",
        &row("jdk.ObjectAllocationSample")?,
        &allocations.1,
    )?;
    let locks = row("jdk.JavaMonitorEnter")? + row("jdk.JavaMonitorWait").unwrap_or(0);
    let locks = locks + row("jdk.ThreadPark").unwrap_or(0);
    equal("locks", &locks, &totals(&logs.shop, "lock")?.1)
}

/// Types, threads, whole stacks, numbers and sums, of counters and of single events.
pub fn events(logs: &Logs) -> Outcome {
    let file = logs.export(&logs.less, "jfr", "counted.jfr", &["--min-value", "0"])?;
    let print = ["print", "--json", "--stack-depth", "100", "--events"];
    let printed = jfr(&[&print[..], &["ObjectAllocationSample"]].concat(), &file)?;
    let events = events_of(&printed)?;
    let sum = |key| total(&events, key);
    let (bytes, count) = totals(&logs.less, "alloc")?;
    equal("bytes", &sum("weight"), &bytes)?;
    equal("objects", &sum("count"), &count)?;
    let tree = events.iter().find(|event| {
        let is_array = event["objectClass"]["name"] == "[Ljava/lang/Object;";
        is_array && event["stackTrace"]["frames"][0]["method"]["name"] == "tree"
    });
    let tree = tree.ok_or("no array of Shop.tree")?;
    equal("thread", &tree["eventThread"]["javaName"], &"main".into())?;
    equal(
        "not cut off",
        &tree["stackTrace"]["truncated"],
        &false.into(),
    )?;
    let frames = tree["stackTrace"]["frames"].as_array().ok_or("no frames")?;
    let outermost = &frames.last().ok_or("no frames")?["method"];
    equal("outermost", &outermost["name"], &"main".into())?;
    equal("class", &outermost["type"]["name"], &"Shop".into())?;
    let locks = logs.export(&logs.shop, "jfr", "locks.jfr", &["--event", "lock"])?;
    let text = jfr(&["print", "--events", "JavaMonitorEnter"], &locks)?;
    holds(&text, "monitorClass = java.lang.Object")?;
    holds(&text, "Shop.lambda$contend$0")?;
    match viewer() {
        Some(jdk) => say(&jdk, &file, ALLOCATIONS),
        None => Ok(()),
    }
}

/// All views of what lucce writes find what they ask for, of single events and of sums.
pub fn views(logs: &Logs) -> Outcome {
    for (name, options) in [("io.jfr", &[][..]), ("io-rows.jfr", &["--min-value", "0"])] {
        let file = logs.export(&logs.io, "jfr", name, options)?;
        let of = |e| format!("{name}: {e}");
        amounts(logs, &file, options.is_empty()).map_err(of)?;
        let Some(jdk) = viewer() else { continue };
        say(&jdk, &file, VIEWS).map_err(of)?;
        let said = view_of(&jdk, "exception-count", &file)?;
        let count = said.lines().find(|line| line.contains("Thrown"));
        let count = count.and_then(|line| line.rsplit(' ').next());
        let (_, expected) = totals(&logs.io, "exception")?;
        equal("exceptions", &count, &Some(&*expected.to_string()))?;
    }
    let Some(jdk) = viewer() else { return Ok(()) };
    // One kind alone: what others would tell is not known.
    let file = logs.export(&logs.io, "jfr", "io-time.jfr", &["--event", "io-time"])?;
    say(&jdk, &file, &[("file-reads-by-path", "N/A")])?;
    // Locks for which threads waited.
    let file = logs.export(&logs.shop, "jfr", "shop.jfr", &[])?;
    say(&jdk, &file, LOCKS)?;
    // Which of the two threads had to wait differs from run to run.
    let entered = ["report", "--event", "lock", "--by", "thread"];
    let entered = [&entered[..], &["--type", r"\(enter\)"]].concat();
    let entered = told(&logs.shop, &entered)?;
    let waited = entered["rows"].as_array().into_iter().flatten();
    let waited: Vec<_> = waited.filter_map(|row| row["name"].as_str()).collect();
    equal("nobody waited", &waited.is_empty(), &false)?;
    let waited = waited.iter().map(|name| ("contention-by-thread", *name));
    say(&jdk, &file, &waited.collect::<Vec<_>>())
}

/// Views, and what each must say.
const VIEWS: &[(&str, &str)] = &[
    ("allocation-by-class", "byte[]"),
    ("allocation-by-site", "java."),
    ("allocation-by-thread", "main"),
    ("exception-by-message", "Message"),
    ("exception-by-site", "Method"),
    ("exception-by-type", "SocketTimeoutException"),
    ("file-reads-by-path", "N/A"),
    ("file-writes-by-path", "N/A"),
    ("latencies-by-type", "File Read"),
    ("socket-reads-by-host", "N/A"),
    ("socket-writes-by-host", "N/A"),
];

const ALLOCATIONS: &[(&str, &str)] = &[
    ("allocation-by-site", "Shop.tree"),
    ("allocation-by-class", "java.lang.Object[]"),
    ("allocation-by-thread", "main"),
];

const LOCKS: &[(&str, &str)] = &[
    ("contention-by-address", "java.lang.Object"),
    ("contention-by-class", "java.lang.Object"),
    ("contention-by-site", "Shop.lambda$contend$0"),
];

/// The bytes and the numbers of what was read and written are those of the log.
fn amounts(logs: &Logs, file: &Path, is_single: bool) -> Outcome {
    let report = told(&logs.io, &["report", "--top", "0", "--event", "io"])?;
    let rows = report["contexts"].as_array().ok_or("no contexts")?;
    for (event, field, what) in [
        ("FileRead", "bytesRead", &["file read"][..]),
        ("FileWrite", "bytesWritten", &["file write"]),
        ("SocketWrite", "bytesWritten", &["socket write"]),
        (
            "SocketRead",
            "bytesRead",
            &[
                "socket read",
                "socket wait",
                "socket accept",
                "socket connect",
            ],
        ),
    ] {
        let events = events_of(&jfr(&["print", "--json", "--events", event], file)?)?;
        let sum = |key| total(&events, key);
        let is_own = |row: &&Value| {
            row["class"]
                .as_str()
                .is_some_and(|of| what.contains(&of.trim_matches(['(', ')'])))
        };
        let own = rows.iter().filter(is_own);
        let (bytes, count) = (total(own.clone(), "value"), total(own, "count"));
        equal(field, &sum(field), &bytes).map_err(|e| format!("{event}: {e}"))?;
        equal(event, &sum("count"), &count)?;
        equal("events were read", &events.is_empty(), &false)?;
        if is_single {
            equal("single", &(events.len() as u64), &count)?;
        }
        let path = match event.starts_with("File") {
            true => "path",
            false => "host",
        };
        let known = events.iter().find(|one| !one[path].is_null());
        equal(path, &known, &None)?;
    }
    Ok(())
}

/// The newest JDK that has `jfr view`.
fn viewer() -> Option<jdk::Jdk> {
    let all = jdk::all().into_iter();
    let have = all.filter(|jdk| jdk.tool("jfr").exists() && jdk.version >= 21);
    have.max_by_key(|jdk| jdk.version)
}

fn view_of(jdk: &jdk::Jdk, name: &str, file: &Path) -> Result<String, String> {
    let said = tools::output(
        jdk.light_tool("jfr")
            .args(["view", "--verbose", name])
            .arg(file),
    )?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// Each view says its part.
fn say(jdk: &jdk::Jdk, file: &Path, views: &[(&str, &str)]) -> Outcome {
    for (view, part) in views {
        let said = view_of(jdk, view, file)?;
        holds(&said, part).map_err(|e| format!("{view}: {e}"))?;
    }
    Ok(())
}

fn total<'v>(values: impl IntoIterator<Item = &'v Value>, key: &str) -> u64 {
    let values = values.into_iter();
    values.filter_map(|value| value[key].as_u64()).sum()
}

fn events_of(printed: &str) -> Result<Vec<Value>, String> {
    let printed: Value = serde_json::from_str(printed).map_err(|e| e.to_string())?;
    let events = printed["recording"]["events"].as_array().cloned();
    let events = events.ok_or("no events")?;
    Ok(events
        .into_iter()
        .map(|event| event["values"].clone())
        .collect())
}

fn jfr(args: &[&str], file: &Path) -> Result<String, String> {
    let jdk = jdk::compiler().ok_or("no JDK that compiles")?;
    let said = tools::output(jdk.light_tool("jfr").args(args).arg(file))?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}
