//! `jvm-tests`: hands the whole-system tests what they run: JDKs, agent, command, programs.

use std::env;
use std::thread;

use crate::{Outcome, build, jdk, place, tools};

/// Runs the tests whose names match; `--quick`: a few, on one JDK.
///
/// # Errors
/// A JDK is missing, or a test failed.
pub fn tests(args: &[&str]) -> Outcome {
    run(args, &[])
}

/// Programs that leak in a known way or not at all: all of them under each collector, on the oldest and the newest JDK.
/// `args`: `--jdk VERSION`, `--gc NAME`, and a program.
///
/// # Errors
/// As of `tests`, or an argument is not understood.
pub fn leak_suite(args: &[&str]) -> Outcome {
    let mut wanted = Vec::new();
    let mut rest = args;
    while let [first, after @ ..] = rest {
        rest = match (*first, after) {
            ("--jdk", [version, after @ ..]) => {
                wanted.push(format!("jdk={version}"));
                after
            }
            ("--gc", [name, after @ ..]) => {
                wanted.push(format!("gc={name}"));
                after
            }
            (program, after) if !program.starts_with('-') => {
                wanted.push(format!("program={program}"));
                after
            }
            (other, _) => return Err(format!("not understood: {other}")),
        };
    }
    run(
        &["leak_suite::"],
        &[("LUCCE_LEAK_SUITE", &wanted.join(","))],
    )
}

/// As many classes that come and go, in place of those few of the tests.
///
/// # Errors
/// As of `tests`, or `classes` is no number.
pub fn soak(classes: &str) -> Outcome {
    let number = classes.parse::<u32>();
    number.map_err(|_| format!("not a number of classes: {classes}"))?;
    run(&["unloading::", "--nocapture"], &[("LUCCE_SOAK", classes)])
}

fn run(args: &[&str], more: &[(&str, &str)]) -> Outcome {
    let jdks = jdk::tested()?;
    let programs_21 = build::programs_21(&jdks[jdks.len() - 1])?;
    let homes = env::join_paths(jdks.iter().map(|jdk| &jdk.home)).map_err(|e| e.to_string())?;
    for jdk in &jdks {
        println!("JDK {}: {}", jdk.version, jdk.home.display());
    }
    let mut cargo = place::cargo();
    // The whole workspace, with dependencies as the unit tests have them: those are compiled once.
    cargo.args([
        "test",
        "--workspace",
        "--features",
        "lucce-tests/jvm",
        "--test",
        "jvm",
        "--",
    ]);
    cargo
        .arg(format!("--test-threads={}", threads()))
        .args(args);
    cargo
        .env("LUCCE_AGENT", place::agent())
        .env("LUCCE_BIN", place::lucce());
    cargo
        .env("LUCCE_HARNESS", place::harness())
        .env("LUCCE_PROGRAMS_21", programs_21)
        .env("LUCCE_OLD_JAVA_HOME", &jdk::too_old()?.home);
    cargo.envs(more.iter().copied());
    tools::run(cargo.env("LUCCE_JAVA_HOMES", homes))
}

/// One more than there are processors, for tests wait, too; each JVM has threads of its own, so that
/// three at a time are enough for any machine.
fn threads() -> usize {
    thread::available_parallelism().map_or(1, |n| n.get().min(2) + 1)
}
