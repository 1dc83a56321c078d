//! `lucce explain` names the four faults of the shop, each with its line: with the agent from the start, and attached. Of a
//! program with one method for each fault it names each; of the same work without the faults it names nothing.

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
    // A run-time image may lack the HTTP server.
    let faults = jdks.clone().filter(|jdk| jdk.has_module("jdk.httpserver"));
    let faults = faults.flat_map(|jdk| {
        let name = |class: &str| format!("explain::{}::{class}", jdk.version);
        [
            test(name("faults"), false, move || finds_each_fault(setup, jdk)),
            test(name("clients"), false, move || {
                finds_repeated_calls(setup, jdk)
            }),
            test(name("cures"), false, move || finds_nothing(setup, jdk)),
        ]
    });
    let faults: Vec<_> = faults.collect();
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
    tests.chain(faults).collect()
}

/// Detector, method of `Faults`, and words of the finding.
const SMALL_FAULTS: [(&str, &str, &str); 22] = [
    ("allocations", "box", "boxed numbers: "),
    ("allocations", "iterate", "iterators: "),
    ("allocations", "capture", "capturing lambdas: "),
    ("allocations", "format", "String.format: "),
    ("allocations", "add", "BigDecimal and BigInteger: "),
    ("allocations", "grow", "growing collections: "),
    ("allocations", "fillMap", "growing collections: "),
    ("allocations", "join", "argument arrays: "),
    ("allocations", "emptyArray", "arrays without elements: "),
    ("allocations", "emptyList", "collections that stay empty: "),
    ("allocations", "buffer", "large arrays: 16 objects"),
    ("allocations", "compilePattern", "150 patterns compiled"),
    ("allocations", "formatDate", "150 formats built"),
    ("allocations", "makeMapper", "150 JSON mappers built"),
    ("allocations", "makePool", "150 thread pools built"),
    ("threads", "startThread", "150 threads started"),
    (
        "exceptions",
        "parse",
        "150 × java.lang.NumberFormatException thrown, caught and dropped at ",
    ),
    ("classes", "defineClasses", " hidden classes defined"),
    ("gc", "collect", "6 calls of System.gc()"),
    (
        "logging",
        "log",
        " calls of java.util.logging.Logger.fine that print nothing",
    ),
    ("lock", "hold", " waits for java.lang.Object: "),
    ("threads", "makePool", "150 threads started"),
];

/// The pages with calls of each client: 5 calls for each of 30 runs.
const PAGES: [(&str, &str); 6] = [
    ("JdkPage", "HTTP"),
    ("UrlPage", "HTTP"),
    ("ApachePage", "HTTP"),
    ("OkPage", "HTTP"),
    ("JedisPage", "cache"),
    ("LettucePage", "cache"),
];

/// The events that all detectors need.
const ALL_EVENTS: &str =
    "events=alloc+exception+lock+thread+io+class+call:loggers+java.lang.System.gc";

fn explain_program<'s>(
    setup: &'s Setup,
    jdk: &'s Jdk,
    events: &str,
    main: &[&str],
) -> Result<(Java<'s>, Value), String> {
    let apps = setup.harness.join("apps/target/apps.jar");
    let name = main.join("-");
    let class = format!("io.lucce.apps.faults.{}", main[0]);
    let java = Java::new_light(setup, jdk, &format!("explain-{}-{name}", jdk.version))
        .agent(events)
        .flags(["-Xmx256m"])
        .class_path(apps.to_string_lossy().into_owned())
        .main([&[&*class], &main[1..]].concat());
    java.run()?.expect(0)?;
    let log = java.log();
    let explained =
        java.lucce()
            .json(&["explain", &log.to_string_lossy(), "--json", "--top", "0"])?;
    Ok((java, explained))
}

fn has_finding(
    explained: &Value,
    detector: &str,
    (class, method): (&str, &str),
    words: &str,
) -> bool {
    let findings = explained["findings"].as_array().into_iter().flatten();
    findings.into_iter().any(|finding| {
        finding["detector"] == detector
            && finding["frame"]["class"] == format!("io.lucce.apps.faults.{class}")
            && finding["frame"]["method"] == method
            && finding["finding"]
                .as_str()
                .is_some_and(|text| text.contains(words))
    })
}

