//! What `lucce bench` says that a program's own threads worked is what they say themselves.

use std::ffi::OsString;

use lucce_tests::{COMPILE_PROGRAMS, Checked, Java, Jdk, Setup, ensure};

use crate::{Test, test};

/// Milliseconds that each of three threads, or groups of them, burns.
const BURNT: &str = "500";
/// What the JVM does on the first thread before it is a Java thread, and after it was one.
const START_AND_END: f64 = 80.0;

/// Compilers and collectors that are as busy as the program's threads.
const WAYS: [(&str, &[&str]); 3] = [
    ("default", &["-Xmx64m"]),
    ("comp", &[COMPILE_PROGRAMS, "-XX:+UseParallelGC"]),
    ("z", &["-XX:+UseZGC", "-Xmx128m"]),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let of = |jdk: &'static Jdk| {
        WAYS.iter().map(move |(way, flags)| {
            let name = format!("benched::{}::{way}", jdk.version);
            let quick = jdk == setup.jdk() && *way == "default";
            test(name, quick, move || own_threads(setup, jdk, way, flags))
        })
    };
    setup.jdks.iter().flat_map(of).collect()
}

fn own_threads(setup: &Setup, jdk: &Jdk, way: &str, flags: &[&str]) -> Checked {
    let name = format!("benched-{}-{way}", jdk.version);
    let java = Java::new(setup, jdk, &name);
    std::fs::create_dir_all(java.folder()).map_err(|e| e.to_string())?;
    let said = java.folder().join("said").to_string_lossy().into_owned();
    let java = java.flags(flags).main(["Burns", BURNT, &said]);
    let bench = ["bench", "--json", "--rounds", "1", "--warm-up", "0"];
    let mut args: Vec<OsString> = bench.map(Into::into).into();
    args.extend(["--variants", "", "--"].map(Into::into));
    args.push(jdk.tool("java").into());
    args.extend(java.arguments());
    let report = java.lucce().json(&args)?;
    let measured = &report["programs"][0]["variants"][0]["measured"];
    let milliseconds = |metric: &str| {
        let value = measured[metric]["spread"]["median"].as_f64();
        value.ok_or_else(|| format!("no {metric} in {report:#}"))
    };
    let (own, all) = (milliseconds("own")?, milliseconds("cpu")?);
    let unattributed = milliseconds("unattributed")?;
    let said = std::fs::read_to_string(&said).map_err(|e| e.to_string())?;
    let said: f64 = said.parse().map_err(|_| format!("it says {said}"))?;
    let told = || {
        format!("{own} ms of {all} ms, {unattributed} ms of them unsure; the threads say {said} ms")
    };
    // The kernel's ticks are at most 10 ms.
    ensure(own >= 0.98 * said - 10.0, told)?;
    ensure(own <= 1.02 * said + START_AND_END + unattributed, told)?;
    // Else nothing had to be told apart.
    ensure(all > own + 100.0, told)?;
    java.clean();
    Ok(())
}
