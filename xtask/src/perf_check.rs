//! `perf-check`: whether anything has become much slower.
//!
//! Counted are instructions (callgrind), which do not depend on how busy the machine is: no piece of
//! `lab/counts/` may take a third more than its `counts.txt` says. Bytes of code that hooks add may grow by a
//! twentieth: they are what the JIT compilers read, too. What the agent costs a JVM is a
//! ratio to the same program without it, measured in the same minute, with a bound so wide that
//! only a blunder breaks it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lucce_bench::Metric;

use crate::{Outcome, bench, build, jdk, paths, requirements, side_by_side, tools};

const MOST: f64 = 1.33;
const MOST_CODE: f64 = 1.05;

/// CPU time under the agent to CPU time without it.
const BOUNDS: [(&str, f64); 1] = [("tracking", 3.0)];
/// Warm after few iterations.
const APP: &str = "JythonRun";

const CONTEXTS: &str = "tests/contextkit/data/javac.contexts.zst";
const WORK: [&str; 6] = [
    "rewrite",
    "encode",
    "encode-known",
    "decode",
    "write",
    "read",
];

/// Bytes of code for each thousand hooks, which are not run.
const CODE: [&str; 2] = ["tracking-code", "alloc-code"];

/// What one piece of work takes.
struct WorkCount {
    work: String,
    /// Instructions, or bytes of code.
    count: u64,
    /// How much was done; its first number is that of events, classes, ….
    amount: String,
}

impl WorkCount {
    fn is_code(&self) -> bool {
        CODE.contains(&self.work.as_str())
    }

    /// Its line, and whether it has grown too much.
    fn compare(&self, before: u64) -> (String, bool) {
        let WorkCount {
            work,
            count,
            amount,
        } = self;
        let ratio = *count as f64 / before as f64;
        if self.is_code() {
            let line = format!("{work:<14} {count:>12} {amount}, {ratio:.3} of {before}");
            return (line, ratio > MOST_CODE);
        }
        let done = amount.split(' ').next().and_then(|n| n.parse::<u64>().ok());
        let each = done.filter(|done| *done > 0).map(|done| count / done);
        let each = each.map_or(String::new(), |each| {
            format!("; {each} for each of {amount}")
        });
        let line = format!("{work:<14} {count:>12} instructions, {ratio:.3} of {before}{each}");
        (line, ratio > MOST)
    }
}

/// # Errors
/// Something takes more than it may, or valgrind is missing.
pub fn check() -> Outcome {
    let counts = counted()?;
    let known = known()?;
    let mut ratios = ratios(2)?;
    // A machine that was busy just then is no blunder of ours.
    if ratios.iter().any(|(_, ratio, bound)| ratio > bound) {
        ratios = self::ratios(4)?;
    }
    let mut wrong = Vec::new();
    for counted in &counts {
        let before = known.get(&counted.work).copied().unwrap_or_default();
        let (line, has_grown) = counted.compare(before);
        println!("{line}");
        if before == 0 || has_grown {
            wrong.push(line);
        }
    }
    for (variant, ratio, bound) in ratios {
        println!("{variant:<14} {ratio:>12.2} of the CPU time without the agent, at most {bound}");
        if ratio > bound {
            wrong.push(format!("{variant}: {ratio:.2} of the baseline's CPU time"));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("slower than it was:\n  {}", wrong.join("\n  "))),
    }
}

/// Writes down what is counted now.
///
/// # Errors
/// valgrind is missing, or a piece of work does not do what it should.
pub fn bless() -> Outcome {
    let file = file();
    let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let comments = text.lines().filter(|line| line.starts_with('#'));
    let mut lines: Vec<String> = comments.map(str::to_owned).collect();
    for WorkCount { work, count, .. } in counted()? {
        lines.push(format!("{work} {count}"));
    }
    let text = lines.join("\n") + "\n";
    fs::write(&file, &text).map_err(|e| format!("{}: {e}", file.display()))?;
    print!("{text}");
    Ok(())
}

fn file() -> PathBuf {
    paths::root().join("lab/counts/counts.txt")
}

