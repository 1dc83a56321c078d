//! The report as tables for documents.

use std::fmt::Write;

use serde_json::Value;

pub fn all(report: &Value) -> String {
    let mut out = String::new();
    // Writing to a text does not fail.
    let _ = single(report, &mut out);
    let _ = sizes(report, &mut out);
    let _ = questions(report, &mut out);
    let _ = memory(report, &mut out);
    let _ = a_day(report, &mut out);
    out
}

fn list<'r>(report: &'r Value, key: &str) -> &'r [Value] {
    report[key].as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

fn kilobytes(value: &Value) -> String {
    format!("{:.0}", number(value) / 1e3)
}

/// Three digits, with a unit.
fn bytes(bytes: f64) -> String {
    match bytes {
        1e9.. => format!("{:.1} GB", bytes / 1e9),
        1e8.. => format!("{:.0} MB", bytes / 1e6),
        1e6.. => format!("{:.1} MB", bytes / 1e6),
        _ => format!("{:.0} KB", bytes / 1e3),
    }
}

fn seconds(ms: f64) -> String {
    match ms {
        1e4.. => format!("{:.0} s", ms / 1e3),
        1e3.. => format!("{:.1} s", ms / 1e3),
        _ => format!("{:.2} s", ms / 1e3),
    }
}

/// Time, of it CPU time of all processors, and largest RSS.
fn took(usage: &Value) -> String {
    format!(
        "{} ({} CPU), {}",
        seconds(number(&usage["wall_ms"])),
        seconds(number(&usage["cpu_ms"])),
        bytes(number(&usage["peak_rss"]))
    )
}

fn single(report: &Value, out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "| KB of a run | contexts | log | log, gzip | pprof, gzip | dataset: first run | each further run | its events | its numbers | its symbols |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|---|")?;
    for row in list(report, "single") {
        write!(
            out,
            "| {} | {}",
            row["program"].as_str().unwrap_or_default(),
            row["contexts"]
        )?;
        for key in [
            "log",
            "log_gzip",
            "pprof_gzip",
            "first_run",
            "further_run",
            "further_events",
            "further_numbers",
            "further_symbols",
        ] {
            write!(out, " | {}", kilobytes(&row[key]))?;
        }
        writeln!(out, " |")?;
    }
    writeln!(out)
}

/// Those that were made.
fn made(report: &Value) -> impl Iterator<Item = &Value> {
    list(report, "sizes")
        .iter()
        .filter(|size| size["not_run"].is_null())
}

type Cell = fn(&Value) -> String;

fn sizes(report: &Value, out: &mut String) -> std::fmt::Result {
    let rows: [(&str, Cell); 16] = [
        ("paths", |size| size["rows"]["stacks"].to_string()),
        ("rows of events", |size| size["rows"]["events"].to_string()),
        ("contexts of a run", |size| {
            format!(
                "{:.0}",
                number(&size["rows"]["contexts_of_runs"]) / number(&size["runs"])
            )
        }),
        ("logs that were added", |size| {
            bytes(number(&size["added"]["log_bytes"]))
        }),
        ("adding, runs a second", |size| {
            let added = &size["added"];
            format!(
                "{:.1}",
                number(&added["runs"]) / number(&added["wall_ms"]) * 1e3
            )
        }),
        ("adding, MB of logs a second", |size| {
            let added = &size["added"];
            format!(
                "{:.1}",
                number(&added["log_bytes"]) / number(&added["wall_ms"]) / 1e3
            )
        }),
        ("adding, CPU time of a run", |size| {
            let added = &size["added"];
            seconds(number(&added["cpu_ms"]) / number(&added["runs"]))
        }),
        ("adding, largest RSS", |size| {
            bytes(number(&size["added"]["peak_rss"]))
        }),
        ("compacting", |size| took(&size["compacted"])),
        ("dataset before compacting", |size| {
            bytes(number(&size["before"]["bytes"]))
        }),
        ("dataset", |size| bytes(number(&size["bytes"]))),
        ("dataset, for each run", |size| {
            bytes(number(&size["bytes"]) / number(&size["runs"]))
        }),
        ("its events, for each run", |size| {
            bytes(number(&size["tables"]["events"]["bytes"]) / number(&size["runs"]))
        }),
        ("its numbers and symbols, for each run", |size| {
            let of = |table: &str| number(&size["tables"][table]["bytes"]);
            bytes((of("numbers") + of("symbols")) / number(&size["runs"]))
        }),
        ("decoding one number", |size| took(&size["decoded"])),
        (
            "the server's CPU time: adding, compacting, asking",
            |size| {
                let cpu = &size["server_cpu_ms"];
                ["adding", "compacting", "asking"]
                    .map(|step| seconds(number(&cpu[step])))
                    .join(", ")
            },
        ),
    ];
    // The bytes of a dataset on a server are not known.
    let is_folder = report["store"] != "s3";
    head("runs", report, out)?;
    for (name, cell) in rows {
        let of_files = name.starts_with("dataset") || name.starts_with("its ");
        if of_files && !is_folder || name.starts_with("the server") && is_folder {
            continue;
        }
        write!(out, "| {name}")?;
        for size in made(report) {
            write!(out, " | {}", cell(size))?;
        }
        writeln!(out, " |")?;
    }
    writeln!(out)?;
    for size in list(report, "sizes") {
        if let Some(why) = size["not_run"].as_str() {
            writeln!(out, "{} runs: {why}.\n", size["runs"])?;
        }
    }
    Ok(())
}

