//! `events=alloc=sizes`: arrays of each context by powers of two of their size.

use lucce_tests::{Checked, Setup, ensure};
use serde_json::Value;

use crate::Test;
use crate::modes::{self, Case, Mode};

const PROGRAM: &str = "io.lucce.programs.ArraySizes";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 1] = [("default", &["-XX:+UseG1GC", "-XX:G1HeapRegionSize=1m"], "")];
    let mut tests = modes::each(setup, "array_sizes", &MODES, check);
    tests.retain(|test| !test.name.contains("::21::"));
    tests
}

fn check(case: &Case) -> Checked {
    let java = case.java("events=alloc=sizes,verify=1000").main([PROGRAM]);
    java.run()?.expect(0)?;
    let log = java.log();
    let log = &*log.to_string_lossy();
    let json = |method: &str, options: &[&str]| {
        let through = format!(r"ArraySizes\.{method}");
        let select = ["--top", "0", "--through", &through, log];
        java.lucce()
            .json(&[&["report", "--json"], options, &select[..]].concat())
    };
    // The program's own numbers: k arrays of 2^k bytes.
    let mixed = json("mixed", &["--by", "size"])?;
    let rows = mixed["rows"].as_array().ok_or("no rows")?;
    ensure(rows.len() == 16 && mixed["by"] == "size", || {
        mixed.to_string()
    })?;
    for power in 5..=20_u64 {
        let names = [power, power + 1].map(size_text);
        let name = names.join(" to ");
        let row = rows.iter().find(|row| row["name"] == *name);
        let row = row.ok_or_else(|| format!("no row {name}: {mixed}"))?;
        ensure(
            row["count"] == power && row["own"] == power << power,
            || row.to_string(),
        )?;
    }
    let totals = |report: &Value| {
        let of = &report["totals"];
        (of["count"].as_u64(), of["bytes"].as_u64())
    };
    let large = json("mixed", &["--min-size", "1m"])?;
    ensure(totals(&large) == (Some(20), Some(20 << 20)), || {
        large.to_string()
    })?;
    let humongous = json("mixed", &["--min-size", "humongous"])?;
    let bytes = (19 << 19) + (20 << 20);
    ensure(totals(&humongous) == (Some(39), Some(bytes)), || {
        humongous.to_string()
    })?;
    // The header makes each of them larger than 2 MB.
    let copies = json("copies", &["--min-size", "2m"])?;
    ensure(
        totals(&copies) == (Some(4), Some(4 * ((2 << 20) + 16))),
        || copies.to_string(),
    )?;
    let points = json("points", &["--by", "size", "--sort", "count"])?;
    let first = &points["rows"][0];
    ensure(
        first["name"] == "32 to 64" && first["count"] == 1_000,
        || points.to_string(),
    )?;
    java.lucce()
        .text(2, &["report", "--min-size", "1000000", log])?;
    java.lucce()
        .text(2, &["report", "--by", "size", "--type", "byte", log])?;
    java.lucce().check(&java.log())?;
    java.clean();
    check_without_sizes(case)
}

/// Without the option, arrays of different sizes are left out, and the report says so.
fn check_without_sizes(case: &Case) -> Checked {
    let java = case.java("events=alloc").main([PROGRAM]);
    java.run()?.expect(0)?;
    let log = java.log();
    let log = &*log.to_string_lossy();
    let text = java.lucce().text(
        0,
        &[
            "report",
            "--min-size",
            "1m",
            "--through",
            r"ArraySizes\.",
            log,
        ],
    )?;
    ensure(text.contains("as their sizes are unknown"), || text.clone())?;
    java.lucce()
        .text(2, &["report", "--min-size", "humongous", log])?;
    java.clean();
    Ok(())
}

/// 2^power bytes as the command writes sizes.
fn size_text(power: u64) -> String {
    match power {
        0..10 => (1_u64 << power).to_string(),
        10..20 => format!("{}k", 1_u64 << (power - 10)),
        _ => format!("{}m", 1_u64 << (power - 20)),
    }
}
