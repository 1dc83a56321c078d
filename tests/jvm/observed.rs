//! A Spring Boot program with Actuator and Micrometer under OpenTelemetry's Java agent, all with lucce's artifacts at once: numbers
//! decode, meters, spans, tags and requests have the known counts.

use std::collections::BTreeMap;

use lucce_tests::{Checked, Ended, Java, Jdk, Setup, ensure};
use serde_json::Value;

use crate::{Test, test};

/// As in `ObservedApplication.java` and `OrderController.java`, with the headers of arrays.
const REQUESTS: u64 = 20;
const ORDER_BYTES: u64 = 100_016;
const CHECK_BYTES: u64 = 1_016;
const ROUTE: &str = "GET /orders/{id}";
const CONTROLLER: &str = "io.lucce.observed.OrderController";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let name = format!("observed::{}", setup.jdk().version);
    vec![test(name, false, move || {
        check_observed(setup, setup.jdk())
    })]
}

fn check_observed(setup: &Setup, jdk: &Jdk) -> Checked {
    let harness = setup.harness.display();
    let target = format!("{harness}/observed/target");
    let extension = format!(
        "{harness}/artifacts/opentelemetry/target/lucce-opentelemetry-{}-extension.jar",
        env!("CARGO_PKG_VERSION")
    );
    let java = Java::new(setup, jdk, &format!("observed-{}", jdk.version))
        // The start of the frameworks would be most of the work.
        .agent(
            "events=alloc+lock+open,requests=auto,delay=ready,verify=101,app=io.lucce.observed.*",
        )
        .flags([
            format!("-javaagent:{harness}/agents/target/lib/opentelemetry-javaagent.jar"),
            format!("-Dotel.javaagent.extensions={extension}"),
            "-Dotel.traces.exporter=logging".to_owned(),
            "-Dotel.metrics.exporter=none".to_owned(),
            "-Dotel.logs.exporter=none".to_owned(),
            // What the program needs, so that it starts sooner.
            "-Dotel.instrumentation.common.default-enabled=false".to_owned(),
            "-Dotel.instrumentation.tomcat.enabled=true".to_owned(),
            "-Dotel.instrumentation.spring-webmvc.enabled=true".to_owned(),
            "-XX:TieredStopAtLevel=1".to_owned(),
        ])
        .class_path(format!("{target}/classes:{target}/lib/*"))
        .main([
            "io.lucce.observed.ObservedApplication",
            &format!("--lucce.command={}", setup.lucce.display()),
        ]);
    let ended = java.run()?.expect(0)?;
    ended.ensure(ended.last_line() == "OK", "the handlers counted right")?;
    java.lucce().check(&java.log())?;
    let log = java.log().display().to_string();
    let stats = java.lucce().stats(&log)?;
    for key in ["verify.mismatches", "events.lost", "agent.panics"] {
        let count = &stats["agent"][key];
        ensure(*count == 0, || format!("{key}: {count}"))?;
    }
    check_endpoint(&ended)?;
    check_spans(&java, &ended)?;
    check_meters(&java, &ended)?;
    check_tags(&java)?;
    java.clean();
    Ok(())
}

/// The lines of standard output that begin with this word, without it.
fn printed<'e>(ended: &'e Ended, word: &str) -> Vec<&'e str> {
    let lines = ended.stdout.lines();
    lines
        .filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '))
        .collect()
}

fn check_endpoint(ended: &Ended) -> Checked {
    for (word, key) in [("STATUS", "recorded"), ("EXPLAIN", "findings")] {
        let [text] = printed(ended, word)[..] else {
            return Err(ended.text());
        };
        let answer: Value = serde_json::from_str(text).map_err(|e| format!("{e}: {text}"))?;
        ensure(!answer[key].is_null(), || format!("no {key}: {text}"))?;
    }
    Ok(())
}

