//! Tags of a program's own: sums by tag are the whole, and one tag is what its threads counted.

use std::path::Path;
use std::process::{Command, Output};

use lucce_decoder::{Profile, ThreadId};
use lucce_stream::{EventCursor, StreamHeader, StreamWriter, events_path};
use lucce_tracelog::InMemoryLog;
use serde_json::Value;

/// The sample, whose second thread counts under two tags.
fn tagged(path: &Path) -> lucce_testkit::Ids {
    lucce_testkit::tagged(path, &[("endpoint", "/a"), ("tenant", "\u{1b}[2J<b>")])
}

fn lucce(dir: &Path, args: &[&str]) -> Output {
    let mut lucce = Command::new(env!("CARGO_BIN_EXE_lucce"));
    lucce.args(args).current_dir(dir).output().unwrap()
}

fn json(dir: &Path, args: &[&str]) -> Value {
    let output = lucce(dir, args);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

const TAGS: &str = "endpoint=/a, tenant=\\u001b[2J<b>";

/// In JSON, behind its own escapes.
const RAW: &str = "endpoint=/a, tenant=\u{1b}[2J<b>";

#[test]
fn sums_by_tag_are_the_whole_and_one_tag_is_its_part() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("tagged.log");
    tagged(&log);
    let profile = Profile::open(&log).unwrap();
    let of = |thread| {
        let shares = profile.events.as_slice().iter();
        let own = shares.filter(|share| share.thread == ThreadId(thread));
        own.map(|share| share.count).sum::<u64>()
    };
    let (first, second) = (of(1), of(2));
    assert!(first > 0 && second > 0);
    let report = |more: &[&str]| {
        json(
            dir.path(),
            &[&["report", "tagged.log", "--json"], more].concat(),
        )
    };
    let by = report(&["--by", "tag"]);
    let rows = by["rows"].as_array().unwrap();
    let count = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap()["count"].as_u64();
    assert_eq!((count(RAW), count("(no tag)")), (Some(second), Some(first)));
    assert_eq!(report(&[])["totals"]["count"], first + second);
    let part = report(&["--tag", "endpoint=/a"]);
    assert_eq!(part["totals"]["count"], second);
    assert!(part["coverage"].is_null());
    assert_eq!(
        report(&["--tag", "endpoint=/a", "--tag", "tenant=\u{1b}[2J<b>"])["totals"]["count"],
        second
    );
}

#[test]
fn an_unknown_tag_is_reported_with_the_known_ones() {
    let dir = tempfile::tempdir().unwrap();
    tagged(&dir.path().join("tagged.log"));
    lucce_testkit::sample(&dir.path().join("sample.log"));
    for (log, message) in [("tagged.log", TAGS), ("sample.log", "it has no tags")] {
        let output = lucce(dir.path(), &["report", log, "--tag", "endpoint=/b"]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(
            stderr.contains("endpoint=/b") && stderr.contains(message),
            "{stderr}"
        );
    }
}

#[test]
fn differences_gates_exports_and_pages_know_tags() {
    let dir = tempfile::tempdir().unwrap();
    tagged(&dir.path().join("tagged.log"));
    lucce_testkit::sample(&dir.path().join("sample.log"));
    let tag = ["--tag", "endpoint=/a"];
    let run = |args: &[&str]| {
        let output = lucce(dir.path(), &[args, &tag].concat());
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let diff = run(&["diff", "tagged.log", "tagged.log", "--json", "--by", "tag"]);
    let diff: Value = serde_json::from_str(&diff).unwrap();
    assert_eq!(
        (&diff["changes"], &diff["total"]["change"]),
        (&0.into(), &0.0.into())
    );
    run(&[
        "gate",
        "tagged.log",
        "--base",
        "tagged.log",
        "--max-growth",
        "3%",
    ]);
    let whole = lucce(
        dir.path(),
        &["export", "tagged.log", "--format", "collapsed"],
    );
    let part = run(&["export", "tagged.log", "--format", "collapsed"]);
    assert!(!part.is_empty() && part.len() < whole.stdout.len());
    run(&["view", "tagged.log", "-o", "page.html"]);
    lucce(dir.path(), &["view", "tagged.log", "-o", "all.html"]);
    let page = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert!(page("page.html").contains("Only what happened under the tag endpoint=/a is shown."));
    let all = page("all.html");
    assert!(
        all.contains(r#""tags":["(no tag)","endpoint=/a, tenant="#)
            || all.contains(r#""tags":["endpoint=/a, tenant="#)
    );
    let refused = lucce(
        dir.path(),
        &[&["export", "tagged.log", "--format", "chrome"], &tag[..]].concat(),
    );
    assert_eq!(refused.status.code(), Some(2));
}

/// An allocation in each thread's first context.
fn stream(log: &Path, ids: &lucce_testkit::Ids) {
    let of = *InMemoryLog::open(log).unwrap().header();
    let header = StreamHeader {
        pid: of.pid,
        start: of.start,
        clock: 0,
    };
    let writer = StreamWriter::create(&events_path(log), &header, 1 << 20).unwrap();
    for (thread_id, name, context) in [(1, "main", 'A'), (2, "worker-1", 'D')] {
        let thread = writer.add_thread(ThreadId(thread_id), name, false).unwrap();
        let place = EventCursor::default();
        place.renew_block(&writer, (ThreadId(thread_id), thread), 1);
        assert!(place.write_event(1, 0, ids[&context].0, 0));
    }
    writer.finish_stream(2);
}

#[test]
fn single_events_have_their_tags() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("tagged.log");
    let ids = tagged(&log);
    stream(&log, &ids);
    let run = |more: &[&str]| {
        let output = lucce(dir.path(), &[&["stream", "tagged.log"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = run(&[]);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].contains("  main  alloc  "), "{text}");
    let middle = format!("  worker-1  [{TAGS}]  alloc  ");
    assert!(lines[1].contains(&middle), "{text}");
    let only = run(&["--tag", "endpoint=/a"]);
    assert_eq!(only.lines().collect::<Vec<_>>(), lines[1..]);
    let json = run(&["--json"]);
    let json: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(json.len(), 2);
    assert!(json[0].get("tags").is_none());
    assert_eq!(
        json[1]["tags"],
        serde_json::json!({"endpoint": "/a", "tenant": "\u{1b}[2J<b>"})
    );
    let csv = run(&["--csv"]);
    let ends: Vec<_> = csv
        .lines()
        .map(|line| line.rsplit_once("),").unwrap_or((line, "")).1)
        .collect();
    // Behind the tags is the content id.
    let stack = |line: usize| json[line]["stack"].as_str().unwrap();
    assert_eq!(
        ends,
        [
            "",
            &format!(",{}", stack(0)),
            &format!("\"{TAGS}\",{}", stack(1))
        ]
    );
    let refused = lucce(
        dir.path(),
        &["stream", "tagged.log", "--tag", "endpoint=/b"],
    );
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}
