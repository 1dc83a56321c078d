//! `lucce gate` and `lucce diff`: what cannot be judged does not pass, in any form of the result.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn lucce(dir: &Path, command: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lucce"))
        .args(command.split_whitespace())
        .current_dir(dir)
        .output()
        .unwrap()
}

fn stdout_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn logs() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    lucce_testkit::sample(&path("sample.log"));
    lucce_testkit::moved(&path("moved.log"));
    lucce_testkit::sampled(&path("sampled.log"));
    lucce_testkit::troubled(&path("lost.log"));
    lucce_testkit::requests(&path("requests.log"), 6000);
    drop(lucce_testkit::running(&path("killed.log")));
    let sample = fs::read(path("sample.log")).unwrap();
    fs::write(path("truncated.log"), &sample[..sample.len() - 200]).unwrap();
    fs::write(path("header.log"), &sample[..50]).unwrap();
    fs::write(path("foreign.log"), "PK\u{3}\u{4} some other file").unwrap();
    dir
}

/// Command, exit code, and why.
const NOT_JUDGED: [(&str, i32, &str); 10] = [
    ("sample.log --base sample.log --through Nope", 2, "Nope"),
    (
        "sample.log --base sample.log --event x",
        2,
        "none of the logs",
    ),
    (
        "lost.log --base sample.log",
        2,
        "12 of 136 events were lost",
    ),
    ("killed.log --base sample.log", 2, "its end is missing"),
    ("sampled.log --base sample.log", 2, "from samples"),
    (
        "sampled.log --base sampled.log",
        2,
        "is within their error of ±",
    ),
    (
        "requests.log --base sample.log",
        2,
        "no allocation was counted",
    ),
    ("truncated.log --base sample.log", 3, "record ends early"),
    ("sample.log --base truncated.log", 3, "record ends early"),
    ("foreign.log --base sample.log", 3, "not a lucce log"),
];

#[test]
fn every_format_reports_unjudged_gates_with_reasons() {
    let logs = logs();
    for (command, code, why) in NOT_JUDGED {
        let command = format!("gate {command} --junit j.xml --markdown m.md");
        let output = lucce(logs.path(), &command);
        assert_eq!(output.status.code(), Some(code), "{command}: {output:?}");
        let junit = fs::read_to_string(logs.path().join("j.xml")).unwrap();
        let markdown = fs::read_to_string(logs.path().join("m.md")).unwrap();
        assert!(
            junit.contains("errors=\"1\"") && junit.contains("<error message=\"not judged: "),
            "{command}: {junit}"
        );
        assert!(
            markdown.starts_with("### lucce gate not judged\n"),
            "{markdown}"
        );
        for text in [&junit, &markdown] {
            assert!(text.contains(why), "{command}: {text}");
            assert!(!text.contains("passed"), "{command}: {text}");
        }
    }
}

/// 400 objects of 4,096 bytes come from some 24 samples: their error is ±41%.
#[test]
fn samples_of_the_heap_are_judged_beyond_their_error() {
    let dir = tempfile::tempdir().unwrap();
    for (name, objects) in [("base", 400), ("more", 440), ("many", 1600)] {
        lucce_testkit::heap_sampled(&dir.path().join(name), objects);
    }
    let gate = |new: &str, sort: &str| {
        let gate = format!("gate {new} --base base --event heap {sort}");
        let output = lucce(dir.path(), &gate);
        (output.status.code(), stdout_text(&output))
    };
    let (code, text) = gate("more", "");
    let reason = "is within their error of ±";
    assert!(code == Some(2) && text.contains(reason), "{text}");
    let (code, text) = gate("many", "");
    assert!(code == Some(1) && text.contains("failed"), "{text}");
    let (code, text) = gate("many", "--sort count");
    let reason = "have no known error: compare bytes";
    assert!(code == Some(2) && text.contains(reason), "{text}");
}

#[test]
fn a_form_is_not_written_over_a_log() {
    let logs = logs();
    let sample = fs::read(logs.path().join("sample.log")).unwrap();
    let packed = lucce_testkit::packed(&sample);
    fs::write(logs.path().join("packed.gz"), packed).unwrap();
    for target in ["moved.log", "truncated.log", "header.log", "packed.gz"] {
        let before = fs::read(logs.path().join(target)).unwrap();
        for form in ["--junit", "--markdown"] {
            let command = format!("gate sample.log --base sample.log {form} {target}");
            let output = lucce(logs.path(), &command);
            assert_eq!(output.status.code(), Some(2), "{command}: {output:?}");
            assert!(String::from_utf8_lossy(&output.stderr).contains(target));
            assert_eq!(fs::read(logs.path().join(target)).unwrap(), before);
        }
    }
    let again = "gate sample.log --base sample.log --junit j.xml --markdown m.md";
    for _ in 0..2 {
        assert_eq!(lucce(logs.path(), again).status.code(), Some(0));
    }
}

