//! Operators of Reactor and RxJava: traces of their code go on where the program has assembled them. The program's lambdas know
//! these lines, and it prints how many events have happened below which.

use std::fs;

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};
use serde_json::Value;

use crate::logical::LineCounts;
use crate::modes::{self, Case, Mode};
use crate::running::{self, Running};
use crate::{Test, logical, test};

const PROGRAM: &str = "io.lucce.logical.Operators";
/// Each event of the program allocates one.
const MARKER: &str = r"Operators\$Signal$";
/// The frame between an operator's code and what has assembled it.
const ASSEMBLED: &str = "assembled";
/// Operators and a continuation that are older than an attached agent.
const OLDER: &str = "io.lucce.logical.UnknownCallers";
const RECORDER: &str = "io.lucce.logical.SignalRecorder";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 1] = [("default", &["-Xcheck:jni"], "events=alloc+thread,verify=1")];
    let mut tests = modes::each(setup, "operators", &MODES, check);
    let jdks = setup.jdks.iter();
    for jdk in jdks.filter(|jdk| jdk.version != 21) {
        for is_attached in [true, false] {
            let name = if is_attached { "attached" } else { "delayed" };
            let name = format!("operators::{}::{name}", jdk.version);
            tests.push(test(name, false, move || older(setup, jdk, is_attached)));
        }
    }
    tests
}

/// Operators that exist before calls are counted. An agent from the start knows where they were assembled, an attached one says
/// that it does not.
fn older(setup: &Setup, jdk: &Jdk, is_attached: bool) -> Checked {
    let name = if is_attached { "attached" } else { "delayed" };
    let java = Java::new(setup, jdk, &format!("operators-{}-{name}", jdk.version));
    let go = running::signal_file(&java);
    let built = setup.harness.join("logical/target");
    let events = format!("events=call:{RECORDER}.record");
    let java = match is_attached {
        true => java,
        false => java.agent(&format!("{events},verify=1,delay=1h")),
    };
    let java = java
        .class_path(format!("{0}/logical.jar:{0}/lib/*", built.display()))
        .main([OLDER, &go.display().to_string()]);
    let mut jvm = Running::with_line(java, "ready")?;
    let log = jvm.java.log().display().to_string();
    match is_attached {
        true => {
            let pid = jvm.pid();
            let attach = ["attach", &pid, "--out", &log, "--opt", &events];
            let attach = [&attach[..], &["--opt", "verify=1"]].concat();
            jvm.lucce().text(0, &attach).map(drop)?;
        }
        false => drop(jvm.ctl(&["start"])?),
    }
    fs::write(&go, "").map_err(|e| e.to_string())?;
    let status = jvm.child.wait().map_err(|e| e.to_string())?;
    ensure(status.success(), || jvm.java.printed("stderr"))?;
    let expected = older_counts(
        &jvm.java.printed("stdout"),
        if is_attached { "attached" } else { "started" },
    );
    ensure(expected.len() == 6, || format!("six places: {expected:?}"))?;
    jvm.lucce().check(log.as_ref())?;
    logical::compare_counts(&jvm.java, &["--event", "call"], older_lines, &expected)?;
    let words = match is_attached {
        true => ";(caller not known, frames of the thread follow);",
        false => "(caller not known);(assembled at);",
    };
    let export = ["export", "--format", "collapsed", "--event", "call", &log];
    let shown = jvm.lucce().text(0, &export)?;
    ensure(shown.contains(words), || shown.clone())?;
    jvm.java.clean();
    Ok(())
}

/// `KIND COUNT|LINE;…`
fn older_counts(stdout: &str, kind: &str) -> LineCounts {
    let lines = stdout.lines().filter_map(|line| {
        let (count, lines) = line.strip_prefix(kind)?.trim().split_once('|')?;
        Some((lines.to_owned(), count.parse().ok()?))
    });
    lines.collect()
}

/// The program's own lines below `record`, and where callers are not known.
fn older_lines(row: &Value) -> String {
    let frames = row["frames"].as_array().into_iter().flatten();
    let line = |frame: &Value| {
        let (class, method) = (frame["class"].as_str()?, frame["method"].as_str()?);
        match method {
            "threadCaller" => Some("?".to_owned()),
            "unknownCaller" => Some("unknown".to_owned()),
            _ => class
                .starts_with(OLDER)
                .then(|| format!("{method}:{}", frame["line"])),
        }
    };
    frames.filter_map(line).collect::<Vec<_>>().join(";")
}

fn check(case: &Case) -> Checked {
    let (java, _, expected) = logical::run_program(case, PROGRAM, 20)?;
    logical::compare_counts(&java, &["--type", MARKER], assembling_lines, &expected)?;

    let log = java.log().display().to_string();
    let shown = java.lucce().run(&["report", "--type", MARKER, &log])?;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    ensure(shown.contains("(assembled at)\n"), || shown.clone())?;
    java.clean();
    Ok(())
}

/// The program's own lines below the innermost operator.
fn assembling_lines(row: &Value) -> String {
    let frames = row["frames"].as_array().into_iter().flatten();
    let below = frames.skip_while(|frame| frame["method"] != ASSEMBLED);
    let line = |frame: &Value| {
        let method = frame["method"].as_str()?;
        let method = match method.starts_with("lambda$") {
            true => "lambda",
            false => method,
        };
        (frame["class"] == PROGRAM).then(|| format!("{method}:{}", frame["line"]))
    };
    below.filter_map(line).collect::<Vec<_>>().join(";")
}
