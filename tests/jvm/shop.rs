//! A Spring Boot program in one jar: class loaders of its own, proxies, generated classes and a server. Traces equal the
//! VM's, the fault that throws exceptions is counted exactly, and so are requests by their patterns.

use std::collections::BTreeMap;

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};
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
        .agent("events=alloc+exception,requests=auto,verify=1009")
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
    java.clean();
    Ok(())
}
