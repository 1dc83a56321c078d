//! What programs read: each field is described, and sums are sums.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn report(dir: &Path, log: &str, args: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_lucce"))
        .args(["report", log, "--json"])
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{log} {args:?}: {e}: {output:?}"))
}

/// Names of fields; those of `others` are kinds of events.
fn fields(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                into.insert(name.clone());
                if name != "others" {
                    fields(value, into);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| fields(value, into)),
        _ => {}
    }
}

#[test]
fn every_field_is_described() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::sample(&dir.path().join("sample.log"));
    lucce_testkit::kinds(&dir.path().join("kinds.log"));
    lucce_testkit::started(&dir.path().join("started.log"));
    lucce_testkit::corrupt(&dir.path().join("corrupt.log"));
    lucce_testkit::sampled(&dir.path().join("sampled.log"));
    let forms: [&[&str]; 7] = [
        &[],
        &["--min-share", "50"],
        &["--by", "method"],
        &["--by", "type", "--top", "1"],
        &["--tree"],
        &["--tree", "--inverted", "--depth", "1"],
        &["--across-threads"],
    ];
    let mut keys = BTreeSet::new();
    for log in [
        "sample.log",
        "kinds.log",
        "started.log",
        "corrupt.log",
        "sampled.log",
    ] {
        for form in forms {
            let report = report(dir.path(), log, form);
            assert_eq!(report["schema"], "lucce-report");
            assert_eq!(report["version"], 1);
            fields(&report, &mut keys);
        }
    }
    let text = include_str!("../../../docs/reference/json.md");
    let undescribed: Vec<_> = keys
        .iter()
        .filter(|name| !text.contains(&format!("`{name}`")))
        .collect();
    assert!(undescribed.is_empty(), "{undescribed:?}");
    assert!(keys.len() > 40, "{keys:?}");
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn sums_and_branches_are_the_total() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::sample(&dir.path().join("sample.log"));
    lucce_testkit::kinds(&dir.path().join("kinds.log"));
    for (log, event) in [
        ("sample.log", "alloc"),
        ("kinds.log", "alloc"),
        ("kinds.log", "lock"),
    ] {
        let form = |args: &[&str]| report(dir.path(), log, &[&["--event", event], args].concat());
        let all = number(&form(&[])["totals"]["value"]);
        for by in ["type", "class", "package", "method", "line", "thread"] {
            for top in ["0", "1"] {
                let report = form(&["--by", by, "--top", top]);
                let rows = report["rows"].as_array().unwrap();
                let listed: u64 = rows.iter().map(|row| number(&row["own"])).sum();
                assert_eq!(
                    listed + number(&report["rest"]),
                    all,
                    "{log} {event} {by} {top}"
                );
            }
        }
        for args in [&["--tree"][..], &["--tree", "--inverted"]] {
            for share in ["0", "1", "30"] {
                let report = form(&[args, &["--min-share", share]].concat());
                let branches = report["branches"].as_array().unwrap();
                assert_eq!(number(&branches[0]["amount"]), all);
                for (at, branch) in branches.iter().enumerate() {
                    let own = branch["own"].as_array().unwrap();
                    let own: u64 = own.iter().map(|own| number(&own["amount"])).sum();
                    let children = branches.iter().filter(|child| child["parent"] == at);
                    let below: u64 = children.map(|child| number(&child["amount"])).sum();
                    let sum = own + below + number(&branch["rest"]);
                    assert_eq!(
                        sum,
                        number(&branch["amount"]),
                        "{log} {args:?} {share}: {branch}"
                    );
                }
            }
        }
    }
}

/// The id that joins runs is that of `lucce diff`, whatever command shows it.
#[test]
fn contexts_have_their_content_ids() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::sample(&dir.path().join("one.log"));
    lucce_testkit::leaks::clean(&dir.path().join("none.log"));
    let stacks = |rows: &Value| -> BTreeSet<String> {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row["stack"].as_str().unwrap().to_owned())
            .collect()
    };
    let reported = report(dir.path(), "one.log", &["--top", "0"]);
    let of_report = stacks(&reported["contexts"]);
    assert!(of_report.len() > 2);
    let output = Command::new(env!("CARGO_BIN_EXE_lucce"))
        .args(["diff", "one.log", "none.log", "--json", "--top", "0"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let diff: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(of_report, stacks(&diff["rows"]));
}
