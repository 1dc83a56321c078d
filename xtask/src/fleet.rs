//! `fleet`: the crate `fleet/`, a workspace of its own; and `fleet-tests`: real runs in a dataset, asked by three engines, in a folder
//! and on an S3 server.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::formats::consumers;
use crate::jdk::{self, Jdk};
use crate::store_server::StoreServer;
use crate::workspace_compiler::clippy_driver;
use crate::{Outcome, paths, tools};

/// What reads the dataset beside DataFusion, and what that needs.
const PACKAGES: [&str; 3] = ["duckdb==2.0.0", "pyspark==4.3.0", "py4j==0.10.9.9"];
/// DuckDB's access to S3, and the last DuckDB that there is one for.
const DUCKDB_ON_S3: [&str; 2] = ["duckdb==1.5.5", "duckdb-extension-httpfs==1.5.5"];
/// Engines that answer the same questions.
pub const ENGINES: [&str; 2] = ["duckdb", "spark"];
/// Of runs of one program, to see whether their contexts have the same ids.
const EQUAL_RUNS: u32 = 20;
/// Each kind of access to a store: writers at once, kills, lost answers, compaction beside readers, what runs add.
const STORE_TESTS: [&str; 8] = [
    "stores::",
    "collect::a_collector_whose",
    "collect::what_was_sent",
    "compact::fewer_files",
    "compact::old_runs",
    "compact::writers_go_on",
    "dataset::writers_at_once",
    "serve::clients_and",
];

/// Formatting, lints and tests. Clippy stands in for the compiler: what DataFusion is made of is compiled once, and not once more for
/// lints.
///
/// # Errors
/// A check failed.
pub fn check() -> Outcome {
    tools::run(cargo().args(["fmt", "--check"]))?;
    tools::run(checked_cargo()?.args(["test", "--locked", "--no-fail-fast"]))?;
    let server = StoreServer::start()?;
    tools::run(store_tests()?.envs(server.environment()))
}

/// The tests of datasets that depend on the store, on a server of S3.
fn store_tests() -> Result<Command, String> {
    let mut test = checked_cargo()?;
    test.args(["test", "--locked", "--test", "all", "--"])
        .args(STORE_TESTS)
        .arg("--include-ignored");
    Ok(test)
}

/// Cargo for the crate, with Clippy in place of the compiler.
fn checked_cargo() -> Result<Command, String> {
    let mut cargo = cargo();
    cargo.env("RUSTC_WORKSPACE_WRAPPER", clippy_driver()?).env(
        "CLIPPY_ARGS",
        "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__",
    );
    Ok(cargo)
}

/// Cargo for the crate.
pub fn cargo() -> Command {
    let mut cargo = paths::cargo();
    cargo.current_dir(paths::root().join("fleet"));
    cargo.env("CARGO_TARGET_DIR", paths::target().join("fleet"));
    cargo
}

/// The command as the tests have built it.
pub fn command() -> PathBuf {
    paths::target().join("fleet/debug/lucce-fleet")
}

/// The one that is measured.
pub fn released() -> PathBuf {
    paths::target().join("fleet/release/lucce-fleet")
}

/// The engines' answers are compared for a dataset in a folder, and for the same runs on an S3 server.
///
/// # Errors
/// An engine answers otherwise than DataFusion, or runs of one program have other contexts.
pub fn tests(engines: &[String]) -> Outcome {
    built()?;
    let folder = paths::target().join("fleet-tests");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let runs = record_runs(&folder)?;
    let dataset = folder.join("dataset");
    add_runs(&dataset, &runs, None)?;
    equal(&dataset)?;
    pushed(&folder)?;
    let questions = questions_of(&folder)?;
    let compare = |dataset: &Path, server: Option<&StoreServer>| {
        let place = (dataset, server);
        tools::run(&mut comparison(
            command(),
            place,
            (&questions, engines),
            &folder,
        )?)
    };
    compare(&dataset, None)?;
    let server = StoreServer::start()?;
    let dataset = PathBuf::from(server.url());
    add_runs(&dataset, &runs, Some(&server))?;
    compare(&dataset, Some(&server))
}

