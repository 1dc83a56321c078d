//! `bench`: programs with and without agents, side by side.

mod options;

mod async_profiler;

mod apps;
mod calibration;
mod callbacks;
mod dacapo;
mod fleet;
mod footprint;
mod growth;
mod method_variants;
mod methods;
mod micro;

use std::fs;
use std::path::Path;
use std::time::Duration;

use lucce_bench::{Metric, Plan, Report, Step, Variant};

use crate::{Outcome, build, paths};

use options::Programs;
pub use options::{BenchArguments, BenchOptions, DEFAULT_FLAGS};

const LIMIT: Duration = Duration::from_secs(3600);

/// # Errors
/// Something does not build, or a program ends badly or computes something else under an agent.
pub fn run(options: &BenchOptions) -> Outcome {
    if options.build {
        build::all()?;
        if options.variants.iter().any(Variant::wants_lab) {
            build::lab_agent()?;
        }
    }
    match &options.kind {
        Programs::Apps => show("", &apps::run(options)?, &options.out),
        Programs::Dacapo(jar) => show("dacapo", &dacapo::run(options, jar)?, &options.out),
        Programs::Methods => show("methods", &methods::run(options)?, &options.out),
        Programs::Micro => show("micro", &micro::run(options)?, &options.out),
        Programs::Footprint => footprint::run(options),
        Programs::Fleet => fleet::run(options),
    }
}

/// The applications, with what is built.
///
/// # Errors
/// An application is unknown, or there is no such JDK.
pub fn apps(options: &BenchOptions) -> Result<Report, String> {
    apps::run(options)
}

/// After each JVM the files called `name` are written anew: a run that is ended leaves what it has measured.
fn measured(plan: &Plan, name: &str, folder: &Path) -> Report {
    let report = lucce_bench::measure(plan, &|step, report| {
        tell(step);
        if let Err(e) = written(name, report, folder) {
            println!("{e}");
        }
    });
    let _ = fs::remove_dir_all(&plan.scratch);
    report
}

fn tell(step: &Step) {
    let ratio = step.ratio.map_or(String::new(), |r| format!("{r:.2}"));
    println!(
        "[{:>3}/{}] {:<16} {:<14} round {:>2}  {ratio}",
        step.done, step.total, step.program, step.variant, step.round
    );
}

/// Prints the tables and writes everything to files.
fn show(name: &str, report: &Report, folder: &Path) -> Outcome {
    let tables = written(name, report, folder)?;
    println!("\n{name}\n{tables}written to {}", paths::short(folder));
    let failures = report.failures();
    match failures.is_empty() {
        true => Ok(()),
        false => Err(format!("failed runs:\n  {}", failures.join("\n  "))),
    }
}

/// The tables.
///
/// # Errors
/// A file cannot be written.
fn written(name: &str, report: &Report, folder: &Path) -> Result<String, String> {
    let prefix = if name.is_empty() { "" } else { "-" };
    let write = |file: &str, text: String| {
        let file = folder.join(format!("{name}{prefix}{file}"));
        fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))
    };
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let metrics = report.metrics();
    let mut tables = String::new();
    if metrics.contains(&Metric::Wall) {
        tables += &format!("{}\n\n", lucce_bench::side_by_side(report));
    }
    for metric in metrics.iter().copied() {
        let adds = matches!(
            metric,
            Metric::PeakRss | Metric::CodeCache | Metric::PerOperation
        );
        let text = match adds || name == "startup" {
            true => lucce_bench::differences(report, metric),
            false => lucce_bench::table(report, metric),
        };
        tables += &format!("{text}\n\n");
    }
    tables += &lucce_bench::remarks(report);
    for metric in metrics {
        if let Some(file) = drawn(metric) {
            write(file, lucce_bench::chart(report, metric))?;
        }
    }
    write("report.json", report.json()?)?;
    write("tables.md", tables.clone())?;
    Ok(tables)
}

fn drawn(metric: Metric) -> Option<&'static str> {
    match metric {
        Metric::Own => Some("own.svg"),
        Metric::Cpu => Some("cpu.svg"),
        Metric::Wall => Some("wall.svg"),
        Metric::PerOperation => Some("operation.svg"),
        _ => None,
    }
}