fn head(first: &str, report: &Value, out: &mut String) -> std::fmt::Result {
    write!(out, "| {first}")?;
    let mut count = 1;
    for size in made(report) {
        write!(out, " | {}", size["runs"])?;
        count += 1;
    }
    writeln!(out, " |\n{}|", "|---".repeat(count))
}

/// Time and memory of each, and the rows of the answer; other engines' time.
fn questions(report: &Value, out: &mut String) -> std::fmt::Result {
    let sizes: Vec<&Value> = made(report).collect();
    let Some(last) = sizes.last() else {
        return Ok(());
    };
    head("question", report, out)?;
    for question in list(last, "questions") {
        let name = question["name"].as_str().unwrap_or_default();
        write!(out, "| `{name}`")?;
        for size in &sizes {
            let of = list(size, "questions").iter().find(|of| of["name"] == name);
            let cell = of.map_or_else(String::new, took);
            write!(out, " | {cell}")?;
        }
        writeln!(out, " |")?;
    }
    writeln!(out)?;
    let others = list(report, "engines");
    if others.is_empty() {
        return Ok(());
    }
    let mut engines: Vec<&str> = others
        .iter()
        .filter_map(|of| of["engine"].as_str())
        .collect();
    engines.dedup();
    writeln!(
        out,
        "| {} runs | {} |\n|---{}|",
        last["runs"],
        engines.join(" | "),
        "|---".repeat(engines.len())
    )?;
    for question in list(last, "questions") {
        let name = question["name"].as_str().unwrap_or_default();
        write!(out, "| `{name}`")?;
        for engine in &engines {
            let of = others
                .iter()
                .find(|of| of["engine"] == *engine && of["question"] == name);
            let cell = of.map_or_else(String::new, |of| {
                format!(
                    "{} ({} CPU)",
                    seconds(number(&of["wall_ms"])),
                    seconds(number(&of["cpu_ms"]))
                )
            });
            write!(out, " | {cell}")?;
        }
        writeln!(out, " |")?;
    }
    writeln!(out)
}

/// The largest resident sets, where a bound was given.
fn memory(report: &Value, out: &mut String) -> std::fmt::Result {
    let of = |usage: &Value| number(&usage["peak_rss"]);
    let questions = made(report).flat_map(|size| list(size, "questions"));
    let asking = questions.map(of).fold(0.0, f64::max);
    let compacting = made(report).map(|size| of(&size["compacted"]));
    let compacting = compacting.fold(0.0, f64::max);
    match made(report).next() {
        None => Ok(()),
        Some(_) => writeln!(
            out,
            "With `--memory {}` the process of a question had {} at most, and that of compacting {}.\n",
            report["memory"].as_str().unwrap_or_default(),
            bytes(asking),
            bytes(compacting)
        ),
    }
}