/// What engines take for questions of a dataset, line by line as they answer; DataFusion's answers come from the command that is measured.
/// A dataset on a store has its server.
///
/// # Errors
/// An engine answers otherwise than DataFusion, or those of `each`.
pub fn compared(
    place: (&Path, Option<&StoreServer>),
    questions: &[Value],
    engines: &[String],
    folder: &Path,
    each: &mut dyn FnMut(&str) -> Outcome,
) -> Outcome {
    let questions = questions.into();
    let asked = (&questions, engines);
    let mut comparison = comparison(released(), place, asked, folder)?;
    comparison.stdin(Stdio::null()).stdout(Stdio::piped());
    let failed = |e: std::io::Error| format!("the comparison of engines: {e}");
    let mut child = comparison.spawn().map_err(failed)?;
    let said = child.stdout.take().into_iter();
    let mut said = said.flat_map(|said| BufReader::new(said).lines());
    // What one says who then fails has been said.
    let told = said.try_for_each(|line| each(&line.map_err(failed)?));
    let status = child.wait().map_err(failed)?;
    told?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("the comparison of engines: {status}")),
    }
}

/// Asks engines, by their names, and compares their answers.
fn comparison<E: AsRef<str>>(
    fleet: PathBuf,
    (dataset, server): (&Path, Option<&StoreServer>),
    (questions, engines): (&Value, &[E]),
    folder: &Path,
) -> Result<Command, String> {
    let file = folder.join("questions.json");
    let text = questions.to_string();
    fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut python = python(server.is_some())?;
    if let Some(server) = server {
        python.envs(server.environment());
        let jars = consumers::maven_jars(&sources().join("pom.xml"), "spark-jars")?;
        python.env("LUCCE_SPARK_JARS", jars);
    }
    python
        .arg(sources().join("compare.py"))
        .arg(fleet)
        .arg(dataset)
        .arg(&file)
        .args(engines.iter().map(AsRef::as_ref));
    // Spark starts its workers with it.
    let old = jdk::all()
        .into_iter()
        .find(|jdk| jdk.version == jdk::OLD)
        .ok_or("no JDK 17")?;
    python.env("JAVA_HOME", old.home).current_dir(folder);
    Ok(python)
}

/// As the tests have it, so that nothing is compiled twice.
///
/// # Errors
/// It does not build.
pub fn built() -> Outcome {
    tools::run(checked_cargo()?.args(["build", "--locked"]))
}

/// `python3` with the engines, and on a store with DuckDB's access to it.
fn python(on_store: bool) -> Result<Command, String> {
    let mut paths = vec![python_packages(&PACKAGES)?];
    let spark = paths[0].join("pyspark");
    if on_store {
        paths.insert(0, python_packages(&DUCKDB_ON_S3)?);
    }
    let paths = std::env::join_paths(paths).map_err(|e| e.to_string())?;
    let mut python = Command::new("python3");
    python
        .env("PYTHONPATH", paths)
        .env("SPARK_HOME", spark)
        .arg("-B");
    Ok(python)
}

/// The folder of these packages. Spark has no wheel, so pip builds it.
fn python_packages(packages: &[&str]) -> Result<PathBuf, String> {
    let site = paths::target()
        .join("fleet-python")
        .join(packages.join("+"));
    if !site.exists() {
        let staged = site.with_extension("new");
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]);
        tools::run_quietly(pip.arg(&staged).args(packages))?;
        fs::rename(&staged, &site).map_err(|e| format!("{}: {e}", site.display()))?;
    }
    Ok(site)
}

fn sources() -> PathBuf {
    paths::root().join("fleet/tests/engines")
}

/// Logs of one service in one version.
struct ServiceRuns {
    service: &'static str,
    version: &'static str,
    logs: Vec<PathBuf>,
}

