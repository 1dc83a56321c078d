//! `lucce-opentelemetry` in an SDK that OpenTelemetry configures itself: a program says how many objects it makes for each request,
//! and checks the exported spans.

use std::collections::BTreeMap;

use lucce_tests::{Checked, Java, Setup, ensure};

use crate::{Test, test};

const PROGRAM: &str = "io.lucce.opentelemetry.run.SpansRun";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    // The artifact knows no JDK: one suffices.
    let name = format!("spans::{}", setup.jdk().version);
    vec![test(name, false, move || check(setup))]
}

fn check(setup: &Setup) -> Checked {
    let target = setup.harness.join("artifacts/opentelemetry/target");
    let target = target.display();
    let java = Java::new(setup, setup.jdk(), "spans")
        .class_path(format!(
            "{target}/test-classes:{target}/classes:{target}/lib/*"
        ))
        .agent("events=alloc,verify=101")
        .flags(["-XX:TieredStopAtLevel=1"])
        .main([PROGRAM]);
    let ended = java.run()?.expect(0)?;
    ended.ensure(ended.last_line() == "OK", "the spans are right")?;
    let expected: BTreeMap<String, u64> = ended.stdout.lines().filter_map(parse_expected).collect();
    ended.ensure(expected.len() == 6, "the program says what to expect")?;
    java.lucce().check(&java.log())?;
    let log = java.log().display().to_string();
    let report = java.lucce().json(&[
        "report",
        "--json",
        "--top",
        "0",
        "--by",
        "request",
        "--type",
        r"SpansRun\$Marker",
        &log,
    ])?;
    let rows = report["rows"].as_array().ok_or("no rows")?;
    let found: BTreeMap<String, u64> = rows
        .iter()
        .filter_map(|row| Some((row["name"].as_str()?.to_owned(), row["count"].as_u64()?)))
        .collect();
    ensure(found == expected, || {
        format!("expected {expected:?}, found {found:?}")
    })?;
    java.clean();
    Ok(())
}

/// `request#objects`
fn parse_expected(line: &str) -> Option<(String, u64)> {
    let (request, objects) = line.rsplit_once('#')?;
    Some((request.to_owned(), objects.parse().ok()?))
}
