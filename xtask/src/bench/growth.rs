//! How the log grows: after each iteration of a workload that stays the same, its size is asked for.
//!
//! In steady state nothing may be added: a context that is known is not written again.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use lucce_bench::{Iterations, Variant};
use serde_json::{Value, json};

use super::apps;
use super::apps::{few, named};
use super::options::BenchOptions;
use crate::jdk::Jdk;
use crate::{Outcome, paths};

const APPS: [&str; 3] = ["H2Mix", "XalanTransform", "EclipseCompile"];

/// What became of one run.
struct Run {
    /// Per iteration, of which there are at least eight.
    sizes: Vec<Size>,
    /// Bytes that the graph took in memory at the end.
    memory: u64,
}

/// After an iteration.
struct Size {
    /// Milliseconds that the iteration took.
    wall: f64,
    /// Bytes of classes, methods, sites and the graph.
    graph: u64,
    /// Bytes of counters.
    counters: u64,
}

/// Prints the table and writes `growth.json`.
///
/// # Errors
/// A program fails, or its log cannot be read.
pub fn run(options: &BenchOptions, jdk: &Jdk) -> Outcome {
    let mut all = Vec::new();
    println!("\nlog size (KB of graph + KB of counters)");
    println!(
        "| program | variant | after 1 | after half | after all | last quarter adds | per minute |"
    );
    println!("|---|---|---|---|---|---|---|");
    let folder = options.out.join("scratch");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for app in few(options, &APPS) {
        for variant in ["tracking", "alloc"].map(Variant::parse) {
            let variant = variant?;
            let run = watched(options, jdk, app, &variant, &folder.join("growth.lucce"))?;
            let memory = run.memory as f64 / 1e6;
            println!(
                "| {app} | {} | {} | {memory:.1} MB |",
                variant.name,
                row(&run.sizes)?
            );
            all.push(json!({
                "program": app,
                "variant": variant.name,
                "iterations": run.sizes.iter().map(Size::json).collect::<Vec<Value>>(),
                "graph_memory_bytes": run.memory,
            }));
        }
    }
    let _ = fs::remove_dir_all(&folder);
    let file = options.out.join("growth.json");
    let text = serde_json::to_string_pretty(&all).map_err(|e| e.to_string())?;
    fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))
}

fn row(sizes: &[Size]) -> Result<String, String> {
    let last = sizes.len() - 1;
    let from = last - last / 4;
    let [first, half, before, end] = [0, last / 2, from, last].map(|at| &sizes[at]);
    let kilobytes = |size: &Size| {
        let (graph, counters) = (size.graph as f64 / 1e3, size.counters as f64 / 1e3);
        format!("{graph:.1} + {counters:.1}")
    };
    let added = |of: fn(&Size) -> u64| of(end).checked_sub(of(before));
    let shrunk = || "the log has shrunk".to_owned();
    let graph = added(|size| size.graph).ok_or_else(shrunk)?;
    let counters = added(|size| size.counters).ok_or_else(shrunk)?;
    let minutes = sizes[from + 1..].iter().map(|size| size.wall).sum::<f64>() / 60e3;
    let per_minute = |bytes: u64| bytes as f64 / minutes;
    Ok(format!(
        "{} | {} | {} | {graph} B + {counters} B | {:.0} B + {:.0} B",
        kilobytes(first),
        kilobytes(half),
        kilobytes(end),
        per_minute(graph),
        per_minute(counters)
    ))
}

fn watched(
    options: &BenchOptions,
    jdk: &Jdk,
    app: &str,
    variant: &Variant,
    log: &Path,
) -> Result<Run, String> {
    // Of a run that was interrupted: the agent would not replace it.
    let _ = fs::remove_file(log);
    let program = apps::program(options, named(app), jdk, options.threads);
    let flags = variant.flags(&options.plan(Vec::new()).tools, log)?;
    let mut java = program.command.with(&flags);
    // The last of the options counts.
    let iterations = if options.quick { "12" } else { "40" };
    java.args(["--iterations", iterations]);
    let failed = |e: std::io::Error| format!("{app}, {}: {e}", variant.name);
    java.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = java.stderr(Stdio::null()).spawn().map_err(failed)?;
    let out = child.stdout.take().ok_or("no output")?;
    let mut sizes = Vec::new();
    for line in BufReader::new(out).lines() {
        let line = line.map_err(failed)?;
        if let Some(iteration) = Iterations::parse(&line).list.first() {
            sizes.push(Size::of(&stats(log)?, iteration.wall)?);
        }
    }
    let status = child.wait().map_err(failed)?;
    if !status.success() || sizes.len() < 8 {
        return Err(format!("{app}, {}: {status}", variant.name));
    }
    let memory = stats(log)?["agent"]["graph.memory"].as_u64();
    let _ = fs::remove_file(log);
    Ok(Run {
        sizes,
        memory: memory.ok_or("the log does not say what the graph takes in memory")?,
    })
}

/// Of a log, complete or not: the program runs on meanwhile, and what it adds is seen the next time.
fn stats(log: &Path) -> Result<Value, String> {
    let mut lucce = Command::new(paths::lucce());
    let output = lucce.args(["stats", "--json"]).arg(log).output();
    let output = output.map_err(|e| format!("cannot start lucce: {e}"))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("{e}: {}", String::from_utf8_lossy(&output.stderr)))
}

impl Size {
    fn of(stats: &Value, wall: f64) -> Result<Size, String> {
        let kinds = stats["log"]
            .as_array()
            .ok_or("no sizes in the log's stats")?;
        let bytes = |wanted: fn(&str) -> bool| {
            let kinds = kinds.iter();
            let kinds = kinds.filter(|kind| kind["kind"].as_str().is_some_and(wanted));
            kinds.filter_map(|kind| kind["bytes"].as_u64()).sum()
        };
        Ok(Size {
            wall,
            graph: bytes(|kind| !["counters", "file"].contains(&kind)),
            counters: bytes(|kind| kind == "counters"),
        })
    }

    fn json(&self) -> Value {
        json!({ "wall_ms": self.wall, "graph_bytes": self.graph, "counter_bytes": self.counters })
    }
}

#[cfg(test)]
mod growth_tests {
    use super::*;

    fn sizes(graph: &[u64]) -> Vec<Size> {
        let size = |graph: &u64| Size {
            wall: 1000.0,
            graph: *graph,
            counters: 500,
        };
        graph.iter().map(size).collect()
    }

    #[test]
    fn growth_is_that_of_the_last_quarter() {
        let row = row(&sizes(&[
            1000, 2000, 2000, 3000, 3000, 3000, 3000, 3050, 3100,
        ]))
        .unwrap();
        // From the seventh to the ninth iteration, in two seconds.
        assert_eq!(
            row,
            "1.0 + 0.5 | 3.0 + 0.5 | 3.1 + 0.5 | 100 B + 0 B | 3000 B + 0 B"
        );
    }

    #[test]
    fn graph_and_counters_are_told_apart() {
        let stats = json!({ "log": [
            { "kind": "counters", "bytes": 100 },
            { "kind": "node", "bytes": 20 },
            { "kind": "site", "bytes": 3 },
            { "kind": "file", "bytes": 4096 },
        ] });
        let size = Size::of(&stats, 1.0).unwrap();
        assert_eq!((size.graph, size.counters), (23, 100));
        assert!(Size::of(&json!({}), 1.0).is_err());
    }

    #[test]
    fn a_log_never_shrinks() {
        assert!(row(&sizes(&[9, 9, 9, 9, 9, 9, 9, 9, 8])).is_err());
    }
}
