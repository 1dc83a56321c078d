//! The code with which OpenTelemetry's collector receives profiles.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Logs, consumers, decodes, equal, totals};
use crate::Outcome;

/// Profiles, their units and what they are in the log.
const SUMS: [(&str, &str, &str, bool); 4] = [
    ("alloc_space", "bytes", "alloc", true),
    ("alloc_objects", "count", "alloc", false),
    ("delay", "nanoseconds", "lock", true),
    ("contentions", "count", "lock", false),
];

/// Every profile's sum is that of `lucce report`.
pub fn sums(logs: &Logs) -> Outcome {
    let file = logs.export(&logs.shop, "otlp", "shop.otlp", &[])?;
    let told = received(&file)?;
    let profiles = told["profiles"].as_array().ok_or("no profiles")?;
    equal("profiles", &profiles.len(), &SUMS.len())?;
    for (name, unit, kind, is_value) in SUMS {
        let (value, count) = totals(&logs.shop, kind)?;
        let profile = profiles.iter().find(|profile| profile["name"] == name);
        let profile = profile.ok_or_else(|| format!("no {name}"))?;
        let sum = if is_value { value } else { count };
        equal(name, &profile["sum"], &sum.into())?;
        equal(name, &profile["unit"], &unit.into())?;
    }
    equal("first", &profiles[0]["name"], &"alloc_space".into())?;
    let resource = &told["resource"];
    equal(
        "command",
        &resource["process.command_line"],
        &"Shop *".into(),
    )?;
    equal("service", &resource["service.name"], &"Shop".into())
}

/// Threads, types, content ids, and stacks, which are those that the numbers decode to.
pub fn attributes(logs: &Logs) -> Outcome {
    let options = ["--content-ids"];
    let file = logs.export(&logs.shop, "otlp", "attributes.otlp", &options)?;
    let told = received(&file)?;
    let bytes = |of: &Value| {
        of.as_object()
            .map_or(0, |of| of.values().filter_map(Value::as_u64).sum())
    };
    let all = totals(&logs.shop, "alloc")?.0;
    equal("threads", &bytes(&told["threads"]), &all)?;
    equal("types", &bytes(&told["types"]), &all)?;
    let orders = told["types"]["Shop$Order"].as_u64();
    equal(
        "orders",
        &orders.is_some_and(|bytes| bytes >= 8_000 * 16),
        &true,
    )?;
    let contents = told["contents"].as_u64().unwrap_or_default();
    equal("content ids", &(contents > 100), &true)?;
    decodes(&logs.shop, &told["stacks"])
}

fn received(file: &Path) -> Result<Value, String> {
    consumers::json(&mut Command::new(consumers::go("otlp")?), file)
}
