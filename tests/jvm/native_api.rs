//! `lucce.h`, asked by another agent beside lucce: `java-harness/native/sampler.c`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Command;

use lucce_tests::{COMPILE_PROGRAMS, Checked, Ended, Java, Jdk, Setup, ensure};

use crate::{Test, test};

const LEAKS: &str = "io.lucce.programs.Leaks";

/// A way to run, flags and the program with its arguments.
type Way = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const WAYS: [Way; 8] = [
    ("default", &[], &[LEAKS, "thread-local", "2000"]),
    (
        "int",
        &["-Xint", "-XX:+UseSerialGC"],
        &[LEAKS, "thread-local", "400"],
    ),
    (
        "comp",
        &[COMPILE_PROGRAMS, "-XX:+UseParallelGC"],
        &[LEAKS, "thread-local", "1000"],
    ),
    ("class-loader", &[], &[LEAKS, "class-loader", "1500"]),
    (
        "z",
        &["-XX:+UseZGC", "-Xmx200m"],
        &[LEAKS, "thread-local", "1500"],
    ),
    (
        "virtual",
        &["-Xmx400m"],
        &["io.lucce.programs.VirtualThreads"],
    ),
    (
        "walked",
        &["-XX:+UseParallelGC"],
        &[LEAKS, "thread-local", "2000"],
    ),
    (
        "virtual-walked",
        &["-Xmx400m"],
        &["io.lucce.programs.VirtualThreads"],
    ),
];

/// What is recorded beside the events of the other agent: exceptions need no hooks.
fn options(name: &str) -> &'static str {
    match name.ends_with("walked") {
        true => "events=exception",
        false => "events=none",
    }
}

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in setup.jdks_from_11() {
        for way in WAYS {
            let quick = jdk == setup.jdk() && way.0 == "default";
            let name = format!("native_api::{}::{}", jdk.version, way.0);
            if !way.0.starts_with("virtual") || jdk.version >= 21 {
                tests.push(test(name, quick, move || beside(setup, jdk, way)));
            }
        }
        let name = format!("native_api::{}::while_leaks_are_followed", jdk.version);
        tests.push(test(name, false, move || refused(setup, jdk)));
    }
    tests
}

fn java<'a>(setup: &'a Setup, jdk: &'a Jdk, name: &str, options: &str) -> Java<'a> {
    let java = Java::new(setup, jdk, &format!("native-api-{}-{name}", jdk.version)).agent(options);
    java.flags(["-Xcheck:jni", "-Xmx40m"])
}

/// Behind lucce: agents are loaded in the order of the command line.
fn run(setup: &Setup, jdk: &Jdk, java: &Java) -> Result<Ended, String> {
    let mut sampler = OsString::from("-agentpath:");
    sampler.push(&setup.sampler);
    sampler.push("=");
    sampler.push(&setup.agent);
    let mut arguments = java.arguments();
    arguments.insert(1, sampler);
    java.run_as(&mut Command::new(jdk.tool("java")), &arguments)
}

fn beside(setup: &Setup, jdk: &Jdk, (name, flags, program): Way) -> Checked {
    let java = java(setup, jdk, name, options(name))
        .flags(flags)
        .main(program);
    let ended = run(setup, jdk, &java)?.expect(0)?;
    let text = ended.text();
    ended.ensure(
        !text.contains("FATAL") && !text.contains("FAILED"),
        "no complaints",
    )?;
    let said = said(&ended)?;
    let all = said["samples"];
    // On JDK 25 the VM allocates for threads that have no frame yet.
    ended.ensure(
        all > 300 && said["different"] == 0,
        "every trace is the VM's",
    )?;
    ended.ensure(
        said["same"] + said["without context"] == all,
        "all are compared",
    )?;
    ended.ensure(said["without context"] * 50 < all, "the context is known")?;
    ended.ensure(said["signals"] >= 3 * said["same"], "signals were handled")?;
    ended.ensure(said["checks"] > 90 && said["failed"] == 0, "checks hold")?;
    counted(&java, said["events"], said["bytes"])?;
    java.clean();
    Ok(())
}

/// What the agent says at the end: `12 samples, 12 same, …`.
fn said(ended: &Ended) -> Result<BTreeMap<String, u64>, String> {
    let line = ended.stdout.lines().find_map(|line| {
        let line = line.strip_prefix("sampler: ")?;
        line.contains(" checks, ").then_some(line)
    });
    let line = line.ok_or_else(|| format!("the agent says nothing\n{}", ended.text()))?;
    let parts = line.split([',', ';']).flat_map(|part| part.split(" of "));
    let number = |part: &str| {
        let (number, what) = part.trim().split_once(' ')?;
        Some((what.to_owned(), number.parse().ok()?))
    };
    Ok(parts.filter_map(number).collect())
}

/// Events of the agent's own are in the log, each of them, with their values.
fn counted(java: &Java, events: u64, bytes: u64) -> Checked {
    let log = java.log().to_string_lossy().into_owned();
    let args = ["report", "--json", "--event", "sampled", "--top", "0", &log];
    let report = java.lucce().json(&args)?;
    let totals = &report["totals"];
    let right = totals["count"] == events && totals["value"] == bytes;
    ensure(right, || {
        format!("{events} events of {bytes} bytes, reported {totals}")
    })
}

/// The VM lets one agent sample: the second is refused, and the VM does not start.
fn refused(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = java(setup, jdk, "refused", "events=leak").main([LEAKS, "map", "100"]);
    let ended = run(setup, jdk, &java)?;
    let told = ended.code == Some(1) && ended.text().contains("agent library failed");
    ended.ensure(told, "the VM does not start")?;
    java.clean();
    Ok(())
}
