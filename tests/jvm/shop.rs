//! A Spring Boot program in one jar: class loaders of its own, proxies, generated classes and a server. Traces equal the
//! VM's, the fault that throws exceptions is counted exactly, and so are requests by their patterns. Reports name the guilty
//! lines on their first screen.

use std::collections::BTreeMap;
use std::path::Path;

use lucce_tests::{Checked, Java, Jdk, Lucce, Setup, ensure};
use serde_json::json;

use crate::{Test, test};

/// Requests of each kind.
const REQUESTS: u64 = 20;
/// The kinds of requests, by the patterns of their handlers.
const PATTERNS: [&str; 3] = [
    "GET /customers/{customer}/total",
    "POST /stock/{article}/reservations",
    "GET /stock/{article}",
];
/// Items without a price per request: orders of a customer times half of the items of each.
const UNPRICED_ITEMS: u64 = 20 * 2;

/// Lines of a screen.
const SCREEN_LINES: usize = 50;
/// For each fault: the options of the report, and how the line of own code begins.
const FAULTS: [(&[&str], &str); 4] = [
    (
        &["--event", "alloc", "--type", "AuditEntry"],
        "AuditTrail.record(AuditTrail.java:16)",
    ),
    (
        &["--event", "alloc", "--through", "ShopController"],
        "OrderService.itemTotal(OrderService.java:31)",
    ),
    (&["--event", "lock"], "StockLedger."),
    (
        &["--event", "exception"],
        "PriceReader.cents(PriceReader.java:14)",
    ),
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let tests = setup.jdks.iter().map(|jdk| {
        let name = format!("shop::{}", jdk.version);
        test(name, false, move || check_shop(setup, jdk))
    });
    tests.collect()
}

fn check_shop(setup: &Setup, jdk: &Jdk) -> Checked {
    let jar = setup.harness.join("shop/target/shop.jar");
    let requests = format!("--shop.requests={REQUESTS}");
    let java = Java::new(setup, jdk, &format!("shop-{}", jdk.version))
        .agent("events=alloc+exception+lock,requests=auto,verify=1009")
        .main(["-jar", &jar.to_string_lossy(), &requests]);
    let ended = java.run()?.expect(0)?;
    let is_right = ended.stdout.contains("0 wrong answers");
    ended.ensure(is_right, "the shop answers as without the agent")?;
    java.lucce().check(&java.log())?;

    let log = java.log().to_string_lossy().into_owned();
    let report = java.lucce().json(&[
        "report",
        "--json",
        "--top",
        "0",
        "--event",
        "exception",
        "--through",
        r"io\.lucce\.shop\.PriceReader\.cents",
        &log,
    ])?;
    ensure(
        report["own_code"] == json!(["shop.jar!BOOT-INF/classes"]),
        || format!("own code: {}", report["own_code"]),
    )?;
    let rows = report["contexts"].as_array().ok_or("no contexts")?;
    let thrown: u64 = rows.iter().filter_map(|row| row["count"].as_u64()).sum();
    ensure(thrown == REQUESTS * UNPRICED_ITEMS, || {
        format!("{thrown} exceptions, not {REQUESTS} × {UNPRICED_ITEMS}: {rows:#?}")
    })?;
    let report = java.lucce().json(&[
        "report", "--json", "--top", "0", "--event", "request", "--by", "request", &log,
    ])?;
    let rows = report["rows"].as_array().ok_or("no rows")?;
    let counted: BTreeMap<&str, u64> = rows
        .iter()
        .filter_map(|row| Some((row["name"].as_str()?, row["count"].as_u64()?)))
        .collect();
    let expected = PATTERNS.map(|pattern| (pattern, REQUESTS));
    ensure(counted == BTreeMap::from(expected), || {
        format!("requests by pattern: {counted:?}")
    })?;
    for (options, line) in FAULTS {
        check_first_screen(&java.lucce(), &java.log(), options, line)?;
    }
    names_all_faults(&java.lucce(), &java.log())?;
    check_entries(&java.lucce(), &java.log())?;
    java.clean();
    Ok(())
}

/// A report fits a screen, has no frames of libraries but those of events, and names the line.
fn check_first_screen(lucce: &Lucce<'_>, log: &Path, options: &[&str], line: &str) -> Checked {
    let log = log.to_string_lossy();
    let args = [&["report", &*log], options].concat();
    let report = lucce.text(0, &args)?;
    let lines = report.lines().count();
    ensure(lines <= SCREEN_LINES, || format!("{lines} lines: {report}"))?;
    ensure(
        report.contains(&format!("\tat io.lucce.shop.{line}")),
        || format!("no line {line}: {report}"),
    )
}

/// Without any option, the first screen names the lines of all faults.
fn names_all_faults(lucce: &Lucce<'_>, log: &Path) -> Checked {
    let report = lucce.text(0, &["report", &log.to_string_lossy()])?;
    let lines = report.lines().count();
    ensure(lines <= SCREEN_LINES, || format!("{lines} lines: {report}"))?;
    for (_, line) in FAULTS {
        ensure(report.contains(&format!("io.lucce.shop.{line}")), || {
            format!("no line {line}: {report}")
        })?;
    }
    for by in ["entry", "request", "method"] {
        let report = lucce.text(0, &["report", &log.to_string_lossy(), "--by", by])?;
        let lines = report.lines().count();
        let is_short = lines <= SCREEN_LINES && !report.ends_with("\n\n");
        ensure(is_short, || format!("{lines} lines: {report}"))?;
    }
    Ok(())
}

/// Each price without a number belongs to the endpoint that sums up a customer's orders.
fn check_entries(lucce: &Lucce<'_>, log: &Path) -> Checked {
    let log = log.to_string_lossy();
    let through = r"io\.lucce\.shop\.PriceReader\.cents";
    let args = [
        "report",
        &*log,
        "--event",
        "exception",
        "--through",
        through,
        "--by",
        "entry",
        "--json",
    ];
    let report = lucce.json(&args)?;
    let rows = report["rows"].as_array().ok_or("no rows")?;
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (row["name"].as_str(), row["count"].as_u64()))
        .collect();
    let entry = (
        Some("io.lucce.shop.ShopController.total"),
        Some(REQUESTS * UNPRICED_ITEMS),
    );
    ensure(rows == [entry], || format!("entries: {rows:?}"))
}
