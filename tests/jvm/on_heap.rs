//! `events=alloc+heap`: what of the counted allocations reached the heap; and whether hooks keep the compiler from removing
//! allocations.

use std::collections::BTreeMap;

use lucce_tests::{Checked, Setup, ensure};
use serde_json::Value;

use crate::Test;
use crate::modes::{self, Case, Mode};

const PROGRAM: &str = "io.lucce.programs.OnHeap";
/// Bytes of an array of 64 bytes with its header.
const ARRAY_BYTES: u64 = 80;

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 2] = [("default", &[], ""), ("leak", &[], "+leak=16k")];
    const ELIMINATED: [Mode; 1] = [("eliminated", &["-Xbatch"], "")];
    let mut tests = modes::each(setup, "on_heap", &MODES, check);
    tests.extend(modes::each(setup, "on_heap", &ELIMINATED, check_eliminated));
    tests
}

/// The bytes of the program's measured part are compared with the VM's own count; its objects are known.
fn check(case: &Case) -> Checked {
    let java = case.java(&format!(
        "events=alloc+heap=16k{},verify=1000",
        case.options
    ));
    let java = java.main([PROGRAM]);
    let ended = java.run()?.expect(0)?;
    let numbers = ended.stdout.lines().find_map(|line| {
        let (kept, allocated) = line.strip_prefix("kept ")?.split_once(" allocated ")?;
        Some((kept.parse::<u64>().ok()?, allocated.parse::<u64>().ok()?))
    });
    let (kept, allocated) = numbers.ok_or("the program says what it allocated")?;
    let log = java.log();
    let log = &*log.to_string_lossy();
    let select = ["--through", r"OnHeap\.measured", "--top", "0", log];
    let json = |options: &[&str]| {
        java.lucce()
            .json(&[&["report", "--json"], options, &select[..]].concat())
    };
    let report = json(&[])?;
    let (bytes, error) = estimate(&report["heap"])?;
    // Two errors are four standard deviations. Before JDK 25 the VM samples with a bias.
    let is_fair = case.jdk_version() >= 25;
    let bias = if is_fair { 0 } else { allocated / 4 };
    ensure(bytes.abs_diff(allocated) <= 2 * error + bias, || {
        format!("{allocated} bytes by the VM's count, {bytes} ± {error}")
    })?;
    ensure(
        error * 10 < bytes && bytes < report["totals"]["value"].as_u64().unwrap_or(0),
        || report["heap"].to_string(),
    )?;
    let rows = report["contexts"].as_array().ok_or("no contexts")?;
    let points = find(rows, "io.lucce.programs.OnHeap$Point");
    ensure(
        !points.is_empty() && points.iter().all(|row| row["heap"]["removed"] == true),
        || format!("not removed: {points:?}"),
    )?;
    let arrays = find(rows, "byte[]");
    let [array] = arrays[..] else {
        return Err(format!("one context of arrays: {arrays:?}"));
    };
    let (bytes, error) = estimate(&array["heap"])?;
    let exact = kept * ARRAY_BYTES;
    ensure(
        array["bytes"] == exact && array["heap"]["removed"] == false,
        || array.to_string(),
    )?;
    ensure(
        bytes.abs_diff(exact) <= 2 * error + exact / 4 * u64::from(!is_fair),
        || format!("{exact} bytes, {bytes} ± {error}"),
    )?;
    // By exact bytes, removed objects come first.
    ensure(rows[0]["class"] != "byte[]", || rows[0].to_string())?;
    let sorted = json(&["--sort", "heap"])?;
    ensure(sorted["contexts"][0]["class"] == "byte[]", || {
        sorted["contexts"][0].to_string()
    })?;
    let types = json(&["--by", "type", "--sort", "heap"])?;
    let first = &types["rows"][0];
    ensure(
        first["name"] == "byte[]" && first["heap"]["bytes"] == bytes,
        || types.to_string(),
    )?;
    let text = java
        .lucce()
        .text(0, &[&["report", "--sort", "heap"], &select[..]].concat())?;
    ensure(
        text.contains("on the heap: ")
            && text.contains("removed by the compiler")
            && text.contains("one every 16,384 bytes"),
        || text.clone(),
    )?;
    // The samples are a kind of their own for comparisons, and a limit within their error is not judged.
    let gate = ["gate", "--event", "heap", "--base", log, log];
    let limit = ["--max-growth", "30%"];
    java.lucce().text(0, &[&gate[..], &limit].concat())?;
    let doubt = java.lucce().text(2, &gate)?;
    ensure(doubt.contains("within their error of ±"), || doubt.clone())?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

fn estimate(heap: &Value) -> Result<(u64, u64), String> {
    let bytes = heap["bytes"].as_u64().ok_or("no bytes on the heap")?;
    Ok((bytes, heap["error_bytes"].as_u64().ok_or("no error")?))
}

fn find<'r>(rows: &'r [Value], class: &str) -> Vec<&'r Value> {
    rows.iter().filter(|row| row["class"] == class).collect()
}

/// Constructs of which the VM allocates more with hooks: see the guide of performance.
const CHANGED: [&str; 16] = [
    "Optional-capturing",
    "varargs-int",
    "enhanced-for-map",
    "subList",
    "Arrays.asList",
    "stream-sum",
    "stream-collect",
    "StringBuilder",
    "substring",
    "String.format",
    "Supplier-compose",
    "Comparator",
    "StringJoiner",
    "IntStream.range",
    "varargs-Object",
    "Objects.hash",
];

/// Bytes for each construct, without the agent and with `events=alloc`: at most 1% more.
fn check_eliminated(case: &Case) -> Checked {
    let main = ["io.lucce.programs.Eliminated", "30"];
    let plain = case.plain_java().main(main);
    let counted = case.java("events=alloc").main(main);
    let bytes = |text: &str| -> BTreeMap<String, u64> {
        let lines = text.lines().filter_map(|line| {
            let (name, bytes) = line.strip_prefix("bytes ")?.split_once(' ')?;
            Some((name.to_owned(), bytes.parse().ok()?))
        });
        lines.collect()
    };
    let before = bytes(&plain.run()?.expect(0)?.stdout);
    let after = bytes(&counted.run()?.expect(0)?.stdout);
    ensure(before.len() > 40 && before.len() == after.len(), || {
        format!("{before:?}")
    })?;
    let more = before.iter().filter(|(name, bytes)| {
        let most = **bytes + **bytes / 100;
        !CHANGED.contains(&name.as_str()) && after.get(*name).is_none_or(|after| *after > most)
    });
    let more: Vec<_> = more
        .map(|(name, bytes)| (name, bytes, after.get(name)))
        .collect();
    ensure(more.is_empty(), || format!("more with hooks: {more:?}"))?;
    counted.clean();
    plain.clean();
    Ok(())
}
