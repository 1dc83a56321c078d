//! `lucce export --format chrome` against the Trace Event Format: what `about:tracing` and Perfetto want of
//! each event, and that times are in microseconds.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn lucce(dir: &Path, args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_lucce"))
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn micros(value: &Value) -> f64 {
    let number = value.as_f64().unwrap();
    assert!(number.is_finite() && number >= 0.0, "{value}");
    number
}

#[test]
fn each_event_has_the_fields_of_its_phase() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::kinds(&dir.path().join("kinds.log"));
    lucce_testkit::stream::streams(dir.path());
    let text = lucce(dir.path(), &["export", "kinds.log", "--format", "chrome"]);
    let whole: Value = serde_json::from_str(&text).unwrap();
    assert!(["ms", "ns"].contains(&whole["displayTimeUnit"].as_str().unwrap()));
    let frames = whole["stackFrames"].as_object().unwrap();
    for frame in frames.values() {
        assert!(!frame["name"].as_str().unwrap().is_empty());
        let parent = frame.get("parent").map(|parent| parent.as_str().unwrap());
        assert!(
            parent.is_none_or(|parent| frames.contains_key(parent)),
            "{frame}"
        );
    }
    let (mut named, mut bars, mut marks) = (Vec::new(), 0, 0);
    for event in whole["traceEvents"].as_array().unwrap() {
        assert!(event["pid"].is_u64() && event["tid"].is_u64(), "{event}");
        assert!(!event["name"].as_str().unwrap().is_empty());
        let phase = event["ph"].as_str().unwrap();
        if phase == "M" {
            assert_eq!(event["name"], "thread_name");
            assert!(event["args"]["name"].is_string());
            named.push(event["tid"].clone());
            continue;
        }
        assert!(
            named.contains(&event["tid"]),
            "a thread without a name: {event}"
        );
        assert!(
            frames.contains_key(event["sf"].as_str().unwrap()),
            "{event}"
        );
        assert!(event["cat"].is_string() && event["args"].is_object());
        micros(&event["ts"]);
        match phase {
            "X" => {
                // Of an event that lasts the value is its time in nanoseconds.
                let lasted = event["args"]["value"].as_f64().unwrap();
                assert_eq!((micros(&event["dur"]) * 1e3).round(), lasted, "{event}");
                bars += 1;
            }
            "i" => {
                assert!(["g", "p", "t"].contains(&event["s"].as_str().unwrap()));
                assert!(event.get("dur").is_none());
                marks += 1;
            }
            other => panic!("an unknown phase {other}"),
        }
    }
    assert!(bars > 2 && marks > 2, "{bars} bars, {marks} marks");
}

/// An event is entered when it is over: its bar ends at the time that `lucce stream` has.
#[test]
fn times_are_those_of_the_stream() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::kinds(&dir.path().join("kinds.log"));
    lucce_testkit::stream::streams(dir.path());
    let text = lucce(dir.path(), &["export", "kinds.log", "--format", "chrome"]);
    let whole: Value = serde_json::from_str(&text).unwrap();
    let events = whole["traceEvents"].as_array().unwrap();
    let mut ends: Vec<i64> = events
        .iter()
        .filter(|event| event["ph"] != "M")
        .map(|event| {
            let lasted = event.get("dur").map_or(0.0, micros);
            ((micros(&event["ts"]) + lasted) * 1e3).round() as i64
        })
        .collect();
    let lines = lucce(dir.path(), &["stream", "kinds.log", "--json"]);
    let lines = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut times: Vec<i64> = lines.filter_map(|line| line["time"].as_i64()).collect();
    ends.sort_unstable();
    times.sort_unstable();
    assert!(!times.is_empty());
    assert_eq!(ends, times);
}

#[test]
fn frames_are_those_of_events_that_are_there() {
    let dir = tempfile::tempdir().unwrap();
    lucce_testkit::kinds(&dir.path().join("kinds.log"));
    lucce_testkit::stream::streams(dir.path());
    let of = |more: &[&str]| {
        let args = [&["export", "kinds.log", "--format", "chrome"], more].concat();
        let whole: Value = serde_json::from_str(&lucce(dir.path(), &args)).unwrap();
        let frames = whole["stackFrames"].as_object().unwrap().clone();
        let events = whole["traceEvents"].as_array().unwrap().iter();
        let mut used: BTreeSet<String> = events
            .filter_map(|event| Some(event["sf"].as_str()?.to_owned()))
            .collect();
        let parents = frames.values().filter_map(|frame| frame["parent"].as_str());
        used.extend(parents.map(str::to_owned));
        assert_eq!(used.len(), frames.len(), "{whole}");
        frames.len()
    };
    assert!(of(&["--event", "exception"]) < of(&[]));
}
