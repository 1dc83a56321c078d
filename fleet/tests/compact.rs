//! Few files instead of many, and old runs as sums: what is asked before and behind has one answer.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use common::{add, check_whole, engine, fixture, number, pairs, runs};
use lucce_decoder::ContextId;
use lucce_fleet::commits::{Log, State};
use lucce_fleet::compact::{Done, Policy, compact};
use lucce_fleet::engine::{Engine, Limits};
use lucce_fleet::error::Error;
use lucce_fleet::layout::Table;
use lucce_fleet::numbers;

const DAY: Duration = Duration::from_secs(86_400);

/// `days`: how old the fixtures' runs are.
fn policy(days: u32) -> Policy {
    let start = SystemTime::UNIX_EPOCH + Duration::from_nanos(fixture::HEADER.start);
    Policy {
        numbers: None,
        runs: None,
        sums: None,
        grace: Duration::from_secs(3600),
        now: start + DAY * days,
    }
}

fn done(dataset: &Path, policy: &Policy) -> Done {
    let limits = Limits {
        memory: Some(256 << 20),
        ..Limits::default()
    };
    compact(dataset, policy, &limits).unwrap()
}

fn state(dataset: &Path) -> State {
    Log::open(dataset).unwrap().state().unwrap()
}

/// Five runs, each in files of its own; the number of one context of the first.
fn five(dir: &Path) -> (PathBuf, ContextId) {
    let (dataset, log) = (dir.join("data"), dir.join("kinds.log"));
    let ids = fixture::kinds(&log);
    for log in runs(dir, &log, 5) {
        add(&dataset, &[log]);
    }
    (dataset, ids[&'A'])
}

/// What must not change.
fn sums(dataset: &Path) -> [BTreeMap<String, i64>; 3] {
    let engine = engine(dataset);
    [
        "SELECT event || type || stack_id, SUM(count) FROM events GROUP BY event || type || stack_id",
        "SELECT event || thread_kind, SUM(value) FROM events GROUP BY event || thread_kind",
        "SELECT service || version, SUM(runs) FROM runs GROUP BY service || version",
    ]
    .map(|sql| pairs(&engine, sql))
}

#[test]
fn fewer_files_have_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, id) = five(dir.path());
    let (whole, before) = (check_whole(&dataset), sums(&dataset));
    // A reader that began before goes on.
    let old = state(&dataset);
    let did = done(&dataset, &policy(1));
    assert!(did.behind < did.before, "{did:?}");
    assert_eq!(
        (check_whole(&dataset), sums(&dataset)),
        (whole, before.clone())
    );
    let reader = Engine::of(&dataset, &old, &Limits::default()).unwrap();
    let sql = "SELECT service || version, SUM(runs) FROM runs GROUP BY service || version";
    assert_eq!(pairs(&reader, sql), before[2]);
    let state = state(&dataset);
    for table in Table::ALL {
        assert!(state.of(table).count() <= 1, "{table:?}");
    }
    assert!(numbers::trace(&dataset, &state, "0000000000000001", id).is_ok());
    // Again: there is nothing to do.
    assert_eq!(done(&dataset, &policy(1)).gone, 0);
    assert_eq!(common_files(&dataset), common_files(&dataset));
    // Once the grace is over, the old files are gone.
    let late = Policy {
        now: SystemTime::now() + DAY,
        ..policy(1)
    };
    assert!(done(&dataset, &late).gone > 10);
    assert_eq!(sums(&dataset), before);
    assert!(
        Log::open(&dataset)
            .unwrap()
            .state()
            .unwrap()
            .removed
            .is_empty()
    );
}

fn common_files(dataset: &Path) -> usize {
    state(dataset).files.len()
}

#[test]
fn old_numbers_go_and_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, id) = five(dir.path());
    let before = sums(&dataset);
    let keep = |days| Policy {
        numbers: Some(7),
        ..policy(days)
    };
    done(&dataset, &keep(7));
    assert!(numbers::trace(&dataset, &state(&dataset), "0000000000000001", id).is_ok());
    done(&dataset, &keep(9));
    let told = |run| match numbers::trace(&dataset, &state(&dataset), run, id) {
        Err(Error::Absent(told)) => told,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        told("0000000000000001"),
        "the numbers of run 0000000000000001 are not kept any more"
    );
    assert_eq!(
        told("00000000000000ff"),
        "run 00000000000000ff is not in the dataset"
    );
    assert_eq!(sums(&dataset), before);
    assert_eq!(number(&engine(&dataset), "SELECT COUNT(*) FROM numbers"), 0);
}

#[test]
fn old_runs_are_sums_of_which_questions_have_the_same_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, _) = five(dir.path());
    let before = sums(&dataset);
    let keep = |days| Policy {
        runs: Some(30),
        ..policy(days)
    };
    assert_eq!(done(&dataset, &keep(30)).summed, 0);
    assert_eq!(done(&dataset, &keep(32)).summed, 5);
    assert_eq!(sums(&dataset), before);
    assert_eq!(check_whole(&dataset).len(), 1);
    assert_eq!(number(&engine(&dataset), "SELECT COUNT(*) FROM numbers"), 0);
    // They are known: added again they change nothing, and a run that comes late joins the sum.
    let logs = runs(dir.path(), &dir.path().join("kinds.log"), 6);
    add(&dataset, &logs);
    assert_eq!(check_whole(&dataset).len(), 2);
    assert_eq!(done(&dataset, &keep(32)).summed, 1);
    let whole = check_whole(&dataset);
    assert_eq!(whole.len(), 1);
    assert!(whole.keys().all(|run| run.starts_with("sum-")));
    assert_eq!(number(&engine(&dataset), "SELECT SUM(runs) FROM runs"), 6);
    let gone = Policy {
        sums: Some(365),
        ..policy(400)
    };
    done(&dataset, &gone);
    assert_eq!(number(&engine(&dataset), "SELECT COUNT(*) FROM events"), 0);
}

/// One that has never ended, and whose events are those of two commits.
#[test]
fn a_run_that_was_killed_becomes_a_part_of_the_sum() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, log) = (dir.path().join("data"), dir.path().join("live.log"));
    let (_writer, counters, _) = fixture::live(&log);
    add(&dataset, std::slice::from_ref(&log));
    counters.iter().for_each(|cell| cell.add(1, 0));
    add(&dataset, &[log]);
    let before = sums(&dataset);
    // What was counted later was added today.
    let late = Policy {
        runs: Some(30),
        now: SystemTime::now() + DAY * 40,
        ..policy(1)
    };
    assert_eq!(done(&dataset, &late).summed, 1);
    assert_eq!(sums(&dataset), before);
    assert_eq!(check_whole(&dataset).len(), 1);
    let left = state(&dataset);
    let own = left.files.values().filter(|entry| entry.run.is_some());
    assert_eq!(own.count(), 0);
}

/// Many small additions while others compact: nothing is lost and nothing is there twice.
#[test]
fn writers_go_on_while_files_are_merged() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, log) = (dir.path().join("data"), dir.path().join("kinds.log"));
    fixture::kinds(&log);
    let logs = runs(dir.path(), &log, 10);
    add(&dataset, &logs[..2]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            logs[2..]
                .iter()
                .for_each(|log| drop(add(&dataset, std::slice::from_ref(log))))
        });
        for _ in 0..2 {
            scope.spawn(|| (0..3).for_each(|_| assert!(done(&dataset, &policy(1)).behind > 0)));
        }
    });
    assert_eq!(check_whole(&dataset).len(), 10);
}
