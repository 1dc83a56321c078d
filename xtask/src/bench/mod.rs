//! `bench`: programs with and without agents, side by side.

mod wish;

mod async_profiler;

mod apps;
mod callbacks;
mod dacapo;
mod fleet;
mod footprint;
mod growth;
mod micro;

use std::fs;
use std::path::Path;
use std::time::Duration;

use lucce_bench::{Metric, Plan, Report, Step, Variant};

use crate::{Outcome, build, place};

use wish::Programs;
pub use wish::Wish;

const LIMIT: Duration = Duration::from_secs(3600);

/// Options and examples.
pub fn help() -> String {
    let names: Vec<String> = Variant::known().into_iter().map(|v| v.name).collect();
    let lines: Vec<String> = names.chunks(6).map(|names| names.join(", ")).collect();
    let names = lines.join(&format!(",\n{:20}", ""));
    include_str!("help.txt")
        .trim_end()
        .replace("{variants}", &names)
}

/// # Errors
/// Something does not build, or a program ends badly or computes something else under an agent.
pub fn run(wish: &Wish) -> Outcome {
    if wish.build {
        build::all()?;
    }
    match &wish.kind {
        Programs::Apps => show("", &apps::run(wish)?, &wish.out),
        Programs::Dacapo(jar) => show("dacapo", &dacapo::run(wish, jar)?, &wish.out),
        Programs::Micro => show("micro", &micro::run(wish)?, &wish.out),
        Programs::Footprint => footprint::run(wish),
        Programs::Fleet => fleet::run(wish),
    }
}

/// The applications, with what is built.
///
/// # Errors
/// An application is unknown, or there is no such JDK.
pub fn apps(wish: &Wish) -> Result<Report, String> {
    apps::run(wish)
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
    println!("\n{name}\n{tables}written to {}", place::short(folder));
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