fn known() -> Result<BTreeMap<String, u64>, String> {
    let text = fs::read_to_string(file()).map_err(|e| format!("{}: {e}", file().display()))?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parsed = lines.map(|line| {
        let (work, count) = line.split_once(' ')?;
        Some((work.to_owned(), count.parse().ok()?))
    });
    parsed
        .collect::<Option<_>>()
        .ok_or_else(|| format!("{}: lines are WORK COUNT", file().display()))
}

/// Instructions per piece of work, and bytes of hooks.
fn counted() -> Result<Vec<WorkCount>, String> {
    requirements::check(&[requirements::VALGRIND])?;
    tools::run(build::with_jdk(paths::cargo().args([
        "build",
        "--release",
        "--package",
        "lucce-counts",
    ])))?;
    let classes = classes()?;
    let input = |work| match work {
        "rewrite" => classes.clone(),
        _ => paths::root().join(CONTEXTS),
    };
    let counts = side_by_side::map(WORK.to_vec(), |work| callgrind(work, &input(work)));
    let mut counts = counts.into_iter().collect::<Result<Vec<_>, _>>()?;
    for work in CODE {
        counts.push(code_bytes(work, &classes)?);
    }
    Ok(counts)
}

fn code_bytes(work: &str, classes: &Path) -> Result<WorkCount, String> {
    let mut counts = Command::new(paths::target().join("release/counts"));
    let output = counts.arg(work).arg(classes).output();
    let output = output.map_err(|e| format!("{work}: {e}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let count = said.trim().split_once(' ').and_then(|(count, amount)| {
        Some(WorkCount {
            work: work.to_owned(),
            count: count.parse().ok()?,
            amount: amount.to_owned(),
        })
    });
    count.filter(|_| output.status.success()).ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("{work}: {}\n{said}", output.status)
    })
}

fn callgrind(work: &str, input: &Path) -> Result<WorkCount, String> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args([
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        "--collect-atstart=no",
        "--toggle-collect=*counts::measured*",
    ]);
    valgrind.arg(paths::target().join("release/counts"));
    let output = valgrind.arg(work).arg(input).output();
    let output = output.map_err(|e| format!("cannot start valgrind: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(format!("{work}: {}\n{said}", output.status));
    }
    let count = said
        .lines()
        .find_map(|line| line.split_once("Collected : "))
        .and_then(|(_, count)| count.trim().parse().ok());
    match count {
        Some(count) if count > 0 => Ok(WorkCount {
            work: work.to_owned(),
            count,
            amount: String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        }),
        _ => Err(format!("{work}: callgrind counted nothing\n{said}")),
    }
}

/// Class files that never change: those of a library in one version.
fn classes() -> Result<PathBuf, String> {
    let folder = paths::target().join("counts-input");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let jdk = jdk::compiler().ok_or("no JDK with its tools")?;
    let jar = paths::harness().join("apps/target/lib/commons-lang3-3.18.0.jar");
    let mut unpack = jdk.light_tool("jar");
    tools::run(unpack.current_dir(&folder).arg("xf").arg(jar))?;
    Ok(folder.join("org"))
}

/// Variant, ratio, bound.
fn ratios(rounds: usize) -> Result<Vec<(&'static str, f64, f64)>, String> {
    let variants = BOUNDS.map(|(variant, _)| variant).join(",");
    let out = paths::target().join("perf-check");
    let options = bench::BenchOptions::parse(&[
        "--apps",
        APP,
        "--rounds",
        &rounds.to_string(),
        "--iterations",
        "10",
        "--warm-up",
        "7",
        "--variants",
        &variants,
        "--out",
        &out.to_string_lossy(),
    ])?;
    let report = bench::apps(&options)?;
    let row = report.rows.first().ok_or("nothing was measured")?;
    let ratio = |(at, (variant, bound)): (usize, (&'static str, f64))| {
        let quantity = report.quantity(row, at + 1, Metric::Cpu);
        let ratio = quantity.and_then(|quantity| quantity.ratio);
        let ratio = ratio.ok_or_else(|| lucce_bench::remarks(&report))?;
        Ok((variant, ratio.value, bound))
    };
    BOUNDS.into_iter().enumerate().map(ratio).collect()
}
