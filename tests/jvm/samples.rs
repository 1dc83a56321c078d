//! `events=alloc=SIZE`: samples stand for what was allocated, at its place.

use std::collections::BTreeMap;

use lucce_tests::{COMPILE_PROGRAMS, Checked, Lucce, Setup, ensure};

use crate::Test;
use crate::expected::expected;
use crate::modes::{self, Case, Mode};

/// A class and a line.
type SourceLine = (String, i64);

const PROGRAM: &str = "io.lucce.programs.Sampled";
/// Samples alone need no hooks.
const HOOKED: &str = ",tracking=lazy";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 10] = [
        ("default", &[], HOOKED),
        ("int", &["-Xint", "-Xcheck:jni"], HOOKED),
        (
            "comp",
            &[
                COMPILE_PROGRAMS,
                "-XX:-TieredCompilation",
                "-XX:+UseSerialGC",
            ],
            HOOKED,
        ),
        (
            "app",
            &["-XX:+UseParallelGC"],
            ",instrument=app,tracking=lazy",
        ),
        ("cct", &["-XX:+UseZGC"], ",tracking=cct"),
        ("leak", &[], "+leak=16k,tracking=lazy"),
        ("walked", &["-Xcheck:jni"], ""),
        ("walked-int", &["-Xint"], "+leak=16k"),
        ("walked-app", &["-XX:+UseZGC"], ",instrument=app"),
        // A burst that no test outlasts.
        ("burst", &[], ",burst=3600s/7200s"),
    ];
    const BEGINNING: [Mode; 4] = [
        ("main", &[], ""),
        ("main-int", &["-Xint", "-XX:+UseSerialGC"], "+leak=512"),
        ("main-hooked", &[], HOOKED),
        ("main-z", &["-XX:+UseZGC"], "+leak=512,tracking=lazy"),
    ];
    let mut tests = modes::each(setup, "samples", &MODES, check);
    tests.extend(modes::each(setup, "samples", &BEGINNING, beginning));
    tests
}

/// The main thread is sampled from its first object on, though the VM has made it, and given it a buffer, before.
fn beginning(case: &Case) -> Checked {
    /// What the program makes.
    const BYTES: u64 = 2560 * 104;
    let java = case.java(&format!("events=alloc=512{}", case.options));
    let java = java.main(["io.lucce.programs.Beginning"]);
    java.run()?.expect(0)?;
    let log = java.log();
    let through = ["--through", r"Beginning\.main", &*log.to_string_lossy()];
    let report = [&["report", "--json", "--top", "0"], &through[..]].concat();
    let report = java.lucce().json(&report)?;
    let rows = report["contexts"].as_array().ok_or("no contexts")?;
    let arrays = rows.iter().filter(|row| row["class"] == "byte[]");
    let bytes: u64 = arrays.filter_map(|row| row["bytes"].as_u64()).sum();
    // 500 samples: seven standard deviations.
    ensure(bytes.abs_diff(BYTES) * 10 < BYTES * 3, || {
        format!("about {BYTES} bytes, but {bytes}: {report}")
    })?;
    java.clean();
    Ok(())
}

fn check(case: &Case) -> Checked {
    let java = case.java(&format!("events=alloc=16k{},verify=1", case.options));
    let java = java.main([PROGRAM]);
    let ended = java.run()?.expect(0)?;
    let said: BTreeMap<_, _> = ended.stdout.lines().filter_map(expected).collect();
    ended.ensure(said.len() == 3, "the program says what to expect")?;
    let found = reported(java.lucce(), &java.log().to_string_lossy())?;
    for (place, (objects, bytes)) in &said {
        let row = found.get(place).copied().unwrap_or_default();
        // Thousands of samples each: ten standard deviations and more.
        let near = |found: u64, said: u64| found.abs_diff(said) * 5 < said;
        ensure(near(row.0, *objects) && near(row.1, *bytes), || {
            format!("{place:?}: about {objects} of {bytes} bytes, but {row:?}")
        })?;
    }
    let log = java.log();
    let report = java.lucce().text(0, &["report", &*log.to_string_lossy()])?;
    ensure(report.contains("one every 16,384 bytes"), || report.clone())?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// Objects and bytes by class and line of the innermost frame of the program.
fn reported(lucce: Lucce, log: &str) -> Result<BTreeMap<SourceLine, (u64, u64)>, String> {
    let report = lucce.json(&["report", "--json", "--top", "0", log])?;
    ensure(report["sampled_bytes"] == 16_384, || "sampled".into())?;
    let mut counts: BTreeMap<SourceLine, (u64, u64)> = BTreeMap::new();
    for row in report["contexts"].as_array().ok_or("no contexts")? {
        let frames = row["frames"].as_array().ok_or("no frames")?;
        let own = frames.iter().find(|frame| frame["class"] == PROGRAM);
        let line = own.and_then(|frame| frame["line"].as_i64());
        if let (Some(line), Some(class)) = (line, row["class"].as_str()) {
            let sums = counts.entry((class.to_owned(), line)).or_default();
            sums.0 += row["count"].as_u64().ok_or("no count")?;
            sums.1 += row["bytes"].as_u64().ok_or("no bytes")?;
        }
    }
    Ok(counts)
}
