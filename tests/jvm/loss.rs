//! Logs that cannot be written to their end: the program goes on, and what was lost is told.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use lucce_tests::{Checked, Ended, Java, Setup, ensure};

use crate::{Test, test};

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    vec![
        test("loss::limit", true, || limit(setup)),
        test("loss::file_size_limit_of_the_system", false, || {
            file_size(setup)
        }),
        test("loss::killed", true, || killed(setup)),
    ]
}

fn limit(setup: &Setup) -> Checked {
    let java = Java::new(setup, setup.jdk(), "limit");
    let java = java
        .agent("events=alloc,limit=64k")
        .main(["io.lucce.programs.Counts", "1000"]);
    let ended = java.run()?.expect(0)?;
    let worked = ended.stdout.contains("io.lucce.programs.Counts$Small");
    ended.ensure(worked, "the program did its work")?;
    loss_is_told(&java, &ended)?;
    let size = fs::metadata(java.log()).map_err(|e| e.to_string())?.len();
    ended.ensure(size <= 64 << 10, &format!("the log has {size} bytes"))?;
    java.clean();
    Ok(())
}

/// As when a quota is used up: writes beyond fail. javac compiles all the same.
fn file_size(setup: &Setup) -> Checked {
    let java = Java::new(setup, setup.jdk(), "file-size");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("java/Forever.java");
    let javac = ["com.sun.tools.javac.Main", "-d", "."].map(OsStr::new);
    let java = java
        .agent("events=alloc")
        .main(javac.into_iter().chain([source.as_os_str()]));
    let mut shell = Command::new("bash");
    shell
        .args(["-c", "ulimit -f 2000; exec \"$@\"", "bash"])
        .arg(setup.jdk().tool("java"));
    let ended = java.run_as(&mut shell, &java.arguments())?.expect(0)?;
    let compiled = java.folder().join("Forever.class").exists();
    ended.ensure(compiled, "the program did its work")?;
    loss_is_told(&java, &ended)?;
    java.clean();
    Ok(())
}

fn loss_is_told(java: &Java, ended: &Ended) -> Checked {
    let told = ended.agent_lines().iter().any(|line| line.contains("lost"));
    ended.ensure(told, "the agent says what was lost")?;
    let log = java.log();
    let report = java.lucce().text(0, &["report", &log.to_string_lossy()])?;
    let is_told = report.contains(" lost") && !report.contains("none lost");
    ensure(is_told, || {
        format!("the report says what was lost:\n{report}")
    })?;
    let why = "the log is full: limit=, or the system's limit of a file's size, was reached";
    let is_said = ended.agent_lines().iter().any(|line| line.contains(why));
    ended.ensure(is_said, "the agent says why events are lost")?;
    let stats = java
        .lucce()
        .json(&["stats", "--json", &log.to_string_lossy()])?;
    let warnings = stats["warnings"].as_array().into_iter().flatten();
    let is_there = warnings
        .filter_map(|text| text.as_str())
        .any(|text| text.contains(why));
    ensure(is_there, || {
        format!("stats says why events are lost:\n{stats}")
    })
}

fn killed(setup: &Setup) -> Checked {
    let java = Java::new(setup, setup.jdk(), "killed");
    let java = java.agent("events=alloc").main(["Forever"]);
    let mut child = java.spawn()?;
    let started = Instant::now();
    while !java.printed("stdout").contains("working") && started.elapsed() < Duration::from_secs(60)
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    // SIGKILL: nothing of the agent runs after it.
    child
        .kill()
        .and_then(|()| child.wait())
        .map_err(|e| e.to_string())?;
    let log = java.log();
    let log = log.to_string_lossy();
    let report = java
        .lucce()
        .text(0, &["report", "--class", "^Forever", "--top", "3", &log])?;
    ensure(report.contains("was killed or still runs"), || {
        format!("no word of the kill:\n{report}")
    })?;
    ensure(report.contains("at Forever.work(Forever.java:"), || {
        format!("no trace:\n{report}")
    })?;
    // What the program had printed before, it had recorded before.
    let made = java.printed("stdout");
    let made: u64 = made
        .lines()
        .last()
        .and_then(|line| line.strip_prefix("working ")?.parse().ok())
        .unwrap_or(0);
    let totals = java
        .lucce()
        .json(&["report", "--json", "--class", "^Forever", &log])?;
    let recorded = totals["totals"]["count"].as_u64().unwrap_or(0);
    ensure(made > 0 && recorded >= made, || {
        format!("{made} objects were made, {recorded} recorded")
    })?;
    java.lucce().text(0, &["check", &log])?;
    java.clean();
    Ok(())
}
