//! Events of a program's own: what it says it counted is what the report says.

use std::collections::BTreeMap;
use std::path::Path;

use lucce_tests::{COMPILE_PROGRAMS, Checked, Lucce, Setup, ensure};

use crate::Test;
use crate::expected::expected;
use crate::modes::{self, Case, Mode};

const PROGRAM: &str = "io.lucce.programs.OwnEvents";

/// Count and sum by kind and line.
type Counts = BTreeMap<(String, i64), (u64, u64)>;

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 6] = [
        ("default", &[], "events=none,verify=5"),
        ("int", &["-Xint"], "events=alloc,verify=61"),
        (
            "comp",
            &[COMPILE_PROGRAMS, "-XX:-TieredCompilation"],
            "events=none,verify=1",
        ),
        (
            "wide",
            &["-XX:+UseZGC", "-XX:-CompactStrings"],
            "events=none,stream=on,verify=3",
        ),
        (
            "cct",
            &["-XX:+UseSerialGC"],
            "events=alloc,tracking=cct,verify=9",
        ),
        ("walked", &["-Xcheck:jni"], "events=exception,verify=1"),
    ];
    modes::each_from_11(setup, "own-events", &MODES, check)
}

fn check(case: &Case) -> Checked {
    let java = case.java(case.options).main([PROGRAM]);
    let ended = java.run()?.expect(0)?;
    let expected: Counts = ended.stdout.lines().filter_map(expected).collect();
    ended.ensure(expected.len() == 21, "the program says what to expect")?;
    let found = reported(java.lucce(), &java.log())?;
    ensure(found == expected, || {
        format!("expected {expected:#?}\nreported {found:#?}")
    })?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// By the line of the innermost frame of the program.
fn reported(lucce: Lucce, log: &Path) -> Result<Counts, String> {
    let log = log.to_string_lossy();
    let stats = lucce.stats(&*log)?;
    let kinds = stats["kinds"].as_array().ok_or("no kinds")?;
    let mut counts = Counts::new();
    for kind in kinds.iter().filter_map(|kind| kind["kind"].as_str()) {
        if ["alloc", "exception", "exception-catch"].contains(&kind) {
            continue;
        }
        let report = lucce.json(&["report", "--json", "--top", "0", "--event", kind, &*log])?;
        for row in report["contexts"].as_array().ok_or("no contexts")? {
            let frames = row["frames"].as_array().ok_or("no frames")?;
            let own = frames.iter().find(|frame| frame["class"] == PROGRAM);
            let line = own.and_then(|frame| frame["line"].as_i64());
            let sums = counts
                .entry((kind.to_owned(), line.ok_or("no line")?))
                .or_default();
            sums.0 += row["count"].as_u64().ok_or("no count")?;
            sums.1 += row["value"].as_u64().ok_or("no value")?;
        }
    }
    Ok(counts)
}
