//! The applications of `java-harness/apps`.

use lucce_bench::{Program, Report};

use super::measured;
use super::options::BenchOptions;
use crate::jdk::Jdk;
use crate::workloads::{APPS, App};

/// # Errors
/// An application is unknown.
pub fn run(options: &BenchOptions) -> Result<Report, String> {
    let jdk = options.jdk()?;
    let (able, unable): (Vec<&App>, Vec<&App>) = wanted(options)?
        .into_iter()
        .partition(|app| app.runs_on(&jdk));
    for app in unable {
        println!(
            "not run: {}: JDK {} lacks what it needs",
            app.name, jdk.version
        );
    }
    let programs = able
        .iter()
        .map(|app| program(options, app, &jdk, options.threads));
    Ok(measured(
        &options.plan(programs.collect()),
        "",
        &options.out,
    ))
}

/// # Errors
/// An application is unknown.
pub fn wanted(options: &BenchOptions) -> Result<Vec<&'static App>, String> {
    let known = || APPS.map(|app| app.name).join(", ");
    let find = |name: &String| {
        let found = APPS.iter().find(|app| app.name == name);
        found.ok_or_else(|| format!("unknown application {name}; there are {}", known()))
    };
    match options.names.is_empty() {
        true => Ok(APPS.iter().collect()),
        false => options.names.iter().map(find).collect(),
    }
}

pub fn program(options: &BenchOptions, app: &App, jdk: &Jdk, threads: Option<usize>) -> Program {
    let mut arguments = app.class_path_and_main();
    let mut option = |key: &str, value: String| {
        arguments.extend([key.into(), value.into()]);
    };
    option("--iterations", options.iterations().to_string());
    option("--size", (app.measured * options.size()).to_string());
    if let Some(threads) = threads {
        option("--threads", threads.to_string());
    }
    arguments.push("--turns".into());
    arguments.extend(app.operand());
    Program {
        name: app.name.to_owned(),
        command: options.command(jdk, arguments),
        whole: false,
        turns: true,
        warm_up: None,
    }
}

/// The first name only if the run is quick, else all.
pub fn few(
    options: &BenchOptions,
    all: &'static [&'static str],
) -> impl Iterator<Item = &'static str> {
    let count = if options.quick { 1 } else { all.len() };
    all.iter().copied().take(count)
}

/// The application with this name.
///
/// # Panics
/// There is none: names are constants of the callers.
pub fn named(name: &str) -> &'static App {
    let found = APPS.iter().find(|app| app.name == name);
    found.expect("an application of this name")
}
