//! How much of what the VM says that threads allocated is counted, in words and numbers.

use std::ops::RangeInclusive;

use lucce_tests::{Checked, Java, Jdk, Lucce, Setup, ensure};
use serde_json::Value;

use crate::running::Running;
use crate::{Test, test};

/// What each thread of `CoverageBytes` makes.
const BYTES: u64 = 40_000 * 1_000;

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        let name = |what: &str| format!("coverage::{}::{what}", jdk.version);
        let quick = jdk == setup.jdk();
        tests.push(test(name("threads"), quick, move || threads(setup, jdk)));
        tests.push(test(name("killed"), false, move || killed(setup, jdk)));
        tests.push(test(name("attached"), false, move || attached(setup, jdk)));
        if jdk.version >= 21 {
            tests.push(test(name("virtual"), false, move || {
                virtual_threads(setup, jdk)
            }));
        }
    }
    tests.extend([
        test("coverage::sampled", false, move || sampled(setup)),
        test("coverage::escape_analysis", false, move || escape(setup)),
        test("coverage::incomparable", true, move || incomparable(setup)),
        test("coverage::stopped", false, move || stopped(setup)),
    ]);
    tests
}

fn covered<'a>(setup: &'a Setup, jdk: &'a Jdk, how: &str, options: &str) -> Java<'a> {
    let name = format!("coverage-{how}-{}-{}", jdk.version, options.len());
    let java = Java::new(setup, jdk, &name).agent(options);
    java.main(["Covered", how])
}

fn stats(lucce: Lucce, log: &str) -> Result<Value, String> {
    lucce.stats(log)
}

/// The numbers of a thread; of all together: no name.
fn is_within(coverage: &Value, thread: Option<&str>, percent: RangeInclusive<f64>) -> Checked {
    let of = match thread {
        None => Some(coverage),
        Some(name) => coverage["threads"]
            .as_array()
            .and_then(|all| all.iter().find(|row| row["thread"] == name)),
    };
    let found = of.and_then(|row| row["percent"].as_f64());
    ensure(found.is_some_and(|found| percent.contains(&found)), || {
        format!("{thread:?}: {found:?}% where {percent:?} was expected: {coverage}")
    })
}

fn bytes_of(coverage: &Value, thread: &str, key: &str) -> u64 {
    let threads = coverage["threads"].as_array();
    let row = threads.and_then(|all| all.iter().find(|row| row["thread"] == thread));
    row.and_then(|row| row[key].as_u64()).unwrap_or(0)
}

fn threads(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = covered(setup, jdk, "threads", "events=alloc").flags(["-Xint"]);
    java.run()?.expect(0)?;
    let log = java.log();
    let log = &*log.to_string_lossy();
    let coverage = stats(java.lucce(), log)?["coverage"].clone();
    is_within(&coverage, None, 97.0..=100.5)?;
    is_within(&coverage, Some("main"), 90.0..=100.5)?;
    let workers: u64 = ["worker-*", "worker-0", "worker-1", "worker-2", "worker-3"]
        .iter()
        .map(|name| bytes_of(&coverage, name, "allocated"))
        .sum();
    ensure(
        (4 * BYTES..4 * BYTES + BYTES / 4).contains(&workers),
        || format!("threads that ended have {workers} bytes: {coverage}"),
    )?;
    is_within(&coverage, Some("worker-*"), 99.5..=100.5)?;
    let words = "of the bytes that the VM allocated";
    for verb in ["stats", "report"] {
        let text = java.lucce().text(0, &[verb, log])?;
        ensure(text.contains(words), || format!("{verb}: {text}"))?;
    }
    let report = java.lucce().json(&["report", "--json", log])?;
    ensure(report["coverage"]["percent"] == coverage["percent"], || {
        format!("report: {}, stats: {coverage}", report["coverage"])
    })?;
    // A part of the classes cannot be compared with all that the VM allocated.
    let part = java
        .lucce()
        .json(&["report", "--json", "--include", "Covered", log])?;
    ensure(part["coverage"].is_null(), || part["coverage"].to_string())?;
    java.clean();
    Ok(())
}

fn virtual_threads(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = covered(setup, jdk, "virtual", "events=alloc").flags(["-Xint"]);
    java.run()?.expect(0)?;
    let coverage = stats(java.lucce(), &java.log().to_string_lossy())?["coverage"].clone();
    let together = "virtual threads and their carriers";
    is_within(&coverage, Some(together), 99.5..=100.5)?;
    let bytes = bytes_of(&coverage, together, "allocated");
    ensure(bytes > 8 * BYTES, || format!("{bytes}: {coverage}"))?;
    java.clean();
    Ok(())
}

fn killed(setup: &Setup, jdk: &Jdk) -> Checked {
    let name = format!("coverage-killed-{}", jdk.version);
    // Code that is not compiled allocates what its bytecode says.
    let java = Java::new(setup, jdk, &name)
        .agent("events=alloc")
        .flags(["-Xint"])
        .main(["Forever"]);
    let mut jvm = Running::of(java)?;
    for _ in 0..5 {
        jvm.works_on()?;
    }
    let log = jvm.java.log();
    let log = &*log.to_string_lossy();
    jvm.until("the VM was asked of late", |jvm| {
        let stats = stats(jvm.java.lucce(), log)?;
        Ok(is_within(&stats["coverage"], Some("main"), 98.0..=100.5).is_ok())
    })?;
    jvm.child.kill().map_err(|e| e.to_string())?;
    jvm.child.wait().map_err(|e| e.to_string())?;
    let stats = stats(jvm.java.lucce(), log)?;
    let coverage = &stats["coverage"];
    ensure(stats["ended"] == false, || "killed".into())?;
    // What was counted by the last reading is compared, not what was counted until the end.
    is_within(coverage, Some("main"), 98.0..=100.5)?;
    ensure(coverage["reason"].is_null(), || coverage.to_string())?;
    ensure(
        coverage["asked"].as_u64() >= stats["start"].as_u64(),
        || format!("when the VM was asked: {coverage}"),
    )?;
    let text = jvm.java.lucce().text(0, &["report", log])?;
    ensure(
        text.contains("when it was last asked, ") && !text.contains("escape analysis"),
        || text.clone(),
    )?;
    jvm.java.clean();
    Ok(())
}

