//! What is added is there once and whole: run by run, after crashes, beside other writers.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use crate::common::{
    add, check_whole, command, engine, lucce_fleet, new_dataset, number, pairs, runs, store, text,
};
use lucce_decoder::Profile;
use lucce_fleet::commits::CommitLog;
use lucce_fleet::engine::{QueryEngine, QueryLimits};
use lucce_fleet::ingest::{IngestOutcome, RunIngester};

#[test]
fn the_tables_say_what_the_log_says() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, log) = (new_dataset(dir.path()), dir.path().join("kinds.log"));
    lucce_testkit::kinds(&log);
    lucce_testkit::stream::streams(dir.path());
    let reports = add(&dataset, std::slice::from_ref(&log));
    assert_eq!(reports[0].outcome, IngestOutcome::New);
    check_whole(&dataset);
    let profile = Profile::open(&log).unwrap();
    let sums = profile.summarize_contexts(&|_| ()).by_kind(&profile);
    let engine = engine(&dataset);
    let counts = pairs(
        &engine,
        "SELECT event, SUM(count) FROM events GROUP BY event",
    );
    let values = pairs(
        &engine,
        "SELECT event, SUM(value) FROM events GROUP BY event",
    );
    let of = |which: fn(&(u64, u64)) -> u64| -> BTreeMap<String, i64> {
        sums.iter()
            .map(|(kind, sum)| (kind.clone(), which(sum) as i64))
            .collect()
    };
    assert_eq!(counts, of(|(count, _)| *count));
    assert_eq!(values, of(|(_, value)| *value));
    // The path of every number, from the trie, is its trace.
    let mut traces = 0;
    for id in profile.events.context_ids() {
        let sql = format!(
            "SELECT CAST(s.depth AS VARCHAR) || ' ' || f.class || '.' || f.method || ':' || CAST(f.line AS VARCHAR), 0
             FROM numbers n JOIN stacks l ON l.stack_id = n.stack_id JOIN through t ON t.stack_id = l.stack_id
             JOIN stacks s ON s.frame_id = t.frame_id JOIN frames f ON f.frame_id = s.frame_id
             WHERE n.number = {} AND s.stack_id = l.stack_id",
            id.0 as i64
        );
        let leaf = pairs(&engine, &sql);
        let trace = profile.decode_trace(id).unwrap();
        let frame = &trace.frames[0];
        let expected = format!(
            "{} {}.{}:{}",
            trace.frames.len(),
            frame.class,
            frame.method,
            frame.line
        );
        assert_eq!(leaf.keys().collect::<Vec<_>>(), [&expected]);
        traces += 1;
    }
    assert!(traces > 4);
    assert_eq!(number(&engine, "SELECT COUNT(*) FROM stream"), 9);
}

#[test]
fn a_run_that_is_there_adds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, log) = (new_dataset(dir.path()), dir.path().join("sample.log"));
    lucce_testkit::sample(&log);
    let copy = dir.path().join("copy.log");
    fs::copy(&log, &copy).unwrap();
    let added = |logs: &[PathBuf]| -> Vec<IngestOutcome> {
        add(&dataset, logs)
            .into_iter()
            .map(|report| report.outcome)
            .collect()
    };
    assert_eq!(
        added(&[log.clone(), copy]),
        [IngestOutcome::New, IngestOutcome::Unchanged]
    );
    let before = CommitLog::open(&store(&dataset))
        .unwrap()
        .read_state()
        .unwrap();
    assert_eq!(added(&[log]), [IngestOutcome::Unchanged]);
    let state = CommitLog::open(&store(&dataset))
        .unwrap()
        .read_state()
        .unwrap();
    assert_eq!((before.number, before.files), (state.number, state.files));
    assert_eq!(check_whole(&dataset).len(), 1);
}

