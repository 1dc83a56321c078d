//! Whole-system tests: real JVMs under the agent, one process each.
//!
//! `cargo xtask jvm-tests` runs them. `--quick` leaves a few, on one JDK.

mod array_sizes;
mod attach;
mod bad_options;
mod benched;
mod budget;
mod bursts;
mod cache;
mod classes;
mod commands;
mod containers;
mod control;
mod coroutines;
mod counts;
mod coverage;
mod damage;
mod debuggers;
mod defined_classes;
mod delays;
mod ending;
mod entries;
mod expected;
mod explain;
mod files;
mod ground;
mod holders;
mod idle;
mod image;
mod io;
mod java_agents;
mod jdk_facts;
mod junit;
mod leak_suite;
mod leaks;
mod lock_holders;
mod log_lines;
mod logical;
mod loop_counts;
mod loss;
mod marks;
mod modes;
mod named_methods;
mod native_api;
mod native_memory;
mod observed;
mod on_heap;
mod open;
mod operators;
mod own_code;
mod own_events;
mod planned;
mod programs;
mod push;
mod real_java_agents;
mod recipe;
mod recorded;
mod recorded_calls;
mod replaced;
mod requests;
mod running;
mod samples;
mod second_start;
mod shop;
mod spans;
mod starts;
mod streams;
mod survival;
mod tagged_tasks;
mod tags;
mod task_allocations;
mod tasks;
mod top;
mod unloading;
mod untouched;
mod variants;
mod vm_events;
mod walked;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};
use lucce_tests::{Checked, Jdk, Setup, Times, head_and_tail};

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
    fn trial(self, times: &'static Times, failures: &'static TestFailures) -> Trial {
        let name = self.name.clone();
        Trial::test(self.name, move || {
            times.of(&name, self.run).map_err(|message| {
                failures.add(&name, &message);
                Failed::from(message)
            })
        })
    }
}

/// What the failed tests said.
#[derive(Default)]
struct TestFailures(Mutex<String>);

impl TestFailures {
    fn add(&self, name: &str, message: &str) {
        let message = head_and_tail(message);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_str(&format!("{name}: {message}\n"));
    }

    fn text(&self) -> String {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }
}

fn main() -> ExitCode {
    let (quick, args): (Vec<String>, Vec<String>) =
        std::env::args().partition(|arg| arg == "--quick");
    let (every, args): (Vec<String>, Vec<String>) =
        args.into_iter().partition(|arg| arg == "--every");
    let args = Arguments::from_iter(args);
    let setup = match Setup::from_env(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        // The tests live as long as the process.
        Ok(setup) => &*Box::leak(Box::new(setup)),
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    };
    let tests = all(setup);
    let names: BTreeSet<String> = tests.iter().map(|test| test.name.clone()).collect();
    let tests = tests
        .into_iter()
        .filter(|test| test.quick || quick.is_empty())
        .filter(|test| !every.is_empty() || !is_repeated(setup, test, &names));
    // The tests live as long as the process.
    let times = &*Box::leak(Box::new(Times::default()));
    let failures = &*Box::leak(Box::new(TestFailures::default()));
    let trials = tests.map(|test| test.trial(times, failures)).collect();
    let conclusion = libtest_mimic::run(&args, trials);
    if !args.list {
        print!("{}", times.summary());
    }
    if let Some(file) = std::env::var_os("LUCCE_TEST_TIMES") {
        std::fs::write(&file, times.list()).expect("LUCCE_TEST_TIMES names a file to write");
    }
    if let Some(file) = std::env::var_os("LUCCE_TEST_FAILURES") {
        std::fs::write(&file, failures.text()).expect("LUCCE_TEST_FAILURES names a file to write");
    }
    conclusion.exit_code()
}

