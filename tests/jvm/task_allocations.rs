//! `Allocations.of` around code that hands work to other threads: the program knows what it makes, and says which
//! measurements must fail.

use lucce_tests::{Checked, Java, Setup, ensure};

use crate::modes::{self, Case, Mode};
use crate::{Test, test};

const PROGRAM: &str = "io.lucce.programs.TaskAllocations";
/// What threads, executors and lambdas take beside what the program makes, at most: less than one of its arrays.
const BESIDE: u64 = 700_000;
/// Measurements that must fail, and what is said of each.
const FAILING: [(&str, &str); 6] = [
    (
        "left thread",
        "a thread that it had started still ran (left-behind)",
    ),
    ("left task", "a task that it had submitted had not ended"),
    (
        "left plain task",
        "a task that it had submitted had not ended",
    ),
    (
        "left async task",
        // Where the common pool has one thread, JDK 17 and 21 start one for each task.
        "when the code had ended, a t",
    ),
    (
        "left in the queue",
        "a task that it had submitted had not ended",
    ),
    (
        "several places",
        "the agent does not know who submitted them",
    ),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 3] = [
        ("default", &[], "events=alloc+thread,verify=101"),
        (
            "int",
            &["-Xint", "-Xcheck:jni"],
            "events=alloc+thread,verify=101",
        ),
        (
            "all",
            &["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
            "events=alloc=all+thread+lock,verify=101",
        ),
    ];
    let mut tests = modes::each(setup, "task-allocations", &MODES, check);
    tests.push(test("task-allocations::unknown", false, move || {
        unknown(setup)
    }));
    tests
}

/// The program, which waits so many milliseconds for what is left over.
fn patient(java: Java<'static>, millis: u32) -> Java<'static> {
    java.main([&format!("-Dlucce.patience={millis}"), PROGRAM])
}

/// `name|least|found` or `name|fails|reason`.
fn lines(text: &str) -> Vec<(&str, &str, &str)> {
    let lines = text.lines().filter_map(|line| {
        let mut fields = line.splitn(3, '|');
        Some((fields.next()?, fields.next()?, fields.next()?))
    });
    lines.collect()
}

fn check(case: &Case) -> Checked {
    let java = patient(case.java(case.options), 3000);
    let ended = java.run()?.expect(0)?;
    let lines = lines(&ended.stdout);
    ended.ensure(lines.len() >= 110, "the program says what to expect")?;
    for (name, least, found) in &lines {
        if let Some((_, reason)) = FAILING.iter().find(|(failing, _)| failing == name) {
            ensure(*least == "fails" && found.contains(reason), || {
                format!("{name}: {least} {found}")
            })?;
            continue;
        }
        ensure(is_counted(least, found), || {
            format!("{name}: {found} bytes, and at least {least} were made")
        })?;
    }
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// Where the agent does not know who starts what, nothing that may be the code's is left out silently.
fn unknown(setup: &'static Setup) -> Checked {
    let java = Java::new(setup, setup.jdk(), "task-allocations-unknown").agent("events=alloc");
    let java = patient(java, 3000);
    let ended = java.run()?.expect(0)?;
    let lines = lines(&ended.stdout);
    for (name, least, found) in &lines {
        let names_reason = *least == "fails" && found.contains("events=alloc+thread");
        let is_right = match *name {
            "thread" | "submit" | "supplyAsync" | "nested" => names_reason,
            // On a busy machine the thread that asks for a parallel stream does all of it.
            "parallel stream" => names_reason || is_counted(least, found),
            "own" => is_counted(least, found),
            _ => true,
        };
        ensure(is_right, || format!("{name}: {least} {found}"))?;
    }
    ended.ensure(
        lines.iter().any(|line| line.0 == "own"),
        "the code's own thread is counted",
    )?;
    java.clean();
    Ok(())
}

/// The bytes found are at least those made, and little more.
fn is_counted(least: &str, found: &str) -> bool {
    let (Ok(least), Ok(found)) = (least.parse::<u64>(), found.parse::<u64>()) else {
        return false;
    };
    (least..least + BESIDE).contains(&found)
}
