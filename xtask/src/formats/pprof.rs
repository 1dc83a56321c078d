//! `go tool pprof` reads profiles.

use std::path::Path;
use std::process::Command;

use super::{Logs, equal, holds, told, totals};
use crate::{Outcome, tools};

/// Sample types, their units and what they are in the log.
const SUMS: [(&str, &str, &str, bool); 4] = [
    ("alloc_space", "B", "alloc", true),
    ("alloc_objects", "count", "alloc", false),
    ("delay", "ns", "lock", true),
    ("contentions", "count", "lock", false),
];

/// Every sample type's sum is that of `lucce report`, and so is the heaviest frame.
pub fn sums(logs: &Logs) -> Outcome {
    let file = logs.export(&logs.shop, "pprof", "shop.pb.gz", &[])?;
    for (sample, unit, kind, is_value) in SUMS {
        let (value, count) = totals(&logs.shop, kind)?;
        let sum = if is_value { value } else { count };
        let top = pprof(&["-top"], (sample, unit), &[&file])?;
        equal(sample, &total(&top)?, &sum)?;
    }
    let alloc = pprof(&["-top", "-nodecount=3"], ("alloc_space", "B"), &[&file])?;
    holds(&alloc, "Shop.tree")?;
    holds(&alloc, "command: Shop *")?;
    let file = logs.export(&logs.shop, "pprof", "arguments.pb.gz", &["--arguments"])?;
    let alloc = pprof(&["-top", "-nodecount=3"], ("alloc_space", "B"), &[&file])?;
    holds(&alloc, "command: Shop 4")?;
    let lines = pprof(&["-top", "-lines"], ("alloc_space", "B"), &[&file])?;
    holds(&lines, "Shop.tree Shop.java:")
}

/// Of two runs, what one has more is what it has more by its own sums.
pub fn differences(logs: &Logs) -> Outcome {
    let new = logs.export(&logs.shop, "pprof", "new.pb.gz", &["--event", "alloc"])?;
    let old = logs.export(&logs.less, "pprof", "old.pb.gz", &["--event", "alloc"])?;
    let base = format!("-diff_base={}", old.display());
    let top = pprof(&["-top", &base], ("alloc_space", "B"), &[&new])?;
    let more = totals(&logs.shop, "alloc")?.0 - totals(&logs.less, "alloc")?.0;
    equal("difference", &shown(&top)?, &more)?;
    equal(
        "of the old run",
        &total(&top)?,
        &totals(&logs.less, "alloc")?.0,
    )
}

/// What is alive of a leak is what `lucce leaks` says.
pub fn living_objects(logs: &Logs) -> Outcome {
    let file = logs.export(&logs.leaks, "pprof", "leaks.pb.gz", &[])?;
    let leaks = found_leaks(&logs.leaks)?;
    let leak = &leaks["leaks"][0];
    let live = leak["live"].as_array().and_then(|live| live.last());
    let live = live.ok_or("no leak")?;
    let of = format!(
        "-tagfocus=type={}$",
        regex(leak["class"].as_str().unwrap_or_default())
    );
    for (sample, unit, key) in [
        ("inuse_space", "B", "bytes"),
        ("inuse_objects", "count", "objects"),
    ] {
        let top = pprof(
            &["-top", &of, "-focus=Leaks.listen"],
            (sample, unit),
            &[&file],
        )?;
        let expected = live[key].as_u64().unwrap_or_default();
        equal(sample, &shown(&top)?, &expected)?;
        holds(&top, "io.lucce.programs.Leaks.listen")?;
    }
    Ok(())
}

/// Types, threads, kinds and numbers; numbers decode to the trace that they stand beside.
pub fn labels(logs: &Logs) -> Outcome {
    let file = logs.export(&logs.shop, "pprof", "labels.pb.gz", &["--content-ids"])?;
    let tags = pprof(&["-tags"], ("alloc_space", "B"), &[&file])?;
    for part in [
        "kind: Total",
        "type: Total",
        "thread: Total",
        "context: Total",
        "content: Total",
        "Shop$Order",
        "long[]",
    ] {
        holds(&tags, part)?;
    }
    let raw = pprof(&["-raw"], ("alloc_space", "B"), &[&file])?;
    let report = told(&logs.shop, &["report", "--top", "20"])?;
    for row in report["contexts"].as_array().ok_or("no contexts")? {
        let id = row["id"].as_str().unwrap_or_default();
        holds(&raw, &format!("context:[{id}]"))?;
    }
    Ok(())
}

/// `lucce leaks` ends with 1 where there are leaks.
fn found_leaks(log: &Path) -> Result<serde_json::Value, String> {
    let mut lucce = Command::new(crate::paths::lucce());
    let output = lucce.args(["leaks", "--json"]).arg(log).output();
    let output = output.map_err(|e| e.to_string())?;
    serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())
}

fn pprof(args: &[&str], (sample, unit): (&str, &str), files: &[&Path]) -> Result<String, String> {
    let mut go = Command::new("go");
    go.args([
        "tool",
        "pprof",
        "-symbolize=none",
        "-nodefraction=0",
        "-edgefraction=0",
    ]);
    go.arg(format!("-sample_index={sample}"));
    go.arg(format!("-unit={unit}")).args(args).args(files);
    // Nothing of what a person has asked pprof before.
    go.env(
        "XDG_CONFIG_HOME",
        std::env::temp_dir().join("lucce-no-settings"),
    );
    Ok(String::from_utf8_lossy(&tools::output(&mut go)?).into_owned())
}

/// `Showing nodes accounting for 7B, 70% of 10B total`: 10.
fn total(top: &str) -> Result<u64, String> {
    number(top, "% of ")
}

/// Of the line above, the 7.
fn shown(top: &str) -> Result<u64, String> {
    number(top, "accounting for ")
}

fn number(top: &str, before: &str) -> Result<u64, String> {
    let behind = top.split_once(before).map(|(_, behind)| behind);
    let digits = behind.map(|text| {
        text.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
    });
    let number = digits.and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| format!("no number behind {before:?} in\n{top}"))
}

fn regex(text: &str) -> String {
    text.replace('.', "\\.")
        .replace('$', "\\$")
        .replace('[', "\\[")
        .replace(']', "\\]")
}
