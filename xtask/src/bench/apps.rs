//! The applications of `java-harness/apps`.

use lucce_bench::{Program, Report};

use super::measured;
use super::wish::Wish;
use crate::jdk::Jdk;
use crate::workloads::{APPS, App};

/// # Errors
/// An application is unknown.
pub fn run(wish: &Wish) -> Result<Report, String> {
    let jdk = wish.jdk()?;
    let (able, unable): (Vec<&App>, Vec<&App>) = wanted(wish)?
        .into_iter()
        .partition(|app| jdk.compiles() || !app.wants_whole_jdk);
    for app in unable {
        println!("not run: {}: JDK {} has no compiler", app.name, jdk.version);
    }
    let programs = able
        .iter()
        .map(|app| program(wish, app, &jdk, wish.threads));
    Ok(measured(&wish.plan(programs.collect()), "", &wish.out))
}

/// # Errors
/// An application is unknown.
pub fn wanted(wish: &Wish) -> Result<Vec<&'static App>, String> {
    let known = || APPS.map(|app| app.name).join(", ");
    let find = |name: &String| {
        let found = APPS.iter().find(|app| app.name == name);
        found.ok_or_else(|| format!("unknown application {name}; there are {}", known()))
    };
    match wish.names.is_empty() {
        true => Ok(APPS.iter().collect()),
        false => wish.names.iter().map(find).collect(),
    }
}

pub fn program(wish: &Wish, app: &App, jdk: &Jdk, threads: Option<usize>) -> Program {
    let mut arguments = app.class_path_and_main();
    let mut option = |key: &str, value: String| {
        arguments.extend([key.into(), value.into()]);
    };
    option("--iterations", wish.iterations().to_string());
    option("--size", (app.measured * wish.size()).to_string());
    if let Some(threads) = threads {
        option("--threads", threads.to_string());
    }
    arguments.push("--turns".into());
    arguments.extend(app.operand());
    Program {
        name: app.name.to_owned(),
        command: wish.command(jdk, arguments),
        whole: false,
        turns: true,
    }
}
