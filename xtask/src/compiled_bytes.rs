//! `coverage`, of compiled code: the VM allocates at most a percent more with hooks than without. A hook may keep the compiler
//! from inlining a method, and then from removing an object.
//!
//! Iterations of an application are alike. Those that are compared come when their code is compiled; of each variant the
//! median counts. The JVM's test `on_heap` does the same for single constructs.

use lucce_bench::{Metric, Report};

use crate::coverage::CoverageOptions;
use crate::jdk::{self, Jdk};
use crate::workloads::{APPS, App};
use crate::{Outcome, bench, paths};

/// Bytes with hooks to bytes without them.
const MOST: f64 = 1.01;
const VARIANTS: &str = "tracking,alloc";
/// The application of a quick check, and its JDK.
const QUICK: (&str, u32) = ("H2Mix", jdk::OLD);
/// Applications of which the VM allocates more with hooks, and at most how much.
const MORE: [(&str, f64); 0] = [];

/// # Errors
/// The VM allocates more with hooks, or an application fails.
pub fn check(options: &CoverageOptions) -> Outcome {
    let mut failed = Vec::new();
    for jdk in jdk::tested()? {
        let wants = |app: &&App| {
            let is_quick = (app.name, jdk.version) == QUICK;
            options.wants_app(app, &jdk) && (is_quick || !options.quick)
        };
        let names: Vec<&str> = APPS.iter().filter(wants).map(|app| app.name).collect();
        if !names.is_empty() {
            let report = measure(&jdk, &names, options.quick)?;
            failed.extend(find_excess(&jdk, &report)?);
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("more is allocated:\n{}", failed.join("\n"))),
    }
}

fn measure(jdk: &Jdk, names: &[&str], is_quick: bool) -> Result<Report, String> {
    let (rounds, iterations, warm_up) = match is_quick {
        true => ("1", "14", "9"),
        false => ("1", "30", "21"),
    };
    let out = paths::target().join(format!("compiled-bytes/{}", jdk.version));
    let options = bench::BenchOptions::parse(&[
        "--apps",
        &names.join(","),
        "--jdk",
        &jdk.version.to_string(),
        "--rounds",
        rounds,
        "--iterations",
        iterations,
        "--warm-up",
        warm_up,
        "--variants",
        VARIANTS,
        "--out",
        &out.to_string_lossy(),
    ])?;
    bench::apps(&options)
}

/// Prints each ratio; returns those that are too high.
fn find_excess(jdk: &Jdk, report: &Report) -> Result<Vec<String>, String> {
    let mut failed = Vec::new();
    for row in &report.rows {
        let most = MORE.iter().find(|(name, _)| *name == row.program);
        let most = most.map_or(MOST, |(_, most)| *most);
        for (at, column) in report.columns.iter().enumerate().skip(1) {
            let quantity = report.quantity(row, at, Metric::Allocated);
            let ratio = quantity.and_then(|quantity| quantity.ratio);
            let ratio = ratio.ok_or_else(|| lucce_bench::remarks(report))?.value;
            let text = format!(
                "{:<16} {:>3} {:<9} {ratio:.4} of the bytes without the agent, at most {most}",
                row.program, jdk.version, column.name
            );
            println!("{text}");
            if ratio > most {
                failed.push(text);
            }
        }
    }
    Ok(failed)
}