#[test]
fn what_is_no_whole_log_is_refused_and_named_and_the_others_go_in() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    lucce_testkit::sample(&path("good.log"));
    let good = fs::read(path("good.log")).unwrap();
    fs::write(path("cut.log"), &good[..good.len() - 900]).unwrap();
    fs::write(path("foreign.log"), "no log\n").unwrap();
    fs::write(path("empty.log"), "").unwrap();
    fs::write(path("old.log"), lucce_testkit::before_run_ids(&good)).unwrap();
    lucce_testkit::symbols(&path("good.log"), &path("symbols.log"));
    lucce_testkit::untyped(&path("untyped.log"));
    let mut last = good;
    lucce_testkit::rename_run(&mut last, 99);
    fs::write(path("last.log"), last).unwrap();
    let names = [
        "cut", "foreign", "good", "empty", "old", "symbols", "untyped", "missing", "last",
    ];
    let output = lucce_fleet(
        dir.path(),
        &["add", "data", "--service", "shop"],
        &names.map(|name| format!("{name}.log")),
    );
    let (told, said) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(3), "{told}");
    for name in [
        "cut", "foreign", "empty", "old", "symbols", "untyped", "missing",
    ] {
        assert!(
            told.contains(&format!("{name}.log: refused: ")),
            "{name}: {told}"
        );
    }
    assert!(
        said.starts_with("added 2 runs") && said.ends_with("7 refused\n"),
        "{said}"
    );
    assert_eq!(check_whole(&path("data")).len(), 2);
}

#[test]
fn a_run_that_goes_on_adds_what_it_counted_since() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, log) = (new_dataset(dir.path()), dir.path().join("live.log"));
    let (mut writer, counters, _) = lucce_testkit::live(&log);
    let added = || {
        let report = add(&dataset, std::slice::from_ref(&log)).remove(0);
        (report.outcome, report.events)
    };
    assert_eq!(added(), (IngestOutcome::New, 110));
    assert_eq!(added(), (IngestOutcome::Unchanged, 0));
    counters.iter().for_each(|cell| cell.add_events(1000, 0));
    assert_eq!(added(), (IngestOutcome::Extended, 2000));
    assert_eq!(check_whole(&dataset).values().collect::<Vec<_>>(), [&2110]);
    counters.iter().for_each(|cell| cell.add_events(1, 0));
    writer.append(lucce_tracelog::EndRecord).unwrap();
    writer.close().unwrap();
    assert_eq!(added(), (IngestOutcome::Extended, 2));
    assert_eq!(added(), (IngestOutcome::Unchanged, 0));
    assert_eq!(check_whole(&dataset).values().collect::<Vec<_>>(), [&2112]);
    let engine = engine(&dataset);
    let (once, all) = (
        "SELECT COUNT(DISTINCT number) FROM numbers",
        "SELECT COUNT(*) FROM numbers",
    );
    assert_eq!(number(&engine, once), number(&engine, all));
}

/// Writers that know nothing of each other, each with its own runs and one that all of them have.
#[test]
fn writers_at_once_add_each_run_and_each_path_once() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, log) = (new_dataset(dir.path()), dir.path().join("kinds.log"));
    lucce_testkit::kinds(&log);
    let logs = runs(dir.path(), &log, 8);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (dataset, logs) = (&dataset, &logs);
            scope.spawn(move || {
                for log in [writer * 2, writer * 2 + 1, 0] {
                    add(dataset, &logs[log..=log]);
                }
            });
        }
    });
    assert_eq!(check_whole(&dataset).len(), 8);
}

/// Killed at any moment: every run that is there is whole, and what is missing can be added.
#[test]
fn a_crash_leaves_no_half_run() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, log) = (new_dataset(dir.path()), dir.path().join("kinds.log"));
    lucce_testkit::kinds(&log);
    let logs = runs(dir.path(), &log, 12);
    let adding = |log: &PathBuf| {
        let mut add = command(dir.path());
        add.arg("add").arg(&dataset).args(["--service", "shop"]);
        add.arg(log).spawn().unwrap()
    };
    let start = Instant::now();
    assert!(adding(&logs[1]).wait().unwrap().success());
    let whole = start.elapsed();
    let mut killed = 0;
    for (round, log) in (0..).zip(&logs) {
        let mut child = adding(log);
        // From the beginning to the end of what one has taken.
        std::thread::sleep(whole * round / 10);
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        check_whole(&dataset);
    }
    assert!(killed > 0);
    add(&dataset, &logs);
    assert_eq!(check_whole(&dataset).len(), logs.len());
}

/// What a crash leaves behind, made by hand: files in their places that no commit names, and a half commit.
#[test]
fn files_without_a_commit_are_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, log) = (dir.path().join("data"), dir.path().join("kinds.log"));
    lucce_testkit::kinds(&log);
    let logs = runs(dir.path(), &log, 2);
    add(&dataset, &logs[..1]);
    let before = check_whole(&dataset);
    add(&dataset, &logs[1..]);
    let commits = dataset.join("commits");
    fs::remove_file(commits.join("0000000002.json")).unwrap();
    fs::write(dataset.join("temporary/half.json"), "{\"version\":1,").unwrap();
    assert_eq!(check_whole(&dataset), before);
    add(&dataset, &logs[1..]);
    assert_eq!(check_whole(&dataset).len(), 2);
}

