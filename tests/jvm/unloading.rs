//! Classes that come and go: what the agent holds of them goes, too, every event is counted, and their numbers
//! decode as long as the program runs, and later.

use std::fs;
use std::time::Duration;

use lucce_tests::{Checked, Ended, Java, Jdk, Setup, ensure};

use crate::{Test, test};

const CLASSES: u64 = 20_000;
/// Every so many a number is kept, and decoded at the end.
const EVERY: u64 = 500;
/// Of each class.
const MADE: u64 = 4;
/// What the process may grow by behind the first 5,000 classes. An agent that remembers all of them takes 5 KB for
/// each, 75 MB in all; the rest is what the JVM itself takes by turns and gives back.
const MOST_GROWN: u64 = 48 << 10;
/// Bytes that a class may leave behind in a run with many: HotSpot itself never frees the ids of methods that stack
/// traces have told of.
const LEFT: u64 = 192;

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
        ]);
    if let Some(classes) = of_the_soak() {
        return soak(java, kind, classes);
    }
    let java = java.main(program(kind, CLASSES, EVERY));
    let ended = java.run()?.expect(0)?;
    let grown = number(&ended, "grown by ")?;
    ended.ensure(grown < MOST_GROWN, &format!("grown by {grown} KB"))?;
    ended.ensure(
        number(&ended, "decoded ")? == CLASSES / EVERY,
        "numbers decode",
    )?;
    java.lucce().check(&java.log())?;
    let log = java.log();
    let made = java.lucce().json(&[
        "report",
        "--json",
        "--type",
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
    let stats = java.lucce().stats(&log)?;
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

/// The program with its arguments.
fn program(kind: &str, classes: u64, every: u64) -> [String; 4] {
    let (classes, every) = (classes.to_string(), every.to_string());
    ["ComingAndGoing".to_owned(), kind.to_owned(), classes, every]
}

/// How many classes `cargo xtask soak` wants.
fn of_the_soak() -> Option<u64> {
    std::env::var("LUCCE_SOAK").ok()?.parse().ok()
}

/// Many more classes. Their log is too large to be looked at whole, as `decode` in the JVM would: it says how much the
/// process has grown, and that each comparison was right.
fn soak(java: Java<'_>, kind: &str, classes: u64) -> Checked {
    let never = u64::from(u32::MAX >> 1);
    let java = java
        .main(program(kind, classes, never))
        .limit(Duration::from_secs(3 * 3600));
    let ended = java.run()?.expect(0)?;
    let grown = number(&ended, "grown by ")?;
    let most = MOST_GROWN + classes * LEFT / 1024;
    let text = format!("{classes} classes: grown by {grown} KB, at most {most}");
    println!("{text}");
    ended.ensure(grown < most, &text)?;
    ended.ensure(ended.stderr.contains(", 0 mismatches"), "mismatches")?;
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
