//! `events=alloc+survive`: how many young collections the samples live through.

use lucce_tests::{Checked, Java, Setup, ensure};
use serde_json::Value;

use crate::Test;
use crate::modes::{self, Case, Mode};

const PROGRAM: &str = "io.lucce.programs.Survives";
/// Bytes of an array of 1,024 bytes with its header.
const ARRAY_BYTES: u64 = 1_040;

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const YOUNG: &str = "-Xmn16m";
    const AGE: &str = "-XX:MaxTenuringThreshold=4";
    const MODES: [Mode; 2] = [
        (
            "g1",
            &[
                "-XX:+UseG1GC",
                "-Xmx128m",
                "-XX:G1HeapRegionSize=1m",
                YOUNG,
                AGE,
            ],
            "",
        ),
        (
            "parallel",
            &[
                "-XX:+UseParallelGC",
                "-Xmx128m",
                "-XX:InitialTenuringThreshold=4",
                "-XX:-UseAdaptiveSizePolicy",
                YOUNG,
                AGE,
            ],
            "",
        ),
    ];
    const SERIAL: [Mode; 1] = [("serial", &["-XX:+UseSerialGC", "-Xmx128m", YOUNG, AGE], "")];
    const OTHER: [Mode; 1] = [("other", &["-XX:+UseZGC", "-Xmx128m"], "")];
    let mut tests = modes::each(setup, "survival", &MODES, check);
    tests.extend(modes::each(setup, "survival", &SERIAL, check));
    tests.extend(modes::each(setup, "survival", &OTHER, check_refusal));
    // JDK 21 has the collectors of 17.
    tests.retain(|test| !test.name.contains("::21::"));
    tests
}

/// Each allocation is a sample. The program knows how long its objects live.
fn check(case: &Case) -> Checked {
    let java = case
        .java("events=alloc+heap=1+survive,verify=1000")
        .main([PROGRAM]);
    let ended = java.run()?.expect(0)?;
    let each = ended.stdout.lines().find_map(|line| {
        let (each, kept) = line.strip_prefix("each ")?.split_once(" kept ")?;
        (each == kept).then(|| each.parse::<u64>().ok())?
    });
    let exact = each.ok_or("the program says what it kept")? * ARRAY_BYTES;
    ensure(!ended.stdout.contains("passed"), || ended.stdout.clone())?;
    let log = java.log();
    let log = &*log.to_string_lossy();
    let line = |method: &str| -> Result<Survival, String> {
        let through = format!(r"Survives\.{method}");
        let by = [
            "report",
            "--json",
            "--by",
            "type",
            "--through",
            &through,
            log,
        ];
        let report = java.lucce().json(&by)?;
        Survival::parse(&report["rows"][0]["heap"])
    };
    // The VM moves them to the old generation at their fifth collection; young collections do not free them there.
    for (method, lived, old) in [
        ("liveFour", [exact, exact, exact, 0], 0),
        ("liveFive", [exact; 4], exact),
        ("keep", [exact; 4], exact),
    ] {
        let found = line(method)?;
        let wanted = Survival {
            bytes: exact,
            died: exact - old,
            lived,
            old,
        };
        ensure(found == wanted, || {
            format!("{method}: {found:?}, not {wanted:?}")
        })?;
    }
    // The last one is kept, and loading its class leaves little.
    let garbage = line("dropAll")?;
    ensure(
        garbage.died * 100 > garbage.bytes * 99
            && garbage.lived[0] * 100 < garbage.bytes
            && garbage.old < 1_000,
        || format!("{garbage:?}"),
    )?;
    let large = line("dropLarge")?;
    let is_humongous = case.name == "g1";
    ensure(
        large.old == if is_humongous { large.bytes } else { 0 },
        || format!("{large:?}"),
    )?;
    // With G1, large arrays fill the old generation.
    let sorted = [
        "report", "--json", "--sort", "survive", "--by", "method", log,
    ];
    let rows = java.lucce().json(&sorted)?["rows"].clone();
    let first = rows[0]["name"].as_str().unwrap_or_default();
    ensure(!is_humongous || first.contains("dropLarge"), || {
        rows.to_string()
    })?;
    let rows = rows.as_array().ok_or("no rows")?;
    let old = rows
        .iter()
        .map(|row| row["heap"]["survival"]["old_bytes"].as_u64().unwrap_or(0));
    ensure(old.clone().is_sorted_by(|a, b| a >= b), || {
        format!("not sorted: {:?}", old.clone().collect::<Vec<_>>())
    })?;
    ensure(old.clone().next() > Some(0), || "nothing is old".to_owned())?;
    let text = java
        .lucce()
        .text(0, &["report", "--sort", "survive", log])?;
    ensure(
        text.contains("survival: died young ") && text.contains(" of the old generation"),
        || text.clone(),
    )?;
    compare_top(&java, log, is_humongous)?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// `lucce top` has the report's sums of the whole run. With G1, the first line of own code is that of the large arrays.
fn compare_top(java: &Java<'_>, log: &str, is_humongous: bool) -> Checked {
    let args = ["top", log, "--once", "--interval", "100ms", "--event"];
    let top = java.lucce().text(0, &[&args[..], &["alloc"]].concat())?;
    let all = java
        .lucce()
        .json(&["report", "--json", "--top", "1", log])?;
    let total = Survival::parse(&all["heap"])?;
    let percent = (total.died as f64 * 100.0 / total.bytes as f64).round();
    let line = |start: &str| top.lines().find_map(|line| line.strip_prefix(start));
    let summary = line("What survives: ").ok_or_else(|| top.clone())?;
    let died = format!("{percent}% of the sampled bytes died young; ");
    ensure(
        summary.starts_with(&died) && summary.contains(" of what reached the old generation ("),
        || format!("{died:?}: {top}"),
    )?;
    let row = line("  old: ").ok_or_else(|| top.clone())?;
    ensure(row.contains("Survives.dropLarge(") || !is_humongous, || {
        top.clone()
    })
}

/// Bytes of samples.
#[derive(PartialEq, Debug)]
struct Survival {
    bytes: u64,
    died: u64,
    lived: [u64; 4],
    old: u64,
}

impl Survival {
    fn parse(heap: &Value) -> Result<Survival, String> {
        let of = &heap["survival"];
        let number = |value: &Value| value.as_u64().ok_or_else(|| heap.to_string());
        let lived = |at: usize| number(&of["lived_bytes"][at]);
        Ok(Survival {
            bytes: number(&heap["bytes"])?,
            died: number(&of["died_bytes"])?,
            lived: [lived(0)?, lived(1)?, lived(2)?, lived(3)?],
            old: number(&of["old_bytes"])?,
        })
    }
}

/// A collector whose young collections cannot be followed: the samples stay, and the report says why.
fn check_refusal(case: &Case) -> Checked {
    let java = case
        .java("events=alloc+survive")
        .main(["io.lucce.programs.OnHeap"]);
    java.run()?.expect(0)?;
    let log = java.log();
    let log = &*log.to_string_lossy();
    let text = java.lucce().text(0, &["report", log])?;
    ensure(
        text.contains("survival is not known: ")
            && text.contains("on the heap: ")
            && !text.contains("died young"),
        || text.clone(),
    )?;
    java.lucce()
        .text(2, &["report", "--sort", "survive", log])?;
    java.clean();
    Ok(())
}
