//! Whole-system tests: real JVMs under the agent, one process each.
//!
//! `cargo xtask jvm-tests` runs them. `--quick` leaves a few, on one JDK.

mod attach;
mod bad_options;
mod bursts;
mod commands;
mod control;
mod counts;
mod damage;
mod ending;
mod entries;
mod expected;
mod image;
mod io;
mod java_agents;
mod leaks;
mod loss;
mod modes;
mod native_api;
mod own_events;
mod planned;
mod programs;
mod recorded;
mod recorded_calls;
mod running;
mod samples;
mod starts;
mod streams;
mod tasks;
mod vm_events;

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use lucce_tests::{Checked, Setup};

/// A test and whether it is one of the quick ones.
struct Test {
    name: String,
    quick: bool,
    run: Box<dyn FnOnce() -> Checked + Send>,
}

fn test(
    name: impl Into<String>,
    quick: bool,
    run: impl FnOnce() -> Checked + Send + 'static,
) -> Test {
    Test {
        name: name.into(),
        quick,
        run: Box::new(run),
    }
}

impl Test {
    fn trial(self) -> Trial {
        Trial::test(self.name, || (self.run)().map_err(Failed::from))
    }
}

fn main() -> ExitCode {
    let (quick, args): (Vec<String>, Vec<String>) =
        std::env::args().partition(|arg| arg == "--quick");
    let args = Arguments::from_iter(args);
    let setup = match Setup::from_env(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        // The tests live as long as the process.
        Ok(setup) => &*Box::leak(Box::new(setup)),
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    };
    let tests = all(setup)
        .into_iter()
        .filter(|test| test.quick || quick.is_empty());
    libtest_mimic::run(&args, tests.map(Test::trial).collect()).exit_code()
}

fn all(setup: &'static Setup) -> Vec<Test> {
    [
        programs::tests(setup),
        counts::tests(setup),
        ending::tests(setup),
        entries::tests(setup),
        own_events::tests(setup),
        starts::tests(setup),
        samples::tests(setup),
        tasks::tests(setup),
        commands::tests(setup),
        control::tests(setup),
        attach::tests(setup),
        bad_options::tests(setup),
        loss::tests(setup),
        damage::tests(setup),
        image::tests(setup),
        io::tests(setup),
        java_agents::tests(setup),
        leaks::tests(setup),
        native_api::tests(setup),
        bursts::tests(setup),
        recorded::tests(setup),
        recorded_calls::tests(setup),
        planned::tests(setup),
        vm_events::tests(setup),
        streams::tests(setup),
    ]
    .into_iter()
    .flatten()
    .filter(|test| !is_repeated(setup, &test.name))
    .collect()
}

/// Other ways to run Java, of the VM or of the agent: tests have them as the part behind the version.
const WAYS: [&str; 13] = [
    "c1",
    "cct",
    "comp",
    "exception",
    "int",
    "paper",
    "parallel",
    "serial",
    "verified",
    "z",
    "app-comp",
    "Parallel",
    "Serial",
];

/// On JDKs between the oldest and the newest one every test runs in one way; virtual threads, which differ most, in all.
fn is_repeated(setup: &Setup, name: &str) -> bool {
    let [_, between @ .., _] = &setup.jdks[..] else {
        return false;
    };
    let is_between = |version: &str| between.iter().any(|jdk| jdk.version.to_string() == version);
    let mut parts = name.split("::").skip(1);
    parts.next().is_some_and(is_between)
        && parts.next().is_some_and(|way| WAYS.contains(&way))
        && !name.contains("irtual")
}
