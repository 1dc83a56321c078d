//! Datasets of the test logs, and questions about them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use lucce_fleet::engine::{QueryEngine, QueryLimits};
use lucce_fleet::ingest::{IngestLabels, IngestReport, RunIngester};
use lucce_fleet::store::{SharedStore, open_store};

pub mod client;
pub mod lagging_store;
pub mod lossy_proxy;

/// Where a test's dataset is, which is not there yet: `data` in the folder, or below the URL of `LUCCE_TEST_STORE`.
pub fn new_dataset(dir: &Path) -> PathBuf {
    match std::env::var("LUCCE_TEST_STORE") {
        Ok(url) => format!("{url}/{}", lucce_tracelog::RunId::random()).into(),
        Err(_) => dir.join("data"),
    }
}

pub fn store(dataset: &Path) -> SharedStore {
    open_store(dataset).unwrap()
}

pub fn labels(version: &str) -> IngestLabels {
    IngestLabels {
        service: "shop".into(),
        version: version.into(),
        host: "h1".into(),
        arguments: false,
    }
}

pub fn add(dataset: &Path, logs: &[PathBuf]) -> Vec<IngestReport> {
    let mut reports = Vec::new();
    let mut ingest = RunIngester::open(&store(dataset)).unwrap();
    ingest
        .add_runs(logs, &labels("1.0"), &mut |report| reports.push(report))
        .unwrap();
    reports
}

pub fn engine(dataset: &Path) -> QueryEngine {
    QueryEngine::open(&store(dataset), &QueryLimits::default()).unwrap()
}

/// Rows of a text and a number.
pub fn pairs(engine: &QueryEngine, sql: &str) -> BTreeMap<String, i64> {
    let mut pairs = BTreeMap::new();
    for batch in engine.collect_rows(sql).unwrap() {
        let text =
            arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Utf8).unwrap();
        let numbers = batch.column(1).as_primitive::<Int64Type>();
        for at in 0..batch.num_rows() {
            pairs.insert(
                text.as_string::<i32>().value(at).to_owned(),
                numbers.value(at),
            );
        }
    }
    pairs
}

pub fn number(engine: &QueryEngine, sql: &str) -> i64 {
    let pairs = pairs(
        engine,
        &format!("SELECT 'x', CAST(n AS BIGINT) FROM ({sql}) AS asked(n)"),
    );
    pairs["x"]
}

/// A copy of the log as that of another run.
pub fn other_run(log: &Path, to: PathBuf, run: u64) -> PathBuf {
    let mut bytes = fs::read(log).unwrap();
    lucce_testkit::rename_run(&mut bytes, run);
    fs::write(&to, bytes).unwrap();
    to
}

/// `log.N`, each of a run of its own.
pub fn runs(dir: &Path, log: &Path, many: u64) -> Vec<PathBuf> {
    (1..=many)
        .map(|run| other_run(log, dir.join(format!("{run}.log")), run))
        .collect()
}

/// What must hold of every dataset, whatever happened to it.
pub fn check_whole(dataset: &Path) -> BTreeMap<String, i64> {
    let engine = engine(dataset);
    for (table, id) in [
        ("frames", "frame_id"),
        ("stacks", "stack_id"),
        ("runs", "run_id"),
    ] {
        let all = number(&engine, &format!("SELECT COUNT(*) FROM {table}"));
        assert_eq!(
            all,
            number(
                &engine,
                &format!("SELECT COUNT(DISTINCT {id}) FROM {table}")
            ),
            "{table}"
        );
    }
    for lost in [
        "SELECT COUNT(*) FROM events WHERE run_id NOT IN (SELECT run_id FROM runs)",
        "SELECT COUNT(*) FROM numbers WHERE run_id NOT IN (SELECT run_id FROM runs)",
        "SELECT COUNT(*) FROM events WHERE stack_id NOT IN (SELECT stack_id FROM stacks)",
        "SELECT COUNT(*) FROM events WHERE stack_id NOT IN (SELECT stack_id FROM through)",
        "SELECT COUNT(*) FROM stacks WHERE frame_id NOT IN (SELECT frame_id FROM frames)",
        "SELECT COUNT(*) FROM stacks WHERE depth > 1 AND parent_id NOT IN (SELECT stack_id FROM stacks)",
    ] {
        assert_eq!(number(&engine, lost), 0, "{lost}");
    }
    let told = pairs(&engine, "SELECT run_id, events FROM runs");
    let counted = pairs(
        &engine,
        "SELECT run_id, SUM(count) FROM events WHERE event <> 'inuse' GROUP BY run_id",
    );
    assert_eq!(told, counted);
    told
}

pub fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lucce-fleet"));
    command
        .current_dir(dir)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    command
}

pub fn lucce_fleet(dir: &Path, args: &[&str], more: &[String]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lucce-fleet"));
    command
        .current_dir(dir)
        .args(args)
        .args(more)
        .output()
        .unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