/// Each request has one span of the server. It has a number that decodes, and what its thread has allocated.
fn check_spans(java: &Java<'_>, ended: &Ended) -> Checked {
    let begin = format!("'{ROUTE}' : ");
    let spans = ended.stderr.lines().filter(|line| line.contains(&begin));
    let spans: Vec<_> = spans.filter(|line| line.contains(" SERVER ")).collect();
    ensure(spans.len() as u64 == REQUESTS, || {
        format!("{} spans: {}", spans.len(), ended.text())
    })?;
    for span in &spans {
        let bytes =
            attribute(span, "lucce.allocated.bytes").and_then(|text| text.parse::<u64>().ok());
        let least = ORDER_BYTES + CHECK_BYTES;
        ensure(bytes >= Some(least), || {
            format!("{bytes:?} bytes, not {least} or more: {span}")
        })?;
        ensure(attribute(span, "lucce.waits").is_some(), || {
            (*span).to_owned()
        })?;
    }
    let number = spans
        .first()
        .and_then(|span| attribute(span, "lucce.context"));
    let number = number.ok_or("no number")?;
    let log = java.log().display().to_string();
    let trace = java.lucce().text(0, &["decode", &log, number])?;
    ensure(trace.contains("LucceSpanProcessor.onStart"), || trace)
}

/// The value of `key=value` in the text of attributes.
fn attribute<'s>(span: &'s str, key: &str) -> Option<&'s str> {
    let (_, rest) = span.split_once(&format!("{key}="))?;
    let value = rest.split([',', '}']).next()?;
    Some(value.trim_matches('"'))
}

/// The meter of a handler's line has what the log has: no request comes after the meters were read.
fn check_meters(java: &Java<'_>, ended: &Ended) -> Checked {
    let meters: BTreeMap<&str, f64> = printed(ended, "METRIC")
        .into_iter()
        .filter_map(|line| line.rsplit_once(' '))
        .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
        .collect();
    let log = java.log().display().to_string();
    for (method, bytes) in [("order", ORDER_BYTES), ("check", CHECK_BYTES)] {
        let through = format!("{CONTROLLER}.{method}").replace('.', r"\.");
        let report = java.lucce().json(&[
            "report",
            "--json",
            "--top",
            "0",
            "--by",
            "line",
            "--type",
            r"byte\[\]",
            "--through",
            &through,
            &log,
        ])?;
        let line = report["rows"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|row| row["own"].as_u64() == Some(REQUESTS * bytes));
        let line = line.and_then(|row| row["name"].as_str());
        let line = line.ok_or_else(|| format!("no line of {method}: {report}"))?;
        let meter = meters.iter().find(|(name, _)| {
            name.starts_with("lucce_line_allocated_bytes_total{") && name.contains(line)
        });
        ensure(
            meter.is_some_and(|(_, value)| *value >= (REQUESTS * bytes) as f64),
            || format!("{line}: {meters:?}"),
        )?;
    }
    for name in [
        "lucce_allocated_bytes_total",
        "lucce_events_lost_total",
        "lucce_resources_open",
    ] {
        ensure(meters.contains_key(name), || {
            format!("no {name}: {meters:?}")
        })?;
    }
    Ok(())
}

/// All arrays of an observation are under its tag, and all requests under their route.
fn check_tags(java: &Java<'_>) -> Checked {
    let log = java.log().display().to_string();
    let report = java.lucce().json(&[
        "report",
        "--json",
        "--top",
        "0",
        "--tag",
        "observation=order.check",
        "--type",
        r"byte\[\]",
        "--through",
        r"OrderController\.check",
        &log,
    ])?;
    let rows = report["contexts"].as_array().ok_or("no contexts")?;
    let arrays: u64 = rows.iter().filter_map(|row| row["count"].as_u64()).sum();
    ensure(arrays == REQUESTS, || format!("{arrays} arrays: {report}"))?;
    let report = java.lucce().json(&[
        "report", "--json", "--top", "0", "--event", "request", "--by", "request", &log,
    ])?;
    let rows = report["rows"].as_array().ok_or("no rows")?;
    let route = rows.iter().find(|row| row["name"] == ROUTE);
    let requests = route.and_then(|row| row["count"].as_u64());
    ensure(requests == Some(REQUESTS), || format!("requests: {report}"))
}
