//! Tags of a program's own: what it says it did under each is what reports say, and the sums are those without tags.

use std::collections::BTreeMap;

use lucce_tests::{COMPILE_PROGRAMS, Checked, Lucce, Setup, ensure};

use crate::Test;
use crate::modes::{self, Case, Mode, differences};

const PROGRAM: &str = "io.lucce.programs.Tags";
const MARKER: &str = "Tags\\$Marker$";
/// Without hooks single allocations are not counted.
const WALKED: &str = "walked";

/// Events, their sum, and objects, by tags.
type Sums = BTreeMap<String, (u64, u64, u64)>;

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 5] = [
        ("default", &[], "events=alloc+lock,verify=7"),
        ("int", &["-Xint", "-Xcheck:jni"], "events=alloc,verify=3"),
        (
            "comp",
            &[COMPILE_PROGRAMS, "-XX:-TieredCompilation"],
            "events=alloc,verify=9",
        ),
        (
            "stream",
            &["-XX:+UseZGC"],
            "events=alloc,stream=on,verify=5",
        ),
        (WALKED, &["-Xcheck:jni"], "events=exception,verify=3"),
    ];
    modes::each_from_11(setup, "tags", &MODES, check)
}

fn check(case: &Case) -> Checked {
    let java = case.java(case.options).main([PROGRAM]);
    let ended = java.run()?.expect(0)?;
    let mut expected: Sums = ended.stdout.lines().filter_map(expected).collect();
    let is_walked = case.name == WALKED;
    if is_walked {
        expected.values_mut().for_each(|sums| sums.2 = 0);
    }
    // 256 values of one key and the rest are among them.
    ended.ensure(expected.len() > 270, "the program says what to expect")?;
    ended.ensure(
        ended
            .stderr
            .matches("tag `id` has more than 256 values")
            .count()
            == 1,
        "the user is told once that values are not told apart",
    )?;
    let (lucce, log) = (java.lucce(), java.log().display().to_string());
    let runs: &[&[&str]] = match case.name {
        "stream" => &[&[], &["--stream"]],
        _ => &[&[]],
    };
    for more in runs {
        let found = reported(lucce, &[&[log.as_str()], *more].concat(), !is_walked)?;
        ensure(found == expected, || differences(&expected, &found))?;
    }
    if !is_walked {
        filtered(lucce, &log, &expected)?;
    }
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// `tags|events|sum|objects`
fn expected(line: &str) -> Option<(String, (u64, u64, u64))> {
    let mut fields = line.rsplit('|');
    let objects = fields.next()?.parse().ok()?;
    let sum = fields.next()?.parse().ok()?;
    let events = fields.next()?.parse().ok()?;
    Some((fields.next()?.to_owned(), (events, sum, objects)))
}

fn reported(lucce: Lucce, log: &[&str], has_objects: bool) -> Result<Sums, String> {
    let report = |more: &[&str]| {
        let all = ["report", "--json", "--top", "0"];
        lucce.json(&[&all, log, more].concat())
    };
    let own = ["--event", "own"];
    let markers = ["--type", MARKER];
    let mut sums = Sums::new();
    let both = [(&own, true), (&markers, false)];
    for (asked, is_own) in both
        .into_iter()
        .filter(|(_, is_own)| *is_own || has_objects)
    {
        let by = report(&[asked, &["--by", "tag"][..]].concat())?;
        let mut count = 0;
        for row in by["rows"].as_array().ok_or("no rows")? {
            let name = row["name"].as_str().ok_or("no name")?.replace('\n', "\\n");
            let sum = sums.entry(name).or_default();
            let events = row["count"].as_u64().ok_or("no count")?;
            count += events;
            match is_own {
                true => (sum.0, sum.1) = (events, row["own"].as_u64().ok_or("no sum")?),
                false => sum.2 = events,
            }
        }
        let whole = &report(&asked[..])?["totals"];
        ensure(whole["count"] == count, || {
            format!("{count} events by tag, without tags {whole}")
        })?;
    }
    Ok(sums)
}

/// Each tag alone, and two together.
fn filtered(lucce: Lucce, log: &str, expected: &Sums) -> Checked {
    let cases: [&[&str]; 4] = [
        &["endpoint=/search"],
        &["tenant=t1"],
        &["endpoint=/a", "tenant=t2"],
        &["id=(rest)"],
    ];
    for tags in cases {
        let has_all = |name: &str| {
            let own: Vec<&str> = name.split(", ").collect();
            tags.iter().all(|tag| own.contains(tag))
        };
        let wanted: u64 = expected
            .iter()
            .filter(|(name, _)| has_all(name))
            .map(|(_, sums)| sums.2)
            .sum();
        let asked: Vec<&str> = tags.iter().flat_map(|tag| ["--tag", tag]).collect();
        let all = ["report", "--json", "--type", MARKER, log];
        let report = lucce.json(&[&all, asked.as_slice()].concat())?;
        ensure(report["totals"]["count"] == wanted, || {
            format!("under {tags:?}: {wanted} expected, {}", report["totals"])
        })?;
    }
    Ok(())
}
