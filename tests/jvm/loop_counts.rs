//! Allocations in loops, whose frames keep their counters: counts are exact while tags, carriers and the event mask change.

use std::collections::BTreeMap;
use std::fs;

use lucce_tests::{COMPILE_PROGRAMS, Checked, Java, Setup, ensure};

use crate::modes::{self, Case, Mode, differences};
use crate::running::{Running, signal_file};
use crate::{Test, test};

const PROGRAM: &str = "io.lucce.programs.LoopCounts";
const MARKERS: &str = r"LoopCounts\$Marker";
const PHASES: usize = 6;

/// Objects and bytes by tags.
type Sums = BTreeMap<String, (u64, u64)>;

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 3] = [
        ("default", &[], "events=alloc,verify=7"),
        // The code that most programs run: a count alone.
        ("plain", &["-Xcheck:jni"], "events=alloc"),
        (
            "stream",
            &[COMPILE_PROGRAMS, "-XX:-TieredCompilation"],
            "events=alloc=sizes,stream=on",
        ),
    ];
    let is_chosen = |test: &Test| test.name.contains("::17::") || test.name.contains("::25::");
    let mut tests = modes::each(setup, "loop_counts", &MODES, check);
    tests.retain(is_chosen);
    let phased = setup.jdks.iter().map(|jdk| {
        let name = format!("loop_counts::{}::phases", jdk.version);
        test(name, false, move || {
            let java = Java::new(setup, jdk, &format!("loop-phases-{}", jdk.version));
            check_phases(java)
        })
    });
    tests.extend(phased.filter(is_chosen));
    tests
}

fn check(case: &Case) -> Checked {
    let java = case.java(case.options).main([PROGRAM]);
    let ended = java.run()?.expect(0)?;
    let expected: Sums = ended.stdout.lines().filter_map(parse_sums).collect();
    ended.ensure(expected.len() == 8, "the program says what to expect")?;
    let log = java.log().display().to_string();
    let report = ["report", "--json", "--top", "0", "--type", MARKERS];
    let by_tag = java
        .lucce()
        .json(&[&report[..], &["--by", "tag", &log]].concat())?;
    let mut found = Sums::new();
    for row in by_tag["rows"].as_array().ok_or("no rows")? {
        let name = row["name"].as_str().ok_or("no name")?.to_owned();
        let [count, bytes] = ["count", "own"].map(|field| row[field].as_u64());
        found.insert(name, (count.ok_or("no count")?, bytes.ok_or("no bytes")?));
    }
    ensure(found == expected, || differences(&expected, &found))?;
    if case.options.contains("verify") {
        java.lucce().check(&java.log())?;
    }
    java.clean();
    Ok(())
}

/// `tags|objects|bytes`
fn parse_sums(line: &str) -> Option<(String, (u64, u64))> {
    let mut fields = line.rsplit('|');
    let bytes = fields.next()?.parse().ok()?;
    let objects = fields.next()?.parse().ok()?;
    Some((fields.next()?.to_owned(), (objects, bytes)))
}

/// Between phases of one loop, events are stopped, started and selected.
fn check_phases(java: Java<'static>) -> Checked {
    let java = java.agent("events=alloc");
    let file = signal_file(&java).display().to_string();
    for phase in 0..=PHASES {
        let _ = fs::remove_file(format!("{file}{phase}"));
    }
    let java = java.main([PROGRAM, &file]);
    let mut jvm = Running::with_line(java, "phase 0")?;
    let commands: [&[&str]; PHASES] = [
        &["status"],
        &["stop"],
        &["start"],
        &["set", "events=none"],
        &["set", "events=alloc"],
        &["dump"],
    ];
    for (phase, command) in commands.into_iter().enumerate() {
        jvm.ctl(command)?;
        fs::write(format!("{file}{phase}"), "").map_err(|e| e.to_string())?;
        let line = format!("phase {}", phase + 1);
        jvm.until(&line, |jvm| Ok(jvm.java.printed("stdout").contains(&line)))?;
    }
    fs::write(format!("{file}{PHASES}"), "").map_err(|e| e.to_string())?;
    let words = "each phase: ";
    jvm.until(words, |jvm| Ok(jvm.java.printed("stdout").contains(words)))?;
    let printed = jvm.java.printed("stdout");
    let each = printed.lines().find_map(|line| line.strip_prefix(words));
    let each: u64 = each
        .and_then(|each| each.parse().ok())
        .ok_or("the program says what to expect")?;
    let status = jvm.child.wait().map_err(|e| e.to_string())?;
    ensure(status.success(), || status.to_string())?;
    let log = jvm.java.log().display().to_string();
    let report = ["report", "--json", "--top", "0", "--type", MARKERS, &log];
    let report = jvm.lucce().json(&report)?;
    ensure(report["totals"]["count"] == 4 * each, || {
        format!("{} events in four phases of {each}", report["totals"])
    })?;
    jvm.java.clean();
    Ok(())
}
