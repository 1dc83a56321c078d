//! `coverage`, of compiled code: the VM allocates at most a percent more with hooks than without. A hook may keep the compiler
//! from inlining a method, and then from removing an object.
//!
//! Iterations of an application are alike. Those that are compared come when their code is compiled; of each variant the
//! median counts. The program waits for the compilers (`-Xbatch`): otherwise what is inlined differs by percents of the bytes
//! from JVM to JVM. The JVM's test `on_heap` does the same for single constructs.
//!
//! HotSpot's C2 replaces a chain of `StringBuilder.append` by one array, and then no method of the chain runs. Under hooks it
//! cannot, or the chain's allocations would not be counted. So the limit applies to a JVM without this optimization.

use lucce_bench::{Metric, Report};

use crate::jdk::{self, Jdk};
use crate::workloads::{APPS, App};
use crate::{Outcome, bench, paths};

/// Bytes with hooks to bytes without them.
const MOST: f64 = 1.01;
const VARIANTS: &str = "tracking,alloc";
/// The variant without an agent that the limit applies to: its name and its flags.
const UNFUSED: (&str, &str) = ("unfused", "-XX:-OptimizeStringConcat");

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
    let (names, version, out) = (
        names.join(","),
        jdk.version.to_string(),
        out.to_string_lossy(),
    );
    let unfused = format!("{}={}", UNFUSED.0, UNFUSED.1);
    let mut arguments = vec![
        "--apps",
        &names,
        "--jdk",
        &version,
        "--rounds",
        "1",
        "--iterations",
        "20",
        "--warm-up",
        "12",
        "--variants",
        VARIANTS,
        "--variant",
        &unfused,
        "--out",
        &out,
    ];
    let flags = bench::DEFAULT_FLAGS.iter().chain(&["-Xbatch"]);
    arguments.extend(flags.flat_map(|flag| ["--jvm", *flag]));
    bench::apps(&bench::BenchOptions::parse(&arguments)?)
}

/// Prints each ratio; returns those that are too high.
fn find_excess(jdk: &Jdk, report: &Report) -> Result<Vec<String>, String> {
    let mut failed = Vec::new();
    for row in &report.rows {
        let ratio = |name: &str| {
            let column = report.columns.iter().position(|column| column.name == name);
            let quantity = column.and_then(|at| report.quantity(row, at, Metric::Allocated));
            let ratio = quantity.and_then(|quantity| quantity.ratio);
            ratio
                .map(|ratio| ratio.value)
                .ok_or_else(|| lucce_bench::remarks(report))
        };
        for name in VARIANTS.split(',') {
            let whole = ratio(name)?;
            let own = whole / ratio(UNFUSED.0)?;
            let text = format!(
                "{:<16} {:>3} {name:<9} {whole:.4} of the bytes without the agent, {own:.4} of those with {}, at most {MOST}",
                row.program, jdk.version, UNFUSED.1
            );
            println!("{text}");
            if own > MOST {
                failed.push(text);
            }
        }
    }
    Ok(failed)
}
