//! `lucce explain` names the four faults of the shop, each with its line: with the agent from the start, and attached.

use std::path::Path;

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};
use serde_json::Value;

use crate::running::Running;
use crate::{Test, test};

/// Requests of each kind, more than are sent until the test ends the shop.
const REQUESTS: u64 = 1_000_000;
/// Recordings, one after the other, until the faults are named.
const ATTEMPTS: u32 = 4;
const OLDEST: u32 = 17;
const NEWEST: u32 = 25;

/// Detector, method and line.
const FAULTS: [(&str, &str, &[u64]); 4] = [
    ("leak", "io.lucce.shop.AuditTrail.record", &[16]),
    ("n+1", "io.lucce.shop.OrderService.itemTotal", &[31]),
    ("exceptions", "io.lucce.shop.PriceReader.cents", &[14]),
    ("lock", "io.lucce.shop.StockLedger", &[14, 20]),
];

/// How often an order is loaded, and how often a price is none, for each request of a total.
const QUERIES_PER_RUN: f64 = 20.0;
const EXCEPTIONS_PER_QUERY: f64 = 2.0;

#[derive(Clone, Copy, PartialEq, Eq)]
enum AgentStart {
    WithJvm,
    Attached,
}

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let jdks = setup.jdks.iter();
    let jdks = jdks.filter(|jdk| [OLDEST, NEWEST].contains(&jdk.version));
    let tests = jdks.flat_map(|jdk| {
        let of = |name: &str, start| {
            let name = format!("explain::{}::{name}", jdk.version);
            test(name, false, move || names_all_faults(setup, jdk, start))
        };
        [
            of("with-jvm", AgentStart::WithJvm),
            of("attached", AgentStart::Attached),
        ]
    });
    tests.collect()
}

fn names_all_faults(setup: &Setup, jdk: &Jdk, start: AgentStart) -> Checked {
    let jar = setup.harness.join("shop/target/shop.jar");
    let requests = format!("--shop.requests={REQUESTS}");
    let way = if start == AgentStart::WithJvm {
        "start"
    } else {
        "attached"
    };
    let mut java = Java::new(setup, jdk, &format!("explain-{}-{way}", jdk.version));
    if start == AgentStart::WithJvm {
        java = java.agent("events=alloc+exception+lock+thread+io+leak=4k");
    }
    // The program says when it starts to send requests.
    let log_start = "--logging.level.io.lucce.shop=INFO";
    let jar = jar.to_string_lossy();
    let java = java
        .flags(["-Xmx256m"])
        .main(["-jar", &jar, &requests, log_start]);
    let jvm = Running::with_words(java, "Started ShopApplication")?;
    let (pid, mut log) = (jvm.pid(), jvm.java.log());
    // On a busy machine the shop works off too little in the time of one recording: then another one tells.
    for attempt in 1.. {
        let named = explain_jvm(&jvm, (&pid, &log), start);
        match named {
            Ok(()) => break,
            Err(message) if attempt == ATTEMPTS => return Err(message),
            Err(_) if start == AgentStart::Attached => {
                log = jvm.java.log().with_extension(format!("{attempt}.lucce"));
            }
            Err(_) => {}
        }
    }
    // The shop keeps all processors busy.
    let java = jvm.end()?;
    explain_log(&java, &log)?;
    java.clean();
    Ok(())
}

/// Explains the JVM for a while. The findings name the faults.
fn explain_jvm(jvm: &Running, (pid, log): (&str, &Path), start: AgentStart) -> Checked {
    let log = log.to_string_lossy();
    let time = match start {
        AgentStart::WithJvm => "20s",
        // Samples need longer to be enough.
        AgentStart::Attached => "40s",
    };
    let args = [
        "explain", pid, "--for", time, "--gc", "--json", "--top", "0",
    ];
    let args = match start {
        AgentStart::WithJvm => args.to_vec(),
        AgentStart::Attached => [&args[..], &["--log", &log]].concat(),
    };
    let explained = jvm.lucce().json(&args)?;
    check_findings(&explained, start)?;
    if start == AgentStart::WithJvm {
        // The first screen of what happens now names the same lines.
        let text = jvm
            .lucce()
            .text(0, &["top", pid, "--once", "--interval", "10s"])?;
        ensure(text.lines().count() <= 50, || format!("too long:\n{text}"))?;
        for (_, method, _) in FAULTS {
            ensure(text.contains(method), || format!("no {method}:\n{text}"))?;
        }
    }
    Ok(())
}

/// Explains the log as text and as a page. The text fits a screen, and the page names the same lines.
fn explain_log(java: &Java<'_>, log: &Path) -> Checked {
    let log = log.to_string_lossy();
    let text = java.lucce().text(0, &["explain", &log])?;
    ensure(text.lines().count() <= 60, || format!("too long:\n{text}"))?;
    let page = java.folder().join("explain.html");
    let page_name = page.to_string_lossy();
    java.lucce().text(0, &["explain", &log, "-o", &page_name])?;
    let page = std::fs::read_to_string(&page).map_err(|e| e.to_string())?;
    for (_, method, _) in FAULTS {
        ensure(text.contains(method) && page.contains(method), || {
            format!("{method} is not named:\n{text}\n{page}")
        })?;
    }
    Ok(())
}

fn check_findings(explained: &Value, start: AgentStart) -> Checked {
    let findings = explained["findings"].as_array().ok_or("no findings")?;
    let mut counts = Vec::new();
    for (detector, method, lines) in FAULTS {
        let finding = findings.iter().find(|finding| {
            let frame = &finding["frame"];
            let name = format!(
                "{}.{}",
                frame["class"].as_str().unwrap_or_default(),
                frame["method"].as_str().unwrap_or_default()
            );
            let is_line = frame["line"]
                .as_u64()
                .is_some_and(|line| lines.contains(&line));
            finding["detector"] == detector && name.starts_with(method) && is_line
        });
        let finding = finding.ok_or_else(|| format!("no {detector} at {method}: {explained:#}"))?;
        counts.push(finding["count"].as_f64().unwrap_or_default());
    }
    // Each query brings four items, two of them without a price. Requests under way count in part; estimates are rough.
    let tolerance = if start == AgentStart::WithJvm {
        0.05
    } else {
        0.6
    };
    let ratio = counts[2] / counts[1] / EXCEPTIONS_PER_QUERY;
    ensure((ratio - 1.0).abs() <= tolerance, || {
        format!("{counts:?}: exceptions are not twice the queries: {explained:#}")
    })?;
    if start == AgentStart::Attached {
        return Ok(());
    }
    let n_plus_one = findings.iter().find(|finding| finding["detector"] == "n+1");
    let sentence = n_plus_one
        .and_then(|finding| finding["finding"].as_str())
        .unwrap_or_default();
    let each = sentence
        .rsplit_once(": ")
        .and_then(|(_, each)| each.strip_suffix(" each"));
    let each: f64 = each.and_then(|each| each.parse().ok()).unwrap_or_default();
    ensure((each - QUERIES_PER_RUN).abs() <= 1.0, || {
        format!("{sentence}, not {QUERIES_PER_RUN} each")
    })
}