fn attached(setup: &Setup, jdk: &Jdk) -> Checked {
    let name = format!("coverage-attached-{}", jdk.version);
    let java = Java::new(setup, jdk, &name)
        .flags(["-Xint"])
        .main(["Forever"]);
    let mut jvm = Running::of(java)?;
    let (pid, log) = (jvm.child.id().to_string(), jvm.java.log());
    let log = &*log.to_string_lossy();
    let lucce = jvm.java.lucce();
    lucce.text(0, &["attach", &pid, "--out", log, "--opt", "alloc=all"])?;
    for _ in 0..5 {
        jvm.works_on()?;
    }
    jvm.ctl(&["detach"])?;
    // It goes on without the agent.
    jvm.works_on()?;
    let coverage = stats(lucce, log)?["coverage"].clone();
    // However long the agent takes to come and to leave while the thread goes on.
    is_within(&coverage, Some("main"), 99.9..=100.1)?;
    // No bytecode is counted, so no reason holds that is one of bytecode.
    ensure(coverage["reason"].is_null(), || coverage.to_string())?;
    jvm.child.kill().map_err(|e| e.to_string())?;
    jvm.child.wait().map_err(|e| e.to_string())?;
    jvm.java.clean();
    Ok(())
}

fn sampled(setup: &Setup) -> Checked {
    let java = covered(setup, setup.jdk(), "threads", "events=alloc=16k").flags(["-Xint"]);
    java.run()?.expect(0)?;
    let log = java.log();
    let coverage = stats(java.lucce(), &log.to_string_lossy())?["coverage"].clone();
    is_within(&coverage, None, 90.0..=110.0)?;
    ensure(coverage["estimated"] == true, || coverage.to_string())?;
    let text = java.lucce().text(0, &["report", &*log.to_string_lossy()])?;
    let said = text
        .lines()
        .find(|line| line.starts_with("counted: about "));
    let said = said.ok_or_else(|| text.clone())?;
    let samples = coverage["samples"].as_f64().unwrap_or(0.0);
    let expected = coverage["allocated"].as_f64().unwrap_or(0.0) / 16_384.0;
    // One every 16 KB, and what is said of exact counts does not hold.
    ensure(
        (0.9 * expected..1.1 * expected).contains(&samples)
            && expected > 8_000.0
            && said.contains(" samples, ±")
            && !said.contains("escape analysis")
            && !said.contains("by itself"),
        || format!("{said}: {coverage}"),
    )?;
    let error = coverage["error_percent"].as_f64().unwrap_or(0.0);
    ensure((1.5..3.0).contains(&error), || coverage.to_string())?;
    let is_fair = setup.jdk().version >= 25;
    ensure(text.contains("JDK-8356372") != is_fair, || text.clone())?;
    java.clean();
    Ok(())
}

fn escape(setup: &Setup) -> Checked {
    let java = covered(setup, setup.jdk(), "escape", "events=alloc");
    java.run()?.expect(0)?;
    let log = java.log();
    let coverage = stats(java.lucce(), &log.to_string_lossy())?["coverage"].clone();
    is_within(&coverage, Some("main"), 101.0..=1e9)?;
    let text = java.lucce().text(0, &["report", &*log.to_string_lossy()])?;
    ensure(text.contains("escape analysis"), || text.clone())?;
    java.clean();
    Ok(())
}

fn incomparable(setup: &Setup) -> Checked {
    for options in [
        "events=alloc,include=Covered",
        "events=alloc,instrument=app",
        "events=alloc,burst=1ms/10ms",
        "events=lock",
    ] {
        let java = covered(setup, setup.jdk(), "threads", options);
        java.run()?.expect(0)?;
        let log = java.log();
        let log = &*log.to_string_lossy();
        let found = stats(java.lucce(), log)?;
        let is_told = found["coverage"].is_null() && found["coverage_none"].is_string();
        ensure(is_told, || format!("{options}: {}", found["coverage"]))?;
        let text = java.lucce().text(0, &["report", log])?;
        ensure(!text.contains("that the VM allocated"), || text.clone())?;
        java.clean();
    }
    Ok(())
}

fn stopped(setup: &'static Setup) -> Checked {
    let mut jvm = Running::start(setup, setup.jdk(), "coverage-stopped", "events=alloc")?;
    let log = jvm.java.log();
    let log = &*log.to_string_lossy();
    let lucce = jvm.java.lucce();
    ensure(!stats(lucce, log)?["coverage"].is_null(), || {
        "a JVM that runs tells its coverage".into()
    })?;
    jvm.ctl(&["stop"])?;
    jvm.ctl(&["start"])?;
    jvm.works_on()?;
    let found = stats(lucce, log)?;
    let reason = found["coverage_none"].as_str().unwrap_or_default();
    ensure(
        found["coverage"].is_null() && reason.contains("stopped"),
        || format!("{reason}: {}", found["coverage"]),
    )?;
    jvm.child.kill().map_err(|e| e.to_string())?;
    jvm.child.wait().map_err(|e| e.to_string())?;
    jvm.java.clean();
    Ok(())
}