fn diff(dir: &Path, command: &str) -> Value {
    let output = lucce(dir, &format!("diff {command} --json"));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{command}: {e}: {output:?}"))
}

#[test]
fn the_order_of_the_runs_does_not_choose_the_kind() {
    let logs = logs();
    for pair in ["requests.log sample.log", "sample.log requests.log"] {
        let diff = diff(logs.path(), pair);
        assert_eq!(
            (&diff["event"], &diff["unit"]),
            (&"alloc".into(), &"bytes".into())
        );
    }
}

#[test]
fn without_lines_moved_contexts_are_one() {
    let logs = logs();
    let moved = diff(logs.path(), "sample.log moved.log");
    assert!(moved["changes"].as_u64().unwrap() > 4, "{moved}");
    assert!(moved["remarks"][0].as_str().unwrap().contains("--no-lines"));
    let joined = diff(logs.path(), "sample.log moved.log --no-lines");
    assert_eq!(joined["total"], moved["total"]);
    assert_eq!(joined["changes"], 1, "{joined}");
    let row = &joined["rows"][0];
    assert_eq!(
        (&row["name"], &row["old"], &row["new"]),
        (
            &"byte[]".into(),
            &vec![40960.0].into(),
            &vec![81920.0].into()
        )
    );
    assert!(joined["remarks"].as_array().unwrap().is_empty());
    // One id in every run, whichever lines it has.
    let alone = diff(logs.path(), "requests.log sample.log --no-lines --top 0");
    let rows = alone["rows"].as_array().unwrap();
    assert!(
        rows.iter()
            .any(|of| of["stack"] == row["stack"] && of["name"] == "byte[]")
    );
    let gate = lucce(logs.path(), "gate moved.log --base sample.log --no-lines");
    let stack = row["stack"].as_str().unwrap();
    assert!(stdout_text(&gate).contains(&format!(
        "byte[]  {stack}\n\tat app.Main.work(Main.java:23)\n"
    )));
    // The lines of the newer run: those of its own report.
    let report = stdout_text(&lucce(logs.path(), "report moved.log --type byte"));
    assert!(report.contains("work(Main.java:23)\n\tat app.Main.main(Main.java:6)"));
    let lines = |row: &Value| [0, 1].map(|at| row["frames"][at]["line"].as_i64());
    assert_eq!(lines(row), [Some(23), Some(6)]);
    let back = diff(logs.path(), "moved.log sample.log --no-lines");
    assert_eq!(lines(&back["rows"][0]), [Some(22), Some(5)]);
}

/// Names of fields.
fn fields(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            into.extend(object.keys().cloned());
            object.values().for_each(|value| fields(value, into));
        }
        Value::Array(list) => list.iter().for_each(|value| fields(value, into)),
        _ => {}
    }
}

/// What docs/reference/json.md says of a command.
fn described(command: &str) -> &'static str {
    let text = include_str!("../../../docs/reference/json.md");
    let head = format!("# What `lucce {command} --json` prints");
    let (_, text) = text.split_once(&head).unwrap();
    text.split("\n## ").next().unwrap()
}

#[test]
fn every_field_is_described() {
    let logs = logs();
    let [mut of_diff, mut of_gate] = [const { BTreeSet::new() }; 2];
    for pair in ["sampled.log lost.log", "killed.log truncated.log"] {
        fields(&diff(logs.path(), pair), &mut of_diff);
    }
    let gate = lucce(logs.path(), "gate moved.log --base lost.log --json");
    assert_eq!(gate.status.code(), Some(2));
    let gate: Value = serde_json::from_slice(&gate.stdout).unwrap();
    assert_eq!(
        (&gate["schema"], &gate["verdict"]),
        (&"lucce-gate".into(), &"not judged".into())
    );
    assert_eq!(gate["runs"][0]["lost"], 12);
    assert!(!gate["rows"].as_array().unwrap().is_empty());
    fields(&gate, &mut of_gate);
    // Those of frames are described with the report.
    let of_frame = ["class", "method", "file", "line", "own"];
    let text = [described("diff"), described("gate")].concat();
    let names = of_diff.iter().map(|name| (name, described("diff")));
    let names = names.chain(of_gate.iter().map(|name| (name, &*text)));
    let undescribed: Vec<_> = names
        .filter(|(name, text)| !text.contains(&format!("`{name}`")))
        .filter(|(name, _)| !of_frame.contains(&name.as_str()))
        .collect();
    assert!(undescribed.is_empty(), "{undescribed:?}");
}
