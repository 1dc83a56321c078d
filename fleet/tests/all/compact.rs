//! Few files instead of many, and old runs as sums: what is asked before and behind has one answer.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::common::{add, check_whole, engine, new_dataset, number, pairs, runs, store};
use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::SortOptions;
use arrow::row::{RowConverter, SortField};
use lucce_decoder::ContextId;
use lucce_fleet::commits::{Commit, CommitLog, DatasetFile, DatasetState};
use lucce_fleet::compact::{CompactReport, RetentionPolicy, compact_dataset};
use lucce_fleet::engine::{QueryEngine, QueryLimits};
use lucce_fleet::error::FleetError;
use lucce_fleet::layout::{DatasetTable, TEMPORARY, VERSION, resolve_path};
use lucce_fleet::numbers;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

const DAY: Duration = Duration::from_secs(86_400);

/// `days`: how old the fixtures' runs are.
fn policy(days: u32) -> RetentionPolicy {
    let start = SystemTime::UNIX_EPOCH + Duration::from_nanos(lucce_testkit::HEADER.start);
    RetentionPolicy {
        numbers: None,
        runs: None,
        sums: None,
        grace: Duration::from_secs(3600),
        now: start + DAY * days,
    }
}

fn done(dataset: &Path, policy: &RetentionPolicy) -> CompactReport {
    within(dataset, policy, 256 << 20)
}

/// The least that `--memory` takes.
const LEAST: usize = 16 << 20;

fn within(dataset: &Path, policy: &RetentionPolicy, memory: usize) -> CompactReport {
    let limits = QueryLimits {
        memory: Some(memory),
        ..QueryLimits::default()
    };
    compact_dataset(&store(dataset), policy, &limits).unwrap()
}

fn state(dataset: &Path) -> DatasetState {
    CommitLog::open(&store(dataset))
        .unwrap()
        .read_state()
        .unwrap()
}

/// Five runs, each in files of its own; the number of one context of the first.
fn five(dir: &Path) -> (PathBuf, ContextId) {
    five_at(new_dataset(dir), dir)
}

fn five_at(dataset: PathBuf, dir: &Path) -> (PathBuf, ContextId) {
    let log = dir.join("kinds.log");
    let ids = lucce_testkit::kinds(&log);
    for log in runs(dir, &log, 5) {
        add(&dataset, &[log]);
    }
    (dataset, ids[&'A'])
}

/// Their answers must not change.
const SUMS: [&str; 3] = [
    "SELECT event || type || stack_id, SUM(count) FROM events GROUP BY event || type || stack_id",
    "SELECT event || thread_kind, SUM(value) FROM events GROUP BY event || thread_kind",
    "SELECT service || version, SUM(runs) FROM runs GROUP BY service || version",
];

fn sums(dataset: &Path) -> [BTreeMap<String, i64>; 3] {
    let engine = engine(dataset);
    SUMS.map(|sql| pairs(&engine, sql))
}

#[test]
fn fewer_files_have_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, id) = five(dir.path());
    let (whole, before) = (check_whole(&dataset), sums(&dataset));
    check_order(&dataset);
    // A reader that began before goes on.
    let old = state(&dataset);
    let did = done(&dataset, &policy(1));
    assert!(did.files_after < did.files_before, "{did:?}");
    assert_eq!(
        (check_whole(&dataset), sums(&dataset)),
        (whole, before.clone())
    );
    let reader = QueryEngine::with_state(&store(&dataset), &old, &QueryLimits::default()).unwrap();
    assert_eq!(pairs(&reader, SUMS[2]), before[2]);
    let state = state(&dataset);
    for table in DatasetTable::ALL {
        assert!(state.files_of(table).count() <= 1, "{table:?}");
    }
    check_order(&dataset);
    assert!(numbers::decode_trace(&store(&dataset), &state, "0000000000000001", id).is_ok());
    // Again: there is nothing to do.
    assert_eq!(done(&dataset, &policy(1)).files_removed, 0);
    assert_eq!(common_files(&dataset), common_files(&dataset));
    // Once the grace is over, the old files are gone.
    let late = RetentionPolicy {
        now: SystemTime::now() + DAY,
        ..policy(1)
    };
    assert!(done(&dataset, &late).files_removed > 10);
    assert_eq!(sums(&dataset), before);
    // A reader from before has the right answer of what it has read already, or none; it never has fewer rows.
    assert_eq!(pairs(&reader, SUMS[2]), before[2]);
    let new = QueryEngine::with_state(&store(&dataset), &old, &QueryLimits::default()).unwrap();
    for (reader, sql) in SUMS.map(|sql| (&new, sql)).into_iter().chain([
        (&new, "SELECT COUNT(*) FROM events"),
        (&reader, SUMS[0]),
        (&reader, SUMS[1]),
    ]) {
        let message = reader.collect_rows(sql).unwrap_err().to_string();
        assert!(message.contains("not found"), "{sql}: {message}");
        assert!(message.contains(".parquet"), "{sql}: {message}");
    }
    assert!(
        CommitLog::open(&store(&dataset))
            .unwrap()
            .read_state()
            .unwrap()
            .removed
            .is_empty()
    );
}

