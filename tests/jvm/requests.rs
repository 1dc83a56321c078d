//! `requests=auto`: what a program says it did for each kind of request is what reports say by tag.

use std::collections::BTreeMap;

use lucce_tests::{Checked, Lucce, Setup, ensure};
use serde_json::Value;

use crate::Test;
use crate::modes::{self, Case, Mode, differences};

const PROGRAM: &str = "io.lucce.programs.Requests";
const MARKER: &str = r"Requests\$Marker";

/// Requests, objects and bytes by tags.
type Sums = BTreeMap<String, [u64; 3]>;

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 5] = [
        ("default", &[], "events=alloc,requests=auto,verify=1"),
        (
            "comp",
            &["-Xbatch", "-XX:-TieredCompilation"],
            "events=alloc+lock+call,requests=auto,verify=101",
        ),
        (
            "tasks",
            &["-Xint"],
            "events=alloc+thread+exception,requests=auto,verify=31",
        ),
        (
            "stream",
            &[],
            "events=alloc,requests=auto,stream=on,verify=5",
        ),
        (
            // The first request ends the delay, and is counted.
            "ready",
            &[],
            "events=alloc,requests=auto,delay=ready,verify=1",
        ),
    ];
    modes::each(setup, "requests", &MODES, check)
}

fn check(case: &Case) -> Checked {
    let java = case.java(case.options).main([PROGRAM]);
    let ended = java.run()?.expect(0)?;
    let expected: Sums = ended.stdout.lines().filter_map(parse_expected).collect();
    ended.ensure(expected.len() > 15, "the program says what to expect")?;
    let (lucce, log) = (java.lucce(), java.log().display().to_string());
    lucce.check(&java.log())?;
    let by_tag = read_report(lucce, &log, "tag")?;
    ensure(by_tag == expected, || differences(&expected, &by_tag))?;
    let expected = sum_requests(&expected);
    let by_request = read_report(lucce, &log, "request")?;
    ensure(by_request == expected, || {
        differences(&expected, &by_request)
    })?;
    java.clean();
    Ok(())
}

/// The sums by the tag `request` alone.
fn sum_requests(by_tag: &Sums) -> Sums {
    let mut sums = Sums::new();
    for (tags, own) in by_tag {
        let request = tags
            .split_once("request=")
            .map_or("(no request)", |(_, of)| of);
        let sum = sums.entry(request.to_owned()).or_default();
        for (sum, own) in sum.iter_mut().zip(own) {
            *sum += own;
        }
    }
    sums
}

/// `tags#requests#objects#bytes`
fn parse_expected(line: &str) -> Option<(String, [u64; 3])> {
    let mut fields = line.rsplitn(4, '#').collect::<Vec<_>>().into_iter().rev();
    let name = fields.next()?.to_owned();
    let mut number = || fields.next()?.parse().ok();
    Some((name, [number()?, number()?, number()?]))
}

fn read_report(lucce: Lucce, log: &str, by: &str) -> Result<Sums, String> {
    let mut sums = Sums::new();
    let both: [&[&str]; 2] = [&["--event", "request"], &["--type", MARKER]];
    for (at, selection) in both.into_iter().enumerate() {
        let all = ["report", "--json", "--top", "0", "--by", by, log];
        let report = lucce.json(&[&all, selection].concat())?;
        for row in report["rows"].as_array().ok_or("no rows")? {
            let number = |key: &str| row[key].as_u64().ok_or(format!("no {key}: {row}"));
            let name = row["name"].as_str().ok_or("no name")?.to_owned();
            let sum = sums.entry(name).or_default();
            match at {
                0 => sum[0] = number("count")?,
                _ => (sum[1], sum[2]) = (number("count")?, own_sum(row)?),
            }
        }
    }
    Ok(sums)
}

fn own_sum(row: &Value) -> Result<u64, String> {
    row["own"].as_u64().ok_or(format!("no sum: {row}"))
}
