//! The JDK's own `jfr` reads recordings.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Logs, equal, holds, totals};
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
    let file = logs.export(&logs.less, "jfr", "counted.jfr", &["--min-bytes", "0"])?;
    let print = ["print", "--json", "--stack-depth", "100", "--events"];
    let printed = jfr(&[&print[..], &["ObjectAllocationSample"]].concat(), &file)?;
    let events = events_of(&printed)?;
    let sum = |key: &str| -> u64 { events.iter().filter_map(|event| event[key].as_u64()).sum() };
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
    views(&file)
}

/// `jfr view`, where a JDK has it.
fn views(file: &Path) -> Outcome {
    let newest = jdk::all()
        .into_iter()
        .filter(|jdk| jdk.tool("jfr").exists() && jdk.version >= 21);
    let Some(jdk) = newest.max_by_key(|jdk| jdk.version) else {
        return Ok(());
    };
    let view = |name: &str| {
        let said = tools::output(
            Command::new(jdk.tool("jfr"))
                .args(["view", "--verbose", name])
                .arg(file),
        )?;
        Ok::<_, String>(String::from_utf8_lossy(&said).into_owned())
    };
    holds(&view("allocation-by-site")?, "Shop.tree")?;
    holds(&view("allocation-by-class")?, "java.lang.Object[]")?;
    holds(&view("allocation-by-thread")?, "main")
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
    let said = tools::output(Command::new(jdk.tool("jfr")).args(args).arg(file))?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}