/// Real clients of HTTP servers and of Redis. Pages that make one call each are no finding.
fn finds_repeated_calls(setup: &Setup, jdk: &Jdk) -> Checked {
    let (java, explained) = explain_program(setup, jdk, "events=alloc", &["RemotePages", "apart"])?;
    for (page, calls) in PAGES {
        let class = format!("RemotePages${page}");
        let words =
            format!("150 {calls} calls for 30 runs of io.lucce.apps.faults.{class}.run: 5.0 each");
        ensure(
            has_finding(&explained, "n+1", (&class, "load"), &words),
            || format!("{words}: {explained:#}"),
        )?;
    }
    java.clean();
    let (java, explained) =
        explain_program(setup, jdk, "events=alloc", &["RemotePages", "together"])?;
    let findings = explained["findings"].as_array().ok_or("no findings")?;
    ensure(
        findings.iter().all(|finding| finding["detector"] != "n+1"),
        || format!("{explained:#}"),
    )?;
    java.clean();
    Ok(())
}

fn finds_each_fault(setup: &Setup, jdk: &Jdk) -> Checked {
    let (java, explained) = explain_program(setup, jdk, ALL_EVENTS, &["Faults"])?;
    let missing: Vec<_> = SMALL_FAULTS
        .iter()
        .filter(|(detector, method, words)| {
            !has_finding(&explained, detector, ("Faults", method), words)
        })
        .collect();
    ensure(missing.is_empty(), || {
        format!("{missing:#?}: {explained:#}")
    })?;
    // The handler's line, by the source.
    let source = setup
        .harness
        .join("apps/src/main/java/io/lucce/apps/faults/Faults.java");
    let source = std::fs::read_to_string(&source).map_err(|e| e.to_string())?;
    let line = source
        .lines()
        .position(|line| line.contains("catch (NumberFormatException"));
    let line = line.ok_or("no handler in the source")? + 1;
    let words = format!("dropped at io.lucce.apps.faults.Faults.parse(Faults.java:{line})");
    ensure(
        has_finding(&explained, "exceptions", ("Faults", "parse"), &words),
        || format!("{words}: {explained:#}"),
    )?;
    java.clean();
    Ok(())
}

fn finds_nothing(setup: &Setup, jdk: &Jdk) -> Checked {
    let (java, explained) = explain_program(setup, jdk, ALL_EVENTS, &["Cures"])?;
    let findings = explained["findings"].as_array().ok_or("no findings")?;
    ensure(findings.is_empty(), || format!("{explained:#}"))?;
    let text = java
        .lucce()
        .text(0, &["explain", &java.log().to_string_lossy()])?;
    let words = "nothing stands out: the largest own line has ";
    ensure(text.contains(words), || text.clone())?;
    java.clean();
    Ok(())
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
    explain_log(&java, &log, start)?;
    java.clean();
    Ok(())
}

/// Explains the JVM for a while. The findings name the faults.
fn explain_jvm(jvm: &Running, (pid, log): (&str, &Path), start: AgentStart) -> Checked {
    let log = log.to_string_lossy();
    let time = match start {
        AgentStart::WithJvm => "10s",
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
            .text(0, &["top", pid, "--once", "--interval", "5s"])?;
        ensure(text.lines().count() <= 50, || format!("too long:\n{text}"))?;
        for (_, method, _) in FAULTS {
            ensure(text.contains(method), || format!("no {method}:\n{text}"))?;
        }
    }
    Ok(())
}

/// Explains the log as text, which fits a screen. The page of the attached agent's log, the smaller one, names the same lines.
fn explain_log(java: &Java<'_>, log: &Path, start: AgentStart) -> Checked {
    let log = log.to_string_lossy();
    let text = java.lucce().text(0, &["explain", &log])?;
    ensure(text.lines().count() <= 60, || format!("too long:\n{text}"))?;
    for (_, method, _) in FAULTS {
        ensure(text.contains(method), || format!("no {method}:\n{text}"))?;
    }
    if start == AgentStart::WithJvm {
        return Ok(());
    }
    let page = java.folder().join("explain.html");
    let page_name = page.to_string_lossy();
    java.lucce().text(0, &["explain", &log, "-o", &page_name])?;
    let page = std::fs::read_to_string(&page).map_err(|e| e.to_string())?;
    for (_, method, _) in FAULTS {
        ensure(page.contains(method), || {
            format!("{method} is not named:\n{page}")
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
