//! Logs that cannot be written to their end: the program goes on, and what was lost is told.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use lucce_tests::{Checked, Ended, Java, PATIENCE, Setup, ensure};

use crate::containers::is_root;
use crate::running::Running;
use crate::{Test, test};

const LIMIT: &str = "limit=, or the system's limit of a file's size, was reached";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    vec![
        test("loss::limit", true, || limit(setup)),
        test("loss::file_size_limit_of_the_system", false, || {
            file_size(setup)
        }),
        test("loss::full_disk", false, || disk(setup)),
        test("loss::told_while_it_runs", false, || {
            told_while_it_runs(setup)
        }),
        test("loss::killed", true, || killed(setup)),
    ]
}

fn limit(setup: &Setup) -> Checked {
    let java = Java::new_light(setup, setup.jdk(), "limit");
    let java = java
        .agent("events=alloc,limit=64k")
        .main(["io.lucce.programs.Counts", "1000"]);
    let ended = java.run()?.expect(0)?;
    let worked = ended.stdout.contains("io.lucce.programs.Counts$Small");
    ended.ensure(worked, "the program did its work")?;
    loss_is_told(&java, &ended, LIMIT)?;
    let size = fs::metadata(java.log()).map_err(|e| e.to_string())?.len();
    ended.ensure(size <= 64 << 10, &format!("the log has {size} bytes"))?;
    java.clean();
    Ok(())
}

/// As when a quota is used up: writes beyond fail. javac compiles nevertheless.
fn file_size(setup: &Setup) -> Checked {
    let java = compiling(setup, "file-size", "events=alloc");
    let mut shell = Command::new("bash");
    shell.args(["-c", "ulimit -f 2000; exec \"$@\"", "bash"]);
    compiles(setup, &java, shell, LIMIT)
}

/// The log lies on a file system of its own, of 2 MB, which ends with the JVM.
fn disk(setup: &Setup) -> Checked {
    let java = compiling(setup, "disk", "events=alloc,out=disk/run.lucce");
    let mut shell = Command::new("unshare");
    if !is_root()? {
        shell.arg("--map-root-user");
    }
    let script = "set -e
mount --make-rprivate /
mkdir -p disk
mount -t tmpfs -o size=2000k lucce disk
\"$@\"
cp disk/run.lucce run.lucce";
    shell.args(["--mount", "sh", "-c", script, "sh"]);
    compiles(setup, &java, shell, "the disk had no more room")
}

fn compiling<'a>(setup: &'a Setup, name: &str, options: &str) -> Java<'a> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("java/Forever.java");
    let javac = ["com.sun.tools.javac.Main", "-d", "."].map(OsStr::new);
    Java::new_light(setup, setup.jdk(), name)
        .agent(options)
        .main(javac.into_iter().chain([source.as_os_str()]))
}

/// The log gets full in `shell`, for this reason, and javac compiles nevertheless.
fn compiles(setup: &Setup, java: &Java, mut shell: Command, why: &str) -> Checked {
    shell.arg(setup.jdk().tool("java"));
    let ended = java.run_as(&mut shell, &java.arguments())?.expect(0)?;
    let compiled = java.folder().join("Forever.class").exists();
    ended.ensure(compiled, "the program did its work")?;
    loss_is_told(java, &ended, why)?;
    java.clean();
    Ok(())
}

fn loss_is_told(java: &Java, ended: &Ended, why: &str) -> Checked {
    let told = ended.agent_lines().iter().any(|line| line.contains("lost"));
    ended.ensure(told, "the agent says what was lost")?;
    let log = java.log();
    let report = java.lucce().text(0, &["report", &log.to_string_lossy()])?;
    let is_told = report.contains(" lost") && !report.contains("none lost");
    ensure(is_told, || {
        format!("the report says what was lost:\n{report}")
    })?;
    let why = format!("the log is full: {why}");
    let said = ended.stderr.matches(&why).count();
    ended.ensure(said == 1, "the agent says once why events are lost")?;
    let stats = java.lucce().stats(&log)?;
    let warnings = stats["warnings"].as_array().into_iter().flatten();
    let is_there = warnings
        .filter_map(|text| text.as_str())
        .any(|text| text.contains(&why));
    ensure(is_there, || {
        format!("stats says why events are lost:\n{stats}")
    })
}

/// What the log has no room on is told while the JVM runs, and not once more at its end.
fn told_while_it_runs(setup: &Setup) -> Checked {
    let mut jvm = Running::start(setup, setup.jdk(), "told-full", "events=alloc,limit=64k")?;
    jvm.until("lucce ctl says that the log is full", |jvm| {
        let status = jvm.ctl(&["status"])?;
        let is_lossy = status["lost"].as_u64().is_some_and(|lost| lost > 0);
        Ok(is_lossy && status["log"]["full"] == "limit")
    })?;
    jvm.until("standard error says that the log is full", |jvm| {
        Ok(jvm.java.printed("stderr").contains(LIMIT))
    })?;
    let java = jvm.end()?;
    loss_is_told(&java, &java.so_far(), LIMIT)?;
    java.clean();
    Ok(())
}

fn killed(setup: &Setup) -> Checked {
    let java = Java::new_light(setup, setup.jdk(), "killed");
    let java = java.agent("events=alloc").main(["Forever"]);
    let mut child = java.spawn()?;
    let started = Instant::now();
    while !java.printed("stdout").contains("working") && started.elapsed() < PATIENCE {
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
        .text(0, &["report", "--type", "^Forever", "--top", "3", &log])?;
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
        .json(&["report", "--json", "--type", "^Forever", &log])?;
    let recorded = totals["totals"]["count"].as_u64().unwrap_or(0);
    ensure(made > 0 && recorded >= made, || {
        format!("{made} objects were made, {recorded} recorded")
    })?;
    java.lucce().text(0, &["check", &log])?;
    java.clean();
    Ok(())
}
