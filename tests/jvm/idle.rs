//! `events=lock`: waits of threads that have nothing to do are apart, and those of a task that runs in such a thread are not.

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};
use serde_json::Value;

use crate::{Test, test};

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let of = |jdk: &'static Jdk| {
        let name = format!("idle::{}", jdk.version);
        test(name, jdk == setup.jdk(), move || check(setup, jdk))
    };
    setup.jdks.iter().map(of).collect()
}

const POOL: &str = "java.util.concurrent.ThreadPoolExecutor.getTask";
const DELAYS: &str = "java.util.concurrent.DelayScheduler.loop";
const TIMER: &str = "java.util.TimerThread.mainLoop";
const RECORDER: &str = "jdk.jfr.internal.PlatformRecorder.takeNap";

fn check(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("idle-{}", jdk.version))
        .agent("events=lock")
        .main(["IdleThreads"]);
    java.run()?.expect(0)?;
    let log = java.log().to_string_lossy().into_owned();
    let report = |more: &[&str]| {
        let args = ["report", "--json", "--top", "0", "--event", "lock", &log];
        java.lucce().json(&[&args[..], more].concat())
    };
    let (busy, all) = (report(&[])?, report(&["--idle"])?);
    for row in rows(&busy) {
        let is_own = frames(row).any(|frame| frame.starts_with("IdleThreads"));
        let mut frames = frames(row);
        let waits = frames.any(|frame| [POOL, DELAYS, TIMER, RECORDER].contains(&&*frame));
        ensure(is_own || !waits, || format!("idle, and listed: {row}"))?;
    }
    // The task waits in the timer's thread, and is busy.
    let task = |row: &Value| frames(row).any(|frame| frame == "IdleThreads$Task.run");
    ensure(rows(&busy).any(task), || {
        format!("no wait of the timer's task in {busy}")
    })?;
    // Without this the test would pass if nobody waited.
    let delays = match jdk.version {
        25.. => DELAYS,
        _ => POOL,
    };
    for idle in [POOL, delays, TIMER] {
        let waits = |row: &Value| frames(row).any(|frame| frame == idle);
        ensure(rows(&all).any(waits), || format!("no wait in {idle}"))?;
    }
    let count = |of: &Value| of["count"].as_u64().unwrap_or_default();
    let apart = count(&busy["totals"]) + count(&busy["idle"]);
    ensure(apart == count(&all["totals"]), || {
        format!("{apart} events are not all of {}", all["totals"])
    })?;
    java.clean();
    Ok(())
}

fn rows(report: &Value) -> impl Iterator<Item = &Value> {
    report["contexts"].as_array().into_iter().flatten()
}

fn frames(row: &Value) -> impl Iterator<Item = String> {
    let frames = row["frames"].as_array().into_iter().flatten();
    frames.map(|frame| {
        let text = |key: &str| frame[key].as_str().unwrap_or_default().to_owned();
        format!("{}.{}", text("class"), text("method"))
    })
}