/// What ten thousand JVMs cost, as the last size says.
fn a_day(report: &Value, out: &mut String) -> std::fmt::Result {
    let Some(last) = made(report).last() else {
        return Ok(());
    };
    let runs = number(&last["runs"]);
    let added = &last["added"];
    let cpu = number(&added["cpu_ms"]) / number(&added["runs"]) * 1e4 / 1e3;
    if report["store"] == "s3" {
        return Ok(());
    }
    writeln!(
        out,
        "Ten thousand such runs a day: {} of logs, {} of dataset; adding them takes {:.1} hours of one processor.",
        bytes(number(&added["log_bytes"]) / number(&added["runs"]) * 1e4),
        bytes(number(&last["bytes"]) / runs * 1e4),
        cpu / 3600.0
    )
}

#[cfg(test)]
mod tables_tests {
    use serde_json::json;

    use super::*;

    fn report() -> Value {
        let size = |runs: u64| {
            json!({
                "runs": runs,
                "rows": { "stacks": 5, "events": 7 * runs, "contexts_of_runs": 6 * runs },
                "added": { "runs": runs, "wall_ms": 2000.0, "cpu_ms": 500.0 * runs as f64, "peak_rss": 3e8, "log_bytes": 1e6 * runs as f64 },
                "compacted": { "wall_ms": 20.0, "cpu_ms": 30.0, "peak_rss": 2.5e9 },
                "before": { "bytes": 1e6 },
                "bytes": 2e5 * runs as f64,
                "tables": { "events": { "bytes": 1e5 * runs as f64 }, "numbers": { "bytes": 0 }, "symbols": { "bytes": 5e4 * runs as f64 } },
                "questions": [{ "name": "top", "wall_ms": 12_345.0, "cpu_ms": 1500.0, "peak_rss": 1e8, "rows": 3 }],
                "decoded": { "wall_ms": 30.0, "cpu_ms": 10.0, "peak_rss": 1.5e7 },
            })
        };
        json!({
            "memory": "2g",
            "single": [{ "program": "H2Mix", "contexts": 12, "log": 5000 }],
            "sizes": [size(10), size(100), { "runs": 1000, "not_run": "not run: no room" }],
            "engines": [{ "engine": "spark", "question": "top", "wall_ms": 3210.0, "cpu_ms": 6400.0 }],
        })
    }

    #[test]
    fn tables_have_each_size_that_was_made() {
        let text = all(&report());
        for line in [
            "| H2Mix | 12 | 5 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |",
            "| runs | 10 | 100 |\n|---|---|---|",
            "| adding, runs a second | 5.0 | 50.0 |",
            "| adding, CPU time of a run | 0.50 s | 0.50 s |",
            "| compacting | 0.02 s (0.03 s CPU), 2.5 GB | 0.02 s (0.03 s CPU), 2.5 GB |",
            "| dataset, for each run | 200 KB | 200 KB |",
            "| decoding one number | 0.03 s (0.01 s CPU), 15.0 MB | 0.03 s (0.01 s CPU), 15.0 MB |",
            "1000 runs: not run: no room.",
            "| `top` | 12 s (1.5 s CPU), 100 MB | 12 s (1.5 s CPU), 100 MB |",
            "With `--memory 2g` the process of a question had 100 MB at most, and that of compacting 2.5 GB.",
            "| 100 runs | spark |\n|---|---|\n| `top` | 3.2 s (6.4 s CPU) |",
            "Ten thousand such runs a day: 10.0 GB of logs, 2.0 GB of dataset; adding them takes 1.4 hours of one processor.",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_dataset_on_a_server_has_times_without_sizes() {
        let mut report = report();
        report["store"] = "s3".into();
        for size in report["sizes"].as_array_mut().unwrap() {
            size["server_cpu_ms"] =
                json!({ "adding": 1000.0, "compacting": 200.0, "asking": 30.0 });
        }
        let text = all(&report);
        let server = "1.0 s, 0.20 s, 0.03 s";
        assert!(text.contains(&format!(
            "| the server's CPU time: adding, compacting, asking | {server} | {server} |"
        )));
        for absent in [
            "| dataset before",
            "| its events, for",
            "of dataset; adding",
        ] {
            assert!(!text.contains(absent), "{absent}\n{text}");
        }
    }

    #[test]
    fn a_report_that_has_only_begun_has_tables() {
        assert!(all(&json!({})).contains("| KB of a run"));
    }
}