/// Runs of a program in two versions and on two JDKs, and of one that leaks.
fn record_runs(folder: &Path) -> Result<Vec<ServiceRuns>, String> {
    let jdks = jdk::tested()?;
    let (old, new) = (jdks.first().ok_or("no JDK")?, jdks.last().ok_or("no JDK")?);
    compile(folder)?;
    let runs = |service, version, logs| ServiceRuns {
        service,
        version,
        logs,
    };
    let before = orders(folder, old, ("before", EQUAL_RUNS), &["200"])?;
    let behind = orders(folder, old, ("behind", 3), &["200", "new"])?;
    let updated = orders(folder, new, ("updated", 3), &["200", "new"])?;
    let leaks = leaks(folder, old)?;
    Ok(vec![
        runs("orders", "1.3", before),
        runs("orders", "1.4", behind),
        runs("orders", "1.4", updated),
        runs("o'leak; DROP TABLE runs --", "2", vec![leaks]),
    ])
}

fn add_runs(dataset: &Path, runs: &[ServiceRuns], server: Option<&StoreServer>) -> Outcome {
    for of in runs {
        let mut add = Command::new(command());
        add.arg("add").arg(dataset).args(&of.logs);
        if let Some(server) = server {
            add.envs(server.environment());
        }
        tools::run(add.args([
            "--service",
            of.service,
            "--version",
            of.version,
            "--host",
            "%h",
        ]))?;
    }
    Ok(())
}

fn api() -> PathBuf {
    paths::artifacts().join(format!(
        "api/target/lucce-api-{}.jar",
        env!("CARGO_PKG_VERSION")
    ))
}

/// Of the programs that [`compile`] has put there.
pub fn class_path(folder: &Path) -> String {
    format!("{}:{}", folder.display(), api().display())
}

/// The programs, into a folder.
///
/// # Errors
/// There is no compiler, or one of them does not compile.
pub fn compile(folder: &Path) -> Outcome {
    let jdk = jdk::compiler().ok_or("no JDK that compiles")?;
    let mut javac = jdk.javac();
    javac
        .args(["--release", "17", "-cp"])
        .arg(api())
        .arg("-d")
        .arg(folder);
    tools::run_quietly(
        javac
            .arg(sources().join("Orders.java"))
            .arg(sources().join("Steady.java")),
    )
}

/// JVMs that push their logs and are killed, and a collector that is killed: every event is in the dataset afterwards.
fn pushed(folder: &Path) -> Outcome {
    let own = folder.join("push");
    fs::create_dir_all(&own).map_err(|e| format!("{}: {e}", own.display()))?;
    let jdks = jdk::tested()?;
    let jdk = jdks.first().ok_or("no JDK")?;
    let mut python = Command::new("python3");
    python
        .arg("-B")
        .arg(sources().join("push.py"))
        .arg(command())
        .arg(paths::lucce())
        .arg(paths::agent());
    tools::run(python.arg(jdk.tool("java")).arg(folder).arg(own))
}

fn orders(
    folder: &Path,
    jdk: &Jdk,
    (name, runs): (&str, u32),
    args: &[&str],
) -> Result<Vec<PathBuf>, String> {
    let mut logs = Vec::new();
    for run in 0..runs {
        let log = folder.join(format!("{name}-{run}.lucce"));
        let mut java = jdk.java();
        java.arg(format!(
            "-agentpath:{}=out={},events=alloc",
            paths::agent().display(),
            log.display()
        ));
        java.arg("-cp").arg(class_path(folder));
        tools::run_quietly(java.arg("Orders").args(args))?;
        logs.push(log);
    }
    Ok(logs)
}

fn leaks(folder: &Path, jdk: &Jdk) -> Result<PathBuf, String> {
    let log = folder.join("leaks.lucce");
    let mut java = jdk.java();
    java.arg(format!(
        "-agentpath:{}=out={},events=leak=16k",
        paths::agent().display(),
        log.display()
    ));
    java.arg("-Xmx40m")
        .arg("-cp")
        .arg(paths::harness().join("programs/target/programs.jar"));
    tools::run_quietly(java.args(["io.lucce.programs.Leaks", "listeners"]))?;
    Ok(log)
}

