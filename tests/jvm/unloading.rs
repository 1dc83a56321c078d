//! Classes that come and go: what the agent holds of them goes, too, every event is counted, and their numbers
//! decode as long as the program runs, and later.

use std::fs;

use lucce_tests::{Checked, Ended, Java, Jdk, Setup, ensure};

use crate::{Test, test};

const CLASSES: u64 = 25_000;
/// Of each class.
const MADE: u64 = 4;
/// What the process may grow by behind the first 5,000 classes. An agent that remembers all of them takes 5 KB for
/// each, 100 MB in all; the rest is what the JVM itself takes by turns and gives back.
const MOST_GROWN: u64 = 48 << 10;

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        for kind in ["same", "named"] {
            tests.push(test(
                format!("unloading::{}::{kind}", jdk.version),
                jdk == setup.jdk() && kind == "same",
                move || check(setup, jdk, kind),
            ));
        }
    }
    tests
}

fn check(setup: &Setup, jdk: &Jdk, kind: &str) -> Checked {
    let java = Java::new(setup, jdk, &format!("unloading-{}-{kind}", jdk.version));
    let java = java
        .agent("events=alloc,verify=1000")
        // A heap that does not grow.
        .flags([
            "-Xms64m",
            "-Xmx64m",
            "-XX:+UseSerialGC",
            "-XX:+AlwaysPreTouch",
        ])
        .main(["ComingAndGoing", kind, &CLASSES.to_string()]);
    let ended = java.run()?.expect(0)?;
    let grown = number(&ended, "grown by ")?;
    ended.ensure(grown < MOST_GROWN, &format!("grown by {grown} KB"))?;
    ended.ensure(
        number(&ended, "decoded ")? == CLASSES / 500,
        "numbers decode",
    )?;
    java.lucce().check(&java.log())?;
    let log = java.log();
    let made = java.lucce().json(&[
        "report",
        "--json",
        "--class",
        "java\\.util\\.concurrent\\.atomic\\.AtomicLong",
        "--include",
        "made.*",
        "--top",
        "0",
        &log.to_string_lossy(),
    ])?;
    let found = made["totals"]["count"].as_u64();
    ensure(found == Some(CLASSES * MADE), || {
        format!("{} objects made, {found:?} counted", CLASSES * MADE)
    })?;
    let stats = java
        .lucce()
        .json(&["stats", "--json", &log.to_string_lossy()])?;
    for lost in ["events.lost", "agent.panics", "graph.unknown"] {
        ensure(stats["agent"][lost].as_u64() == Some(0), || {
            format!("{lost}: {stats}")
        })?;
    }
    if kind == "same" {
        let size = fs::metadata(&log).map_err(|e| e.to_string())?.len();
        ended.ensure(size < 4 << 20, &format!("the log has {size} bytes"))?;
    }
    java.clean();
    Ok(())
}

/// What stands behind `text` in the output. Negative: 0.
fn number(ended: &Ended, text: &str) -> Result<u64, String> {
    let line = ended
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix(text));
    let word = line.and_then(|line| line.split(' ').next());
    let number: Option<i64> = word.and_then(|word| word.parse().ok());
    let number = number.ok_or_else(|| format!("no {text:?} in\n{}", ended.stdout))?;
    Ok(number.max(0) as u64)
}
