//! `delay=`: counting begins when the program is ready, after a time, or by `lucce ctl`.

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};
use serde_json::Value;

use crate::running::Running;
use crate::{Test, test};

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        for events in ["alloc", "alloc+exception", "alloc,verify=1"] {
            let way = events.split([',', '+']).next_back().unwrap_or(events);
            let quick = jdk == setup.jdk() && way == "alloc";
            let name = format!("delays::{}::{way}", jdk.version);
            tests.push(test(name, quick, move || ready(setup, jdk, events)));
        }
    }
    tests.push(test("delays::never", false, move || never(setup)));
    tests.push(test("delays::time", false, move || time(setup)));
    tests
}

fn entries(report: &Value) -> u64 {
    let rows = report["contexts"].as_array().map_or(&[][..], Vec::as_slice);
    let own = rows.iter().filter(|row| row["class"] == "StartUp$Entry");
    own.filter_map(|row| row["count"].as_u64()).sum()
}

fn report(java: &Java<'_>) -> Result<(Value, String), String> {
    let log = java.log().to_string_lossy().into_owned();
    let lucce = java.lucce();
    let json = lucce.json(&["report", "--json", "--top", "0", "--event", "alloc", &log])?;
    Ok((json, lucce.text(0, &["report", "--event", "alloc", &log])?))
}

/// The program knows what it makes after it is ready.
fn ready(setup: &Setup, jdk: &Jdk, events: &str) -> Checked {
    let name = format!(
        "delays-{}-{}",
        jdk.version,
        events.replace([',', '+', '='], "-")
    );
    let java = Java::new_light(setup, jdk, &name);
    let java = java
        .agent(&format!("events={events},delay=ready"))
        .main(["StartUp"]);
    java.run()?.expect(0)?;
    let (json, text) = report(&java)?;
    ensure(entries(&json) == 37, || {
        format!("{} objects were counted, not 37", entries(&json))
    })?;
    let began = json["delay"]["began_ms"].as_u64().is_some();
    ensure(
        began && text.contains("s after the start on (delay=ready)"),
        || text,
    )?;
    if events.contains("verify") {
        java.lucce().check(&java.log())?;
    }
    java.clean();
    Ok(())
}

fn never(setup: &Setup) -> Checked {
    let java = Java::new_light(setup, setup.jdk(), "delays-never");
    let java = java.agent("events=alloc,delay=1h").main(["StartUp"]);
    java.run()?.expect(0)?;
    let (json, text) = report(&java)?;
    let is_empty = json["totals"]["count"] == 0 && json["delay"]["began_ms"].is_null();
    ensure(is_empty, || json.to_string())?;
    let note = "nothing was counted: the delay did not end (delay=1h)";
    ensure(text.contains(note), || text)?;
    java.clean();
    Ok(())
}

/// A time that passes, and a start by command before a time that does not.
fn time(setup: &'static Setup) -> Checked {
    let jdk = setup.jdk();
    let mut jvm = Running::start(setup, jdk, "delays-time", "delay=1ms,verify=101")?;
    jvm.until("counting begins", Running::counts)?;
    let java = jvm.end()?;
    java.lucce().check(&java.log())?;
    java.clean();

    let mut jvm = Running::start(setup, jdk, "delays-start", "delay=1h,verify=101")?;
    jvm.works_on()?;
    ensure(!jvm.counts()?, || {
        "it counts before the delay has ended".into()
    })?;
    jvm.ctl(&["start"])?;
    ensure(jvm.counts()?, || "nothing is counted after start".into())?;
    let java = jvm.end()?;
    let text = java
        .lucce()
        .text(0, &["report", &java.log().to_string_lossy()])?;
    ensure(text.contains("s after the start on (delay=1h)"), || text)?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}