fn common_files(dataset: &Path) -> usize {
    state(dataset).files.len()
}

fn batches(dataset: &Path, entry: &DatasetFile) -> Vec<RecordBatch> {
    let file = store(dataset).fetch_file(&entry.path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file.open().unwrap()).unwrap();
    reader.build().unwrap().map(Result::unwrap).collect()
}

/// Who merges files counts on it.
fn check_order(dataset: &Path) {
    let state = state(dataset);
    for table in DatasetTable::ALL {
        let schema = table.schema();
        let options = SortOptions {
            descending: false,
            nulls_first: false,
        };
        let fields = table.sort_columns().iter().map(|name| {
            let of = schema.field_with_name(name).unwrap().data_type().clone();
            SortField::new_with_options(of, options)
        });
        let converter = RowConverter::new(fields.collect()).unwrap();
        for entry in state.files_of(table) {
            let of = batches(dataset, entry).into_iter().map(|batch| {
                let column = |name: &&str| batch.column_by_name(name).unwrap().clone();
                let columns: Vec<_> = table.sort_columns().iter().map(column).collect();
                converter.convert_columns(&columns).unwrap()
            });
            let keys: Vec<_> = of.collect();
            assert!(keys.iter().flatten().is_sorted(), "{table:?}");
        }
    }
}

/// As many ids as wanted, which look like any; the same for a seed.
fn ids(seed: u64) -> impl Iterator<Item = String> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    std::iter::from_fn(move || Some(format!("{:016x}{:016x}", next(), next())))
}

type Through = [String; 3];

/// Many contexts through few frames, as a further run of a large program adds them.
fn through(seed: u64, contexts: usize, depth: usize) -> Vec<Through> {
    let frames: Vec<String> = ids(7).take(200).collect();
    let mut rows = Vec::new();
    for (at, stack) in ids(seed).take(contexts).enumerate() {
        for level in 0..depth {
            let frame = |at: usize| frames[at % frames.len()].clone();
            rows.push([stack.clone(), frame(at * 3 + level), frame(at + level * 5)]);
        }
    }
    rows.sort_unstable();
    rows
}

/// One more file of `through`.
fn add_through(dataset: &Path, name: &str, rows: &[Through]) {
    let mut entry = DatasetFile {
        table: DatasetTable::Through,
        path: format!("through/{name}.parquet"),
        rows: rows.len() as u64,
        bytes: 0,
        part: None,
        run: None,
    };
    let column = |at: usize| {
        Arc::new(StringArray::from_iter_values(
            rows.iter().map(|row| &row[at]),
        ))
    };
    let columns: Vec<ArrayRef> = vec![column(0), column(1), column(2)];
    let schema = DatasetTable::Through.schema();
    let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
    let path = resolve_path(dataset, &entry.path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    entry.bytes = fs::metadata(path).unwrap().len();
    let log = CommitLog::open(&store(dataset)).unwrap();
    let mut state = log.read_state().unwrap();
    let commit = Commit {
        version: VERSION,
        add: vec![entry],
        ..Commit::default()
    };
    assert!(log.append_commit(&mut state, commit).unwrap());
}

fn rows_of_through(dataset: &Path) -> Vec<Through> {
    let mut rows = Vec::new();
    for entry in state(dataset).files_of(DatasetTable::Through) {
        for batch in batches(dataset, entry) {
            let columns = [0, 1, 2].map(|at| batch.column(at).as_string::<i32>());
            let row = |at: usize| columns.map(|column| column.value(at).to_owned());
            rows.extend((0..batch.num_rows()).map(row));
        }
    }
    rows
}

/// Files of a whole that is many times the memory, and one of them that is out of order and larger than what is sorted at a time.
#[test]
fn files_are_merged_that_have_no_room_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, _) = five_at(dir.path().join("data"), dir.path());
    let mut all = rows_of_through(&dataset);
    for seed in 1..=30 {
        let rows = through(seed, 300, 10);
        add_through(&dataset, &seed.to_string(), &rows);
        all.extend(rows);
    }
    let mut turned = through(99, 2500, 12);
    turned.reverse();
    add_through(&dataset, "turned", &turned);
    all.extend(turned);
    let before = sums(&dataset);
    let did = within(&dataset, &policy(1), LEAST);
    assert!(did.files_before > 30 && did.files_after < 20, "{did:?}");
    all.sort_unstable();
    let merged = rows_of_through(&dataset);
    assert!(merged == all, "{} of {}", merged.len(), all.len());
    assert_eq!(sums(&dataset), before);
    check_order(&dataset);
    let left = fs::read_dir(dataset.join(TEMPORARY)).unwrap();
    assert_eq!(left.count(), 0);
    // What is in order now is merged with what comes then.
    let more = through(100, 10, 12);
    add_through(&dataset, "more", &more);
    within(&dataset, &policy(1), LEAST);
    all.extend(more);
    all.sort_unstable();
    assert!(rows_of_through(&dataset) == all);
}