#[test]
fn folders_that_are_no_datasets_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("sample.log");
    lucce_testkit::sample(&log);
    let told = RunIngester::open(&store(dir.path()))
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(told.contains("not empty"), "{told}");
    let told = QueryEngine::open(&store(dir.path()), &QueryLimits::default())
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(told.contains("no dataset"), "{told}");
    let dataset = dir.path().join("data");
    add(&dataset, &[log]);
    let mark = dataset.join("lucce-fleet.json");
    fs::write(&mark, "{\"schema\":\"lucce-fleet\",\"version\":99}").unwrap();
    let told = RunIngester::open(&store(&dataset))
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(told.contains("version 99"), "{told}");
}

/// The sample, whose thread 2 counts under tags.
fn tagged(path: &std::path::Path) {
    lucce_testkit::tagged(path, &[("tenant", "a"), ("endpoint", "/search")]);
}

const BY_TAGS: &str = "SELECT tags, SUM(count) FROM events GROUP BY tags";

#[test]
fn tags_tell_events_apart() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, log) = (new_dataset(dir.path()), dir.path().join("tagged.log"));
    tagged(&log);
    for log in runs(dir.path(), &log, 2) {
        add(&dataset, &[log]);
    }
    check_whole(&dataset);
    // Of each run 116 in thread 1 and 8 in thread 2.
    let expected = BTreeMap::from([
        (String::new(), 2 * 116),
        ("endpoint=/search, tenant=a".to_owned(), 2 * 8),
    ]);
    assert_eq!(pairs(&engine(&dataset), BY_TAGS), expected);
    // Context B is counted with and without.
    let both = "SELECT COUNT(*) FROM (SELECT stack_id FROM events GROUP BY stack_id HAVING COUNT(DISTINCT tags) = 2)";
    assert_eq!(number(&engine(&dataset), both), 1);
    let compact = ["compact", dataset.to_str().unwrap(), "--runs=1d"];
    let compacted = lucce_fleet(dir.path(), &compact, &[]);
    assert!(compacted.status.success(), "{}", text(&compacted.stderr));
    assert!(text(&compacted.stdout).contains("2 runs became sums"));
    assert_eq!(pairs(&engine(&dataset), BY_TAGS), expected);
}

/// A dataset that version 1 made, of the run of `lucce_testkit::kinds`: it is read, added to and compacted.
#[test]
fn a_dataset_of_version_1_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = dir.path().join("data");
    let old = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/version-1");
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .arg(old)
        .arg(&dataset)
        .status();
    assert!(copied.unwrap().success());
    let log = dir.path().join("kinds.log");
    lucce_testkit::kinds(&log);
    let before = check_whole(&dataset);
    assert_eq!(before.keys().collect::<Vec<_>>(), ["0123456789abcdef"]);
    assert_eq!(add(&dataset, &[log])[0].outcome, IngestOutcome::Unchanged);
    let untagged = "SELECT CASE WHEN tags IS NULL THEN 'not known' ELSE tags END, SUM(count) FROM events GROUP BY tags";
    let all = before["0123456789abcdef"];
    let not_known = ("not known".to_owned(), all);
    assert_eq!(
        pairs(&engine(&dataset), untagged),
        BTreeMap::from([not_known.clone()])
    );
    let log = dir.path().join("tagged.log");
    tagged(&log);
    let logs = runs(dir.path(), &log, 1);
    assert_eq!(add(&dataset, &logs)[0].outcome, IngestOutcome::New);
    let expected = BTreeMap::from([
        not_known,
        (String::new(), 116),
        ("endpoint=/search, tenant=a".to_owned(), 8),
    ]);
    assert_eq!(pairs(&engine(&dataset), untagged), expected);
    let compacted = lucce_fleet(dir.path(), &["compact", "data"], &[]);
    assert!(compacted.status.success(), "{}", text(&compacted.stderr));
    check_whole(&dataset);
    assert_eq!(pairs(&engine(&dataset), untagged), expected);
    let top = lucce_fleet(
        dir.path(),
        &["ask", "top", "--dataset=data", "--output=csv"],
        &[],
    );
    assert!(
        text(&top.stdout).contains("app.Main"),
        "{}",
        text(&top.stderr)
    );
}