fn all(setup: &'static Setup) -> Vec<Test> {
    [
        programs::tests(setup),
        counts::tests(setup),
        containers::tests(setup),
        coverage::tests(setup),
        ending::tests(setup),
        entries::tests(setup),
        own_events::tests(setup),
        tags::tests(setup),
        requests::tests(setup),
        tagged_tasks::tests(setup),
        holders::tests(setup),
        junit::tests(setup),
        recipe::tests(setup),
        log_lines::tests(setup),
        loop_counts::tests(setup),
        starts::tests(setup),
        samples::tests(setup),
        observed::tests(setup),
        spans::tests(setup),
        on_heap::tests(setup),
        budget::tests(setup),
        array_sizes::tests(setup),
        survival::tests(setup),
        second_start::tests(setup),
        tasks::tests(setup),
        coroutines::tests(setup),
        operators::tests(setup),
        classes::tests(setup),
        cache::tests(setup),
        top::tests(setup),
        unloading::tests(setup),
        untouched::tests(setup),
        variants::tests(setup),
        commands::tests(setup),
        control::tests(setup),
        attach::tests(setup),
        benched::tests(setup),
        walked::tests(setup),
        bad_options::tests(setup),
        loss::tests(setup),
        marks::tests(setup),
        files::tests(setup),
        ground::tests(setup),
        task_allocations::tests(setup),
        damage::tests(setup),
        idle::tests(setup),
        debuggers::tests(setup),
        image::tests(setup),
        io::tests(setup),
        java_agents::tests(setup),
        jdk_facts::tests(setup),
        real_java_agents::tests(setup),
        leak_suite::tests(setup),
        open::tests(setup),
        own_code::tests(setup),
        shop::tests(setup),
        explain::tests(setup),
        leaks::tests(setup),
        lock_holders::tests(setup),
        named_methods::tests(setup),
        native_memory::tests(setup),
        native_api::tests(setup),
        bursts::tests(setup),
        defined_classes::tests(setup),
        delays::tests(setup),
        push::tests(setup),
        recorded::tests(setup),
        recorded_calls::tests(setup),
        replaced::tests(setup),
        planned::tests(setup),
        vm_events::tests(setup),
        streams::tests(setup),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Modules whose tests depend on the JDK beside virtual threads: on its methods, natives and tables of classes.
const DIFFERENT: [&str; 14] = [
    "attach",
    "classes",
    "debuggers",
    "holders",
    "image",
    "io",
    "java_agents",
    "jdk_facts",
    "programs",
    "real_java_agents",
    "replaced",
    "tasks",
    "vm-events",
    "walked",
];

/// What the VM does by itself differs most.
const PROGRAMS_BETWEEN: [&str; 13] = [
    "Attaching",
    "ClassInit",
    "ClassLoading",
    "Exceptions",
    "Finalizers",
    "FlightRecording",
    "ForeignUpcalls",
    "Lambdas",
    "MethodHandleCalls",
    "NativeCallback",
    "ReflectionCalls",
    "Serialization",
    "StackOverflow",
];

/// Other ways to run Java, of the VM or of the agent: tests have them as the part behind the version.
const WAYS: [&str; 8] = [
    "app", "cct", "comp", "int", "outside", "z", "app-comp", "call",
];

/// Modules that have these ways on the oldest JDK, too: code of the JDK comes into play that newer ones lack.
const WAYS_ON_OLDEST: [&str; 2] = ["counts", "programs"];

/// Ways in which others' Java agents start: at the start, attached, and with classes that they replace. What each agent does is
/// tried on the oldest and the newest JDK.
const AGENTS_BETWEEN: [&str; 3] = ["empty", "attached", "mockito"];

/// Modules about the agent's own, in which JDKs differ least.
const ALIKE: [&str; 15] = [
    "bursts",
    "coroutines",
    "delays",
    "explain",
    "leaks",
    "operators",
    "own-events",
    "own_code",
    "planned",
    "recorded",
    "recorded_calls",
    "requests",
    "shop",
    "streams",
    "tagged_tasks",
];

/// Parts of names of other modules' tests, of which the same is true.
const ALIKE_WAYS: [&str; 23] = [
    "app-comp",
    "at-once",
    "burst",
    "c1",
    "cct",
    "damaged",
    "exception",
    "exclude",
    "filtered",
    "include",
    "loaded",
    "mockito-jacoco",
    "mockito-subclass",
    "named",
    "nowhere",
    // `observed` has that agent on the oldest.
    "opentelemetry",
    "outer",
    "paper",
    "parallel",
    "serial",
    "twice",
    "verified",
    "with-allocations",
];

/// On JDK 11, beside programs: one test of each thing that its VM does in another way.
const ON_11: [&str; 13] = [
    "attach::default::traces_of_running_frames",
    "classes::default",
    "defined_classes::default",
    "io::default",
    "java_agents::last",
    "lock_holders::default",
    "named_methods::default",
    "native_memory::walked",
    "open::default",
    "real_java_agents::empty",
    "real_java_agents::first",
    "tasks::default",
    "vm-events::default::Unseen",
];

/// Whether JDK 11 has the test at each run.
fn is_run_on_11(module: &str, rest: &[&str]) -> bool {
    match (module, rest) {
        ("image" | "jdk_facts", _) => true,
        // `doPrivileged` is a native method there, with all classes in scope and with deferred VM entries.
        ("programs", ["default", "LibraryCallbacks"] | ["app", "OutOfScope"]) => true,
        ("programs", ["default", program]) => PROGRAMS_BETWEEN.contains(program),
        _ => ON_11.contains(&&*format!("{module}::{}", rest.join("::"))),
    }
}

/// Whether the test is left to the newest JDK. On those between 17 and the newest each thing is tested once, in the usual way to
/// run Java, and virtual threads, which differ most, in all ways of Java. The oldest one tests all that differs in the usual way,
/// and what the newest one has no test of; there, the agent's own is tested quickly. JDK 11 has a few tests.
fn is_repeated(setup: &Setup, test: &Test, names: &BTreeSet<String>) -> bool {
    let [oldest, between @ .., newest] = &setup.jdks[..] else {
        return false;
    };
    let parts: Vec<&str> = test.name.split("::").collect();
    let [module, version, rest @ ..] = &parts[..] else {
        return false;
    };
    let is = |jdk: &Jdk| jdk.version.to_string() == *version;
    if is(&setup.jdk_11) {
        return !is_run_on_11(module, rest);
    }
    let is_own = ALIKE.contains(module);
    let is_alike = is_own || rest.iter().any(|part| ALIKE_WAYS.contains(part));
    if is(oldest) {
        let newest = newest.version.to_string();
        let on_newest = [&[*module, newest.as_str()], rest].concat().join("::");
        let is_way = rest.first().is_some_and(|way| WAYS.contains(way));
        let is_left = is_alike || is_way && !WAYS_ON_OLDEST.contains(module);
        return !test.quick && is_left && names.contains(&on_newest);
    }
    let is_usual = match rest {
        _ if !DIFFERENT.contains(module) => false,
        ["default", program] if *module == "programs" => PROGRAMS_BETWEEN.contains(program),
        [way, ..] if ["classes", "java_agents", "programs"].contains(module) => *way == "default",
        [way, ..] if *module == "real_java_agents" => AGENTS_BETWEEN.contains(way),
        [way, ..] => !WAYS.contains(way),
        [] => true,
    };
    let is_virtual = test.name.contains("irtual") && !is_own;
    let is_virtual = is_virtual && !(*module == "programs" && is_alike);
    between.iter().any(is) && !is_usual && !is_virtual
}