/// Nothing is lost by it: the small files stay.
#[test]
fn a_damaged_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, _) = five_at(dir.path().join("data"), dir.path());
    let of = state(&dataset);
    let path = &of.files_of(DatasetTable::Events).last().unwrap().path;
    let whole = resolve_path(&dataset, path);
    let bytes = fs::read(&whole).unwrap();
    fs::write(&whole, &bytes[..bytes.len() / 2]).unwrap();
    let told = compact_dataset(&store(&dataset), &policy(1), &QueryLimits::default()).unwrap_err();
    let told = told.to_string();
    assert!(told.contains(path) && told.contains("damaged"), "{told}");
    fs::write(&whole, bytes).unwrap();
    done(&dataset, &policy(1));
    assert_eq!(check_whole(&dataset).len(), 5);
}

#[test]
fn old_numbers_go_and_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let (dataset, id) = five(dir.path());
    let before = sums(&dataset);
    let keep = |days| RetentionPolicy {
        numbers: Some(7),
        ..policy(days)
    };
    done(&dataset, &keep(7));
    assert!(
        numbers::decode_trace(&store(&dataset), &state(&dataset), "0000000000000001", id).is_ok()
    );
    done(&dataset, &keep(9));
    let told = |run| match numbers::decode_trace(&store(&dataset), &state(&dataset), run, id) {
        Err(FleetError::Absent(told)) => told,
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
    let keep = |days| RetentionPolicy {
        runs: Some(30),
        ..policy(days)
    };
    assert_eq!(done(&dataset, &keep(30)).runs_summed, 0);
    assert_eq!(within(&dataset, &keep(32), LEAST).runs_summed, 5);
    assert_eq!(sums(&dataset), before);
    check_order(&dataset);
    assert_eq!(check_whole(&dataset).len(), 1);
    assert_eq!(number(&engine(&dataset), "SELECT COUNT(*) FROM numbers"), 0);
    // They are known: added again they change nothing, and a run that comes late joins the sum.
    let logs = runs(dir.path(), &dir.path().join("kinds.log"), 6);
    add(&dataset, &logs);
    assert_eq!(check_whole(&dataset).len(), 2);
    assert_eq!(done(&dataset, &keep(32)).runs_summed, 1);
    let whole = check_whole(&dataset);
    assert_eq!(whole.len(), 1);
    assert!(whole.keys().all(|run| run.starts_with("sum-")));
    assert_eq!(number(&engine(&dataset), "SELECT SUM(runs) FROM runs"), 6);
    let gone = RetentionPolicy {
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
    let (dataset, log) = (new_dataset(dir.path()), dir.path().join("live.log"));
    let (_writer, counters, _) = lucce_testkit::live(&log);
    add(&dataset, std::slice::from_ref(&log));
    counters.iter().for_each(|cell| cell.add_events(1, 0));
    add(&dataset, &[log]);
    let before = sums(&dataset);
    // What was counted later was added today.
    let late = RetentionPolicy {
        runs: Some(30),
        now: SystemTime::now() + DAY * 40,
        ..policy(1)
    };
    assert_eq!(done(&dataset, &late).runs_summed, 1);
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
    let (dataset, log) = (new_dataset(dir.path()), dir.path().join("kinds.log"));
    lucce_testkit::kinds(&log);
    let logs = runs(dir.path(), &log, 10);
    add(&dataset, &logs[..2]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            logs[2..]
                .iter()
                .for_each(|log| drop(add(&dataset, std::slice::from_ref(log))))
        });
        for _ in 0..2 {
            scope
                .spawn(|| (0..3).for_each(|_| assert!(done(&dataset, &policy(1)).files_after > 0)));
        }
    });
    assert_eq!(check_whole(&dataset).len(), 10);
}
