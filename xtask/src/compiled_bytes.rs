//! `coverage`, of compiled code: the VM allocates at most a percent more with hooks than without. A hook may keep the compiler
//! from inlining a method, and then from removing an object.
//!
//! Iterations of an application are alike. Those that are compared come when their code is compiled; of each variant the
//! median counts. The JVM's test `on_heap` does the same for single constructs.

use lucce_bench::{Metric, Report};

use crate::jdk::{self, Jdk};
use crate::workloads::{APPS, App};
use crate::{Outcome, bench, paths};

/// Bytes with hooks to bytes without them.
const MOST: f64 = 1.01;
const VARIANTS: &str = "tracking,alloc";

/// Compares the applications that `wants` selects.
///
/// # Errors
/// The VM allocates more with hooks, or an application fails.
pub fn check(wants: impl Fn(&App, &Jdk) -> bool) -> Outcome {
    let mut failed = Vec::new();
    for jdk in jdk::tested()? {
        let wanted = APPS.iter().filter(|app| wants(app, &jdk));
        let names: Vec<&str> = wanted.map(|app| app.name).collect();
        if !names.is_empty() {
            let report = measure(&jdk, &names)?;
            failed.extend(find_excess(&jdk, &report)?);
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("more is allocated:\n{}", failed.join("\n"))),
    }
}

fn measure(jdk: &Jdk, names: &[&str]) -> Result<Report, String> {
    let out = paths::target().join(format!("compiled-bytes/{}", jdk.version));
    let options = bench::BenchOptions::parse(&[
        "--apps",
        &names.join(","),
        "--jdk",
        &jdk.version.to_string(),
        "--rounds",
        "1",
        "--iterations",
        "30",
        "--warm-up",
        "15",
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
        for (at, column) in report.columns.iter().enumerate().skip(1) {
            let quantity = report.quantity(row, at, Metric::Allocated);
            let ratio = quantity.and_then(|quantity| quantity.ratio);
            let ratio = ratio.ok_or_else(|| lucce_bench::remarks(report))?.value;
            let text = format!(
                "{:<16} {:>3} {:<9} {ratio:.4} of the bytes without the agent, at most {MOST}",
                row.program, jdk.version, column.name
            );
            println!("{text}");
            if ratio > MOST {
                failed.push(text);
            }
        }
    }
    Ok(failed)
}