/// Which contexts of the runs before have the same id in all of them. How a hash table of the JDK is walked differs from run to run,
/// because identity hashes and the order of immutable sets are random: contexts that lead through one are other contexts then, not other ids.
const EQUAL: &str = "
    WITH hashed AS (
        SELECT DISTINCT t.stack_id
        FROM through t
        JOIN frames f ON f.frame_id = t.frame_id
        WHERE f.class LIKE 'java.util.%'
    ), counted AS (
        SELECT e.stack_id, COUNT(DISTINCT e.run_id) AS runs
        FROM events e
        JOIN runs r ON r.run_id = e.run_id
        WHERE r.version = '1.3'
        GROUP BY e.stack_id
    )
    SELECT CASE WHEN h.stack_id IS NULL THEN 0 ELSE 1 END AS in_collections, COUNT(*) AS contexts,
        CAST(SUM(CASE WHEN c.runs = 20 THEN 1 ELSE 0 END) AS BIGINT) AS in_all
    FROM counted c
    LEFT JOIN hashed h ON h.stack_id = c.stack_id
    GROUP BY CASE WHEN h.stack_id IS NULL THEN 0 ELSE 1 END
    ORDER BY in_collections";

fn equal(dataset: &Path) -> Outcome {
    let mut query = Command::new(command());
    query
        .args(["query", "--output", "json", "--dataset"])
        .arg(dataset)
        .arg(EQUAL);
    let said = tools::output(&mut query)?;
    let said: Value = serde_json::from_slice(&said).map_err(|e| e.to_string())?;
    println!(
        "contexts of {EQUAL_RUNS} runs, apart from those that lead through collections: {said}"
    );
    let own = said
        .as_array()
        .and_then(|rows| rows.iter().find(|row| row["in_collections"] == 0));
    let own = own.ok_or("no contexts outside of collections")?;
    let (contexts, in_all) = (own["contexts"].as_u64(), own["in_all"].as_u64());
    match contexts.is_some_and(|contexts| contexts > 1000) && contexts == in_all {
        true => Ok(()),
        false => Err(format!("contexts with other ids in some runs: {own}")),
    }
}

/// All questions that have names, and more SQL that all engines know.
fn questions_of(folder: &Path) -> Result<Value, String> {
    let asked = [
        ("callers", json!({"class": "Orders", "method": "price"})),
        ("coverage", json!({"service": ""})),
        (
            "jdk-update",
            json!({"service": "orders", "from": "17", "to": "25", "event": "alloc", "percent": "10", "top": "20"}),
        ),
        (
            "leaks",
            json!({"service": "o'leak; DROP TABLE runs --", "top": "5"}),
        ),
        (
            "new-since",
            json!({"service": "orders", "version": "1.4", "event": "alloc", "top": "30"}),
        ),
        (
            "per-request",
            json!({"service": "orders", "event": "alloc", "request": "request"}),
        ),
        (
            "requests",
            json!({"service": "", "request": "", "event": ""}),
        ),
        ("through", json!({"class": "Orders", "method": "answer"})),
        ("top", json!({"service": "", "event": "alloc", "top": "50"})),
        (
            "top-growth",
            json!({"from": "1.3", "to": "1.4", "service": "", "event": "alloc", "top": "20"}),
        ),
    ];
    let sql = |name: &str| paths::root().join(format!("fleet/sql/{name}.sql"));
    let mut questions: Vec<Value> = Vec::new();
    for (name, mut parameters) in asked {
        if name == "callers" {
            parameters["event"] = json!("alloc");
            parameters["top"] = json!("20");
        }
        questions
            .push(json!({"name": name, "ask": true, "sql": sql(name), "parameters": parameters}));
    }
    let tables = folder.join("tables.sql");
    let counts = [
        "runs", "frames", "stacks", "through", "events", "numbers", "stream",
    ]
    .map(|table| format!("SELECT '{table}' AS name, CAST(COUNT(*) AS BIGINT) AS n FROM {table}"));
    let text = format!(
        "SELECT * FROM ({}) counted ORDER BY name",
        counts.join(" UNION ALL ")
    );
    fs::write(&tables, text).map_err(|e| format!("{}: {e}", tables.display()))?;
    questions.push(json!({"name": "tables", "sql": tables, "parameters": {}}));
    Ok(Value::Array(questions))
}
