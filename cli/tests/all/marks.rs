//! Marks of a log: reports between them have the differences, resets are the default start, and unfinished marks are none.

use std::path::Path;
use std::process::{Command, Output};

use lucce_tracelog::{
    EndRecord, EventTypeId, LogWriter, MarkRecord, MarkedCounter, MarkedCounters, ThreadId,
};
use serde_json::{Value, json};

/// Writes a mark of the sample's contexts A and C. `None`: its last record is missing.
fn mark(
    writer: &mut LogWriter,
    ids: &lucce_testkit::Ids,
    (id, name, is_reset): (u32, Option<&'static str>, bool),
    counts: [u64; 2],
) {
    let counters = ['A', 'C'].into_iter().zip(counts);
    let counters = counters.map(|(context, count)| MarkedCounter {
        context: ids[&context],
        event: EventTypeId(0),
        count,
        value: if context == 'C' { count * 4096 } else { 0 },
    });
    let counters = MarkedCounters {
        mark: id,
        thread: ThreadId(1),
        counters: counters.collect(),
    };
    writer.append(counters).unwrap();
    if let Some(name) = name {
        let mark = MarkRecord {
            id,
            is_reset,
            at_ns: u64::from(id) * 1_250_000_000,
            counters: 2,
            name: name.into(),
        };
        writer.append(mark).unwrap();
    }
}

/// A run that counts 100 events of A and 10 of C.
fn marked(path: &Path) {
    let (mut writer, counters, ids) = lucce_testkit::live(path);
    mark(&mut writer, &ids, (1, Some("warm"), false), [60, 4]);
    mark(&mut writer, &ids, (2, Some("reset"), true), [70, 4]);
    mark(
        &mut writer,
        &ids,
        (3, Some("\u{1b}[2Jend of load"), false),
        [90, 10],
    );
    // The JVM was killed while it wrote this one.
    mark(&mut writer, &ids, (4, None, true), [95, 10]);
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
    drop(counters);
}

fn lucce(dir: &Path, args: &[&str]) -> Output {
    let mut lucce = Command::new(env!("CARGO_BIN_EXE_lucce"));
    lucce.args(args).current_dir(dir).output().unwrap()
}

fn json_of(dir: &Path, args: &[&str]) -> Value {
    let output = lucce(dir, args);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

#[test]
fn reports_between_marks_have_the_differences() {
    let dir = tempfile::tempdir().unwrap();
    marked(&dir.path().join("run.log"));
    let load = "\u{1b}[2Jend of load";
    for (interval, count) in [
        (&["--since", "start"][..], 110),
        (&[], 36),
        (&["--since", "reset"], 36),
        (&["--since", "warm"], 46),
        (&["--since", load], 10),
        (&["--until", "warm"], 64),
        // The default start is the last reset before the end.
        (&["--until", load], 26),
        (&["--since", "warm", "--until", load], 36),
        (&["--since", "warm", "--until", "warm"], 0),
    ] {
        let args = [&["report", "run.log", "--json"], interval].concat();
        let report = json_of(dir.path(), &args);
        assert_eq!(report["totals"]["count"], count, "{interval:?}");
        assert_eq!(
            report["interval"].is_null(),
            interval == ["--since", "start"]
        );
        assert!(report["coverage"].is_null() || interval == ["--since", "start"]);
        let table = json_of(dir.path(), &[&args[..], &["--by", "type"]].concat());
        let rows = table["rows"].as_array().unwrap().iter();
        let sum: u64 = rows.map(|row| row["count"].as_u64().unwrap()).sum();
        assert_eq!(sum, count, "{interval:?}");
    }
    let report = json_of(
        dir.path(),
        &["report", "run.log", "--json", "--until", load],
    );
    let expected = json!({
        "since": {"name": "reset", "at_ms": 2500, "reset": true},
        "until": {"name": load, "at_ms": 3750, "reset": false},
    });
    assert_eq!(report["interval"], expected);
    let bytes = json_of(
        dir.path(),
        &["report", "run.log", "--json", "--since", "warm"],
    );
    let rows = bytes["contexts"].as_array().unwrap().iter();
    let arrays: u64 = rows
        .filter_map(|row| (row["count"] == 6).then(|| row["value"].as_u64())?)
        .sum();
    assert_eq!(arrays, 6 * 4096);
}

#[test]
fn texts_name_the_interval_and_refusals_the_marks() {
    let dir = tempfile::tempdir().unwrap();
    marked(&dir.path().join("run.log"));
    let text = |args: &[&str]| {
        let output = lucce(dir.path(), args);
        let all = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(all).unwrap())
    };
    let (_, head) = text(&["report", "run.log"]);
    let hint = "; counted since the reset at 2.500 s (--since start: the whole run)\n";
    assert!(head.contains(hint), "{head}");
    let (_, tree) = text(&["report", "run.log", "--tree", "--since", "warm"]);
    assert!(
        tree.contains("; counted since mark warm at 1.250 s\n"),
        "{tree}"
    );
    assert!(!tree.ends_with("\n\n"), "{tree:?}");
    let (code, unknown) = text(&["report", "run.log", "--since", "cold"]);
    let marks = "no mark cold; the log has warm (1.250 s), reset (2.500 s), \\u001b[2Jend of load (3.750 s)";
    assert_eq!(code, Some(2));
    assert!(unknown.contains(marks), "{unknown}");
    let (code, reversed) = text(&["view", "run.log", "--since", "reset", "--until", "warm"]);
    assert_eq!(code, Some(2));
    assert!(
        reversed.contains("--since is later than --until"),
        "{reversed}"
    );
    lucce_testkit::sample(&dir.path().join("plain.log"));
    let (code, none) = text(&["diff", "plain.log", "run.log", "--since", "warm"]);
    assert_eq!(code, Some(2));
    assert!(
        none.contains("plain.log: no mark warm: the log has no marks"),
        "{none}"
    );
    let (code, page) = text(&["view", "run.log", "--since", "warm", "-o", "page.html"]);
    assert_eq!(code, Some(0), "{page}");
    let html = std::fs::read_to_string(dir.path().join("page.html")).unwrap();
    assert!(html.contains("Events are counted since mark warm at 1.250 s."));
}

/// All of a mark's bytes can be lost: the rest of the log stays readable, and the mark is gone.
#[test]
fn a_mark_with_missing_counters_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.log");
    let (mut writer, counters, _) = lucce_testkit::live(&path);
    let lost = MarkRecord {
        id: 1,
        is_reset: true,
        at_ns: 1,
        counters: 5,
        name: "lost".into(),
    };
    writer.append(lost).unwrap();
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
    drop(counters);
    let report = json_of(dir.path(), &["report", "run.log", "--json"]);
    assert_eq!(report["totals"]["count"], 110);
    assert_eq!(
        report["damage"]["reason"],
        "a mark without all of its counters"
    );
}
