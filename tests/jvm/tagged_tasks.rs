//! Tags follow tasks: what a program says about the tags of its tasks is what reports say.

use std::collections::BTreeMap;

use lucce_tests::{COMPILE_PROGRAMS, Checked, Setup, ensure};

use crate::Test;
use crate::modes::{self, Case, Mode};

const PROGRAM: &str = "io.lucce.programs.TaggedTasks";
const MARKER: &str = r"TaggedTasks\$Marker$";
/// Tags belong to threads alone.
const THREAD: &str = "thread";

/// Events and objects by tags.
type Counts = BTreeMap<String, [u64; 2]>;

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    const MODES: [Mode; 4] = [
        ("default", &[], "events=alloc,verify=3"),
        ("origins", &["-Xcheck:jni"], "events=alloc+thread,verify=3"),
        (
            "comp",
            &[COMPILE_PROGRAMS, "-XX:-TieredCompilation"],
            "events=alloc+call,verify=9",
        ),
        (THREAD, &[], "events=alloc,tags=thread,verify=9"),
    ];
    modes::each(setup, "tagged_tasks", &MODES, check)
}

fn check(case: &Case) -> Checked {
    let argument = (case.name == THREAD).then_some(THREAD);
    let java = case
        .java(case.options)
        .main([PROGRAM].into_iter().chain(argument));
    let ended = java.run()?.expect(0)?;
    let expected: Counts = ended.stdout.lines().filter_map(parse_expected).collect();
    ended.ensure(expected.len() > 4, "the program says what to expect")?;
    let (lucce, log) = (java.lucce(), java.log().display().to_string());
    lucce.check(&java.log())?;
    let mut found = Counts::new();
    let both: [&[&str]; 2] = [&["--event", "own"], &["--type", MARKER]];
    for (at, selection) in both.into_iter().enumerate() {
        let all = ["report", "--json", "--top", "0", "--by", "tag", &log];
        let report = lucce.json(&[&all, selection].concat())?;
        for row in report["rows"].as_array().ok_or("no rows")? {
            let name = row["name"].as_str().ok_or("no name")?.to_owned();
            found.entry(name).or_default()[at] = row["count"].as_u64().ok_or("no count")?;
        }
    }
    ensure(found == expected, || {
        let keys = expected.keys().chain(found.keys());
        let different = keys.filter(|key| expected.get(*key) != found.get(*key));
        let lines = different.map(|key| {
            let (expected, found) = (expected.get(key), found.get(key));
            format!("{key}: expected {expected:?}, reported {found:?}")
        });
        lines.collect::<Vec<_>>().join("\n")
    })?;
    java.clean();
    Ok(())
}

/// `tags#events#objects`
fn parse_expected(line: &str) -> Option<(String, [u64; 2])> {
    let mut fields = line.rsplitn(3, '#').collect::<Vec<_>>().into_iter().rev();
    let name = fields.next()?.to_owned();
    let mut number = || fields.next()?.parse().ok();
    Some((name, [number()?, number()?]))
}
