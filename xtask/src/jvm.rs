//! `jvm-tests`: hands the whole-system tests what they run: JDKs, agent, command, programs.

use std::env;
use std::fs;
use std::thread;

use crate::workspace_compiler::WorkspaceCompiler;
use crate::{Outcome, build, jdk, paths, tools};

#[derive(clap::Args, Default)]
pub struct JvmTestOptions {
    /// Run a few tests on one JDK
    #[arg(long)]
    pub quick: bool,
    /// Also run what is otherwise left to the newest JDK
    #[arg(long)]
    pub every: bool,
    /// Part of a test's name, and options of the test runner such as --list and --skip
    #[arg(
        value_name = "FILTER",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub filter: Vec<String>,
    /// What compiles the tests.
    #[arg(skip)]
    pub compiler: WorkspaceCompiler,
}

impl JvmTestOptions {
    /// The tests of one JDK: their names have its version as a part. Tests whose names have no version go with the oldest.
    /// Without a version: all tests.
    pub fn of_version(version: Option<u32>) -> JvmTestOptions {
        let part = |version: &u32| format!("::{version}");
        let filter = match version {
            None => Vec::new(),
            Some(jdk::OLD) => {
                let others = jdk::TESTED.iter().filter(|other| **other != jdk::OLD);
                others
                    .chain([&jdk::OLDEST])
                    .flat_map(|other| ["--skip".to_owned(), part(other)])
                    .collect()
            }
            Some(version) => vec![part(&version)],
        };
        JvmTestOptions {
            filter,
            ..JvmTestOptions::default()
        }
    }
}

/// Runs the tests whose names match.
///
/// # Errors
/// A JDK is missing, or a test failed.
pub fn tests(options: &JvmTestOptions) -> Outcome {
    let quick = options.quick.then_some("--quick");
    let every = options.every.then_some("--every");
    let filter = options.filter.iter().map(String::as_str);
    let args: Vec<&str> = quick.into_iter().chain(every).chain(filter).collect();
    run(&args, &[], options.compiler)
}

#[derive(clap::Args)]
pub struct LeakSuiteOptions {
    /// Run this program only
    #[arg(value_name = "PROGRAM")]
    program: Option<String>,
    /// Run on this JDK only
    #[arg(long, value_name = "VERSION")]
    jdk: Option<u32>,
    /// Run with this collector only: Serial, Parallel, G1 or Z
    #[arg(long, value_name = "NAME")]
    gc: Option<String>,
}

/// Programs that leak in a known way or not at all: all of them under each collector, on the oldest and the newest JDK.
///
/// # Errors
/// As of `tests`.
pub fn leak_suite(options: &LeakSuiteOptions) -> Outcome {
    let jdk = options.jdk.map(|version| format!("jdk={version}"));
    let gc = options.gc.iter().map(|name| format!("gc={name}"));
    let program = options.program.iter().map(|name| format!("program={name}"));
    let wanted: Vec<String> = jdk.into_iter().chain(gc).chain(program).collect();
    run(
        &["leak_suite::"],
        &[("LUCCE_LEAK_SUITE", &wanted.join(","))],
        WorkspaceCompiler::Rustc,
    )
}

/// As many classes that come and go, in place of those few of the tests.
///
/// # Errors
/// As of `tests`.
pub fn soak(classes: u32) -> Outcome {
    let classes = classes.to_string();
    run(
        &["unloading::", "--nocapture"],
        &[("LUCCE_SOAK", &classes)],
        WorkspaceCompiler::Rustc,
    )
}

fn run(args: &[&str], more: &[(&str, &str)], compiler: WorkspaceCompiler) -> Outcome {
    build::lab_agent()?;
    let jdks = jdk::tested()?;
    let classes_21 = paths::target().join("programs-21");
    let programs_21 = build::programs_21(&jdks[jdks.len() - 1], classes_21)?;
    let programs_11 = build::programs_11()?;
    let oldest = jdk::oldest()?;
    let homes = env::join_paths(jdks.iter().map(|jdk| &jdk.home)).map_err(|e| e.to_string())?;
    for jdk in jdks.iter().chain([&oldest]) {
        println!("JDK {}: {}", jdk.version, jdk.home.display());
    }
    let mut cargo = paths::cargo();
    compiler.configure(&mut cargo)?;
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
        .env("LUCCE_AGENT", paths::agent())
        .env("LUCCE_LAB_AGENT", paths::lab_agent())
        .env("LUCCE_BIN", paths::lucce());
    cargo
        .env("LUCCE_HARNESS", paths::harness())
        .env("LUCCE_PROGRAMS_21", programs_21)
        .env("LUCCE_PROGRAMS_11", programs_11)
        .env("LUCCE_JAVA_11_HOME", oldest.home);
    cargo.envs(more.iter().copied());
    // The tests of a part whose summary is printed much later.
    let failures = paths::target().join("jvm-failures.txt");
    let _ = fs::remove_file(&failures);
    cargo.env("LUCCE_TEST_FAILURES", &failures);
    tools::run(cargo.env("LUCCE_JAVA_HOMES", homes)).map_err(|error| {
        let said = fs::read_to_string(&failures).unwrap_or_default();
        format!("{error}\n{said}")
    })
}

/// One more than there are processors, for tests wait, too; each JVM has threads of its own, so that
/// three at a time are enough for any machine.
fn threads() -> usize {
    thread::available_parallelism().map_or(1, |n| n.get().min(2) + 1)
}

#[cfg(test)]
mod jvm_tests {
    use super::*;

    #[test]
    fn each_test_belongs_to_one_jdk() {
        let filter = |version| JvmTestOptions::of_version(Some(version)).filter;
        assert_eq!(
            filter(17),
            ["--skip", "::21", "--skip", "::25", "--skip", "::11"]
        );
        assert_eq!(filter(11), ["::11"]);
        assert_eq!(filter(21), ["::21"]);
        assert_eq!(filter(25), ["::25"]);
        assert!(JvmTestOptions::of_version(None).filter.is_empty());
    }
}
