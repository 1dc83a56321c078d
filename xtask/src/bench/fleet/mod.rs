//! `--fleet`: a dataset that grows, run by run: what it costs to add to it, to compact it and to ask it.
//!
//! ```text
//! an application under the agent ─► its log ─► lab/variations: logs of other runs ─► lucce-fleet add, compact, ask, decode
//! ```
//! Runs are a thousand a day. A release comes behind the sixth run, the sixtieth, the six hundredth and so on, so that each size has
//! runs of two. With `--s3` the dataset is on a server in memory on this machine.

mod recordings;
mod tables;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lucce_bench::{Usage, run_process};
use serde_json::{Value, json};

use self::recordings::Recording;
use super::options::BenchOptions;
use crate::store_server::StoreServer;
use crate::{Outcome, fleet, paths, tools};

/// So many logs are on the disk at a time.
const BATCH: u64 = 240;
/// 2026-11-01, in milliseconds since 1970.
const FIRST_DAY: u64 = 1_793_491_200_000;
/// A thousand runs a day.
const BETWEEN: u64 = 86_400;
const MEMORY: &str = "2g";

/// Prints the tables, and writes them and `fleet-report.json`.
///
/// # Errors
/// Something does not build, a program fails, or a file cannot be written.
pub fn run(options: &BenchOptions) -> Outcome {
    if options.build {
        tools::run(fleet::cargo().args(["build", "--release", "--locked"]))?;
        tools::run(paths::cargo().args(["build", "--release", "-p", "lucce-variations"]))?;
    }
    let folder = options.out.join("fleet");
    let recorded = recordings::take(options, &folder.join("recordings"))?;
    let mut report = json!({
        "runs": options.runs,
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "memory": MEMORY,
    });
    let mut single = Vec::new();
    for (at, recording) in recorded.iter().enumerate() {
        // The second one is the first application's on another JDK.
        if recorded.iter().position(|other| other.app == recording.app) == Some(at) {
            single.push(alone(options, &folder, recording)?);
            written(options, &mut report, "single", &single)?;
        }
    }
    let server = options.on_s3.then(StoreServer::start).transpose()?;
    report["store"] = server.as_ref().map_or("folder", |_| "s3").into();
    let mut growing = Growing::new(options, &folder, &recorded, server)?;
    let mut sizes: Vec<Value> = Vec::new();
    for runs in &options.runs {
        let why = growing.has_no_room(*runs, sizes.last());
        if let Some(why) = why {
            println!("{runs} runs: {why}");
            sizes.push(json!({ "runs": runs, "not_run": why }));
            written(options, &mut report, "sizes", &sizes)?;
            break;
        }
        sizes.push(growing.size(*runs)?);
        written(options, &mut report, "sizes", &sizes)?;
    }
    if !options.engines.is_empty() {
        let mut engines = Vec::new();
        growing.engines(&options.engines, sizes.last(), &mut |engine| {
            engines.push(engine);
            written(options, &mut report, "engines", &engines)
        })?;
    }
    println!(
        "\n{}\nwritten to {}",
        tables::all(&report),
        paths::short(&options.out)
    );
    Ok(())
}

/// After each step, so that what was measured stays when the command is ended.
fn written(options: &BenchOptions, report: &mut Value, key: &str, value: &[Value]) -> Outcome {
    report[key] = value.into();
    let text = serde_json::to_string_pretty(report).map_err(|e| e.to_string())?;
    for (name, text) in [
        ("fleet-report.json", text),
        ("fleet-tables.md", tables::all(report)),
    ] {
        let file = options.out.join(name);
        fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(())
}

/// A step of the command, to its end.
fn measured(command: &mut Command, scratch: &Path) -> Result<(Usage, String), String> {
    let name = format!("{command:?}");
    let ended = run_process(command, scratch, Duration::from_secs(24 * 3600));
    let ended = ended.map_err(|e| format!("{name}: {e}"))?;
    match ended.status.success() {
        true => Ok((ended.usage, ended.stdout)),
        false => Err(format!(
            "{name}: {}\n{}{}",
            ended.status, ended.stdout, ended.stderr
        )),
    }
}

fn told(usage: &Usage) -> Value {
    json!({ "wall_ms": usage.wall, "cpu_ms": usage.cpu, "peak_rss": usage.peak_rss })
}

fn size(path: &Path) -> Result<u64, String> {
    let size = fs::metadata(path).map(|data| data.len());
    size.map_err(|e| format!("{}: {e}", path.display()))
}

/// Files and bytes by folder of a dataset.
fn bytes(dataset: &Path) -> Result<BTreeMap<String, (u64, u64)>, String> {
    fn below(folder: &Path, sum: &mut (u64, u64)) -> std::io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => below(&entry.path(), sum)?,
                false => *sum = (sum.0 + 1, sum.1 + entry.metadata()?.len()),
            }
        }
        Ok(())
    }
    let failed = |e: std::io::Error| format!("{}: {e}", dataset.display());
    let mut sums = BTreeMap::new();
    for entry in fs::read_dir(dataset).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && name != "temporary" {
            let mut sum = (0, 0);
            below(&entry.path(), &mut sum).map_err(failed)?;
            sums.insert(name, sum);
        }
    }
    Ok(sums)
}

fn sum(bytes: &BTreeMap<String, (u64, u64)>) -> u64 {
    bytes.values().map(|(_, bytes)| bytes).sum()
}

/// A folder that has nothing in it.
fn empty(folder: PathBuf) -> Result<PathBuf, String> {
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

/// What one run of an application takes, in a dataset of its own, as the first one and as the tenth.
fn alone(options: &BenchOptions, folder: &Path, recording: &Recording) -> Result<Value, String> {
    let recordings = std::slice::from_ref(recording);
    let mut growing = Growing::new(options, &folder.join("alone"), recordings, None)?;
    growing.release = false;
    growing.add(1)?;
    growing.compact()?;
    let first = bytes(&growing.dataset)?;
    growing.add(10)?;
    growing.compact()?;
    let ten = bytes(&growing.dataset)?;
    let of =
        |bytes: &BTreeMap<String, (u64, u64)>, name: &str| bytes.get(name).map_or(0, |sum| sum.1);
    let further = |name: &str| (of(&ten, name) as f64 - of(&first, name) as f64) / 9.0;
    let pprof = folder.join("pprof.pb.gz");
    let mut export = Command::new(paths::lucce());
    export
        .arg("export")
        .arg("--format")
        .arg("pprof")
        .arg("--out")
        .arg(&pprof);
    tools::run_quietly(export.arg(&recording.log))?;
    let zipped = tools::output(Command::new("gzip").arg("--stdout").arg(&recording.log))?;
    let rows = growing.query("SELECT COUNT(DISTINCT stack_id) AS contexts FROM events")?;
    let told = json!({
        "program": recording.app,
        "contexts": rows[0]["contexts"],
        "log": size(&recording.log)?,
        "log_gzip": zipped.len(),
        "pprof_gzip": size(&pprof)?,
        "first_run": sum(&first),
        "further_run": (sum(&ten) as f64 - sum(&first) as f64) / 9.0,
        "further_events": further("events"),
        "further_numbers": further("numbers"),
        "further_symbols": further("symbols"),
    });
    growing.remove()?;
    Ok(told)
}

/// A dataset that runs are added to.
struct Growing<'r> {
    recordings: Vec<Vec<&'r Recording>>,
    dataset: PathBuf,
    /// Of a dataset that is in no folder.
    server: Option<StoreServer>,
    logs: PathBuf,
    scratch: PathBuf,
    limit: Duration,
    /// Whether releases come.
    release: bool,
    runs: u64,
    /// By recording, how many runs were made of it.
    made: BTreeMap<PathBuf, u64>,
    /// A run of the first application.
    last: String,
}

/// What adding took.
#[derive(Default)]
struct Added {
    wall: f64,
    cpu: f64,
    peak_rss: u64,
    logs: u64,
}

impl<'r> Growing<'r> {
    fn new(
        options: &BenchOptions,
        folder: &Path,
        recordings: &'r [Recording],
        server: Option<StoreServer>,
    ) -> Result<Self, String> {
        let mut by_app: Vec<Vec<&Recording>> = Vec::new();
        for recording in recordings {
            let same =
                |of: &&mut Vec<&Recording>| of.iter().any(|other| other.app == recording.app);
            match by_app.iter_mut().find(same) {
                Some(of) => of.push(recording),
                None => by_app.push(vec![recording]),
            }
        }
        let dataset = match &server {
            Some(server) => PathBuf::from(server.url()),
            None => folder.join("dataset"),
        };
        if server.is_none() {
            let _ = fs::remove_dir_all(&dataset);
        }
        Ok(Growing {
            recordings: by_app,
            dataset,
            server,
            logs: empty(folder.join("logs"))?,
            scratch: empty(folder.join("scratch"))?,
            limit: options.limit(),
            release: true,
            runs: 0,
            made: BTreeMap::new(),
            last: String::new(),
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(fleet::released());
        if let Some(server) = &self.server {
            command.envs(server.environment());
        }
        command
    }

    /// Files and bytes by folder of the dataset; nothing on a server.
    fn bytes(&self) -> Result<BTreeMap<String, (u64, u64)>, String> {
        match self.server {
            Some(_) => Ok(BTreeMap::new()),
            None => bytes(&self.dataset),
        }
    }

    /// CPU time that the server has taken so far.
    fn server_ms(&self) -> f64 {
        let server = self.server.as_ref();
        server.map_or(0.0, |server| server.cpu_time().as_secs_f64() * 1e3)
    }

    fn remove(&self) -> Outcome {
        for folder in [&self.dataset, &self.logs] {
            fs::remove_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        Ok(())
    }

    /// Why a dataset of so many runs is not made, as far as the last size says.
    fn has_no_room(&self, runs: u64, last: Option<&Value>) -> Option<String> {
        let last = last?;
        let times = runs as f64 / last["runs"].as_f64()?;
        let seconds = last["seconds"].as_f64()? * times;
        if seconds > self.limit.as_secs_f64() {
            return Some(format!(
                "not run: it would take about {:.0} minutes, and --limit is {:.0}",
                seconds / 60.0,
                self.limit.as_secs_f64() / 60.0
            ));
        }
        // Files that are replaced lie beside those that replace them.
        let needed = last["largest"].as_f64()? * times;
        let free = free(&self.dataset)?;
        (needed > free as f64).then(|| {
            format!(
                "not run: it would need about {:.0} GB, and {:.0} GB are free",
                needed / 1e9,
                free as f64 / 1e9
            )
        })
    }

    /// The release that a run is of.
    fn release(&self, run: u64) -> u32 {
        let bounds = std::iter::successors(Some(6u64), |bound| bound.checked_mul(10));
        match self.release {
            true => bounds.take_while(|bound| *bound <= run).count() as u32,
            false => 0,
        }
    }

    /// Adds runs until there are so many.
    fn add(&mut self, runs: u64) -> Result<Added, String> {
        let mut added = Added::default();
        while self.runs < runs {
            let upto = runs.min(self.runs + BATCH);
            // By application, JDK and release.
            let mut groups: BTreeMap<(usize, usize, u32), Vec<u64>> = BTreeMap::new();
            for run in self.runs..upto {
                let apps = self.recordings.len() as u64;
                let app = (run % apps) as usize;
                let on = (run / apps) as usize % self.recordings[app].len();
                groups
                    .entry((app, on, self.release(run)))
                    .or_default()
                    .push(run);
            }
            for ((app, on, release), of) in groups {
                self.group(self.recordings[app][on], release, &of, &mut added)?;
            }
            self.runs = upto;
            println!("{upto} runs: {:.1} s of adding", added.wall / 1e3);
        }
        Ok(added)
    }

    fn group(
        &mut self,
        recording: &'r Recording,
        release: u32,
        runs: &[u64],
        added: &mut Added,
    ) -> Outcome {
        let made = self.made.entry(recording.log.clone()).or_default();
        let start = |run: u64| FIRST_DAY + run * BETWEEN;
        let (first, step) = match runs {
            [one] => (*one, 0),
            [first, second, ..] => (*first, start(*second) - start(*first)),
            [] => return Ok(()),
        };
        let numbers = [
            u64::from(release),
            *made,
            runs.len() as u64,
            start(first),
            step,
        ];
        *made += runs.len() as u64;
        let mut vary = Command::new(paths::target().join("release/variations"));
        vary.arg(&recording.log).arg(&self.logs);
        vary.arg(format!("{}-{}", recording.app, recording.jdk));
        let said = tools::output(vary.args(numbers.map(|number| number.to_string())))?;
        if recording.app == self.recordings[0][0].app && recording.jdk == self.recordings[0][0].jdk
        {
            let said = String::from_utf8_lossy(&said);
            said.lines()
                .next_back()
                .unwrap_or_default()
                .clone_into(&mut self.last);
        }
        let failed = |e: std::io::Error| format!("{}: {e}", self.logs.display());
        let logs: Result<Vec<PathBuf>, _> = fs::read_dir(&self.logs)
            .map_err(failed)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect();
        let mut logs = logs.map_err(failed)?;
        logs.sort();
        let mut add = self.command();
        add.arg("add").arg(&self.dataset).args(&logs);
        add.args([
            "--service",
            &recording.app,
            "--version",
            &format!("1.{release}"),
            "--host",
        ]);
        let (usage, _) = measured(add.arg(format!("host-{}", first % 997)), &self.scratch)?;
        added.wall += usage.wall;
        added.cpu += usage.cpu;
        added.peak_rss = added.peak_rss.max(usage.peak_rss);
        for log in logs {
            added.logs += size(&log)?;
            fs::remove_file(&log).map_err(failed)?;
        }
        Ok(())
    }

    fn compact(&self) -> Result<Usage, String> {
        let mut compact = self.command();
        compact.arg("compact").arg(&self.dataset);
        Ok(measured(
            compact.args(["--grace", "0", "--memory", MEMORY]),
            &self.scratch,
        )?
        .0)
    }

    fn query(&self, sql: &str) -> Result<Value, String> {
        let mut query = self.command();
        query
            .args(["query", "--output", "json", "--dataset"])
            .arg(&self.dataset);
        let said = tools::output(query.arg(sql))?;
        serde_json::from_slice(&said).map_err(|e| e.to_string())
    }

    /// Adds runs until there are so many, compacts, and asks.
    fn size(&mut self, runs: u64) -> Result<Value, String> {
        let before = self.runs;
        let begun = std::time::Instant::now();
        let idle = self.server_ms();
        let added = self.add(runs)?;
        let added_at = self.server_ms();
        let many = self.bytes()?;
        let compacted = self.compact()?;
        let compacted_at = self.server_ms();
        let few = self.bytes()?;
        println!("{runs} runs: compacted in {:.1} s", compacted.wall / 1e3);
        let rows = self.query(
            "SELECT (SELECT COUNT(*) FROM frames) AS frames, (SELECT COUNT(*) FROM stacks) AS stacks,
                (SELECT COUNT(*) FROM through) AS through, (SELECT COUNT(*) FROM events) AS events,
                (SELECT COUNT(*) FROM numbers) AS numbers, (SELECT SUM(contexts) FROM runs) AS contexts_of_runs",
        )?;
        let mut questions = Vec::new();
        for (name, parameters) in self.questions(runs) {
            let mut ask = self.command();
            ask.args([
                "ask",
                name,
                "--output",
                "csv",
                "--memory",
                MEMORY,
                "--dataset",
            ]);
            ask.arg(&self.dataset).arg("--spill").arg(&self.scratch);
            for (name, value) in &parameters {
                ask.arg(format!("--{name}")).arg(value);
            }
            let (usage, answer) = measured(&mut ask, &self.scratch)?;
            let mut told = told(&usage);
            told["name"] = name.into();
            // The first line has the columns' names.
            told["rows"] = answer.lines().count().saturating_sub(1).into();
            println!(
                "{runs} runs: {name} {:.2} s, {} MB",
                usage.wall / 1e3,
                usage.peak_rss >> 20
            );
            questions.push(told);
        }
        let number = self.number()?;
        let (decoded, trace) = measured(
            self.command()
                .arg("decode")
                .arg("--dataset")
                .arg(&self.dataset)
                .arg(&number),
            &self.scratch,
        )?;
        if trace.lines().count() < 2 {
            return Err(format!("{number}: no trace: {trace}"));
        }
        let symbols = few.get("symbols").map_or(0, |(_, bytes)| *bytes);
        let tables: BTreeMap<&String, Value> = few
            .iter()
            .map(|(name, (files, bytes))| (name, json!({ "files": files, "bytes": bytes })))
            .collect();
        Ok(json!({
            "runs": runs,
            "seconds": begun.elapsed().as_secs_f64() * runs as f64 / (runs - before) as f64,
            "added": {
                "runs": runs - before, "wall_ms": added.wall, "cpu_ms": added.cpu,
                "peak_rss": added.peak_rss, "log_bytes": added.logs,
            },
            "server_cpu_ms": {
                "adding": added_at - idle, "compacting": compacted_at - added_at,
                "asking": self.server_ms() - compacted_at,
            },
            "before": { "bytes": sum(&many), "files": many.values().map(|(files, _)| files).sum::<u64>() },
            "compacted": told(&compacted),
            "tables": tables,
            "bytes": sum(&few),
            // Symbols are not replaced.
            "largest": sum(&many) as f64 + sum(&few) as f64 - symbols as f64,
            "rows": rows[0],
            "questions": questions,
            "decoded": told(&decoded),
        }))
    }

    /// The last run's number of the context with the most bytes.
    fn number(&self) -> Result<String, String> {
        let mut report = Command::new(paths::lucce());
        let said = tools::output(
            report
                .args(["report", "--json", "--top", "1"])
                .arg(&self.recordings[0][0].log),
        )?;
        let said: Value = serde_json::from_slice(&said).map_err(|e| e.to_string())?;
        let number = said["contexts"][0]["id"].as_str().unwrap_or_default();
        let number = number.rsplit(':').next().unwrap_or_default();
        Ok(format!("lucce:{}:{number}", self.last))
    }

    /// The named questions, as somebody would ask them of the last release.
    fn questions(&self, runs: u64) -> Vec<(&'static str, Vec<(&'static str, String)>)> {
        let service = self.recordings[0][0].app.to_owned();
        let on = |at: usize| {
            self.recordings[0]
                .get(at)
                .map_or(0, |recording| recording.jdk)
        };
        let release = self.release(runs - 1);
        let version = |release: u32| format!("1.{release}");
        let put = [
            ("class", "java.util.HashMap".to_owned()),
            ("method", "put".to_owned()),
        ];
        vec![
            ("callers", put.clone().into()),
            ("coverage", vec![]),
            (
                "jdk-update",
                vec![
                    ("service", service.clone()),
                    ("from", on(0).to_string()),
                    ("to", on(1).to_string()),
                ],
            ),
            ("leaks", vec![]),
            (
                "new-since",
                vec![("service", service.clone()), ("version", version(release))],
            ),
            (
                "per-request",
                vec![("service", service), ("request", "alloc".to_owned())],
            ),
            ("through", put.into()),
            ("top", vec![]),
            (
                "top-growth",
                vec![
                    ("from", version(release.saturating_sub(1))),
                    ("to", version(release)),
                ],
            ),
        ]
    }

    /// What other engines take for the questions; their answers are compared with DataFusion's. `size`: what the questions were
    /// answered, some of them perhaps without rows. `each` is told what one took for one question.
    fn engines(
        &self,
        engines: &[String],
        size: Option<&Value>,
        each: &mut dyn FnMut(Value) -> Outcome,
    ) -> Outcome {
        let answered = size.and_then(|size| size["questions"].as_array());
        let is_empty = |name: &str| {
            let of = |one: &&Value| one["name"] == name;
            answered.is_some_and(|all| all.iter().find(of).is_some_and(|one| one["rows"] == 0))
        };
        let whole = |(name, parameters): (&'static str, _)| {
            let mut question = self.whole(name, parameters)?;
            question["empty"] = is_empty(name).into();
            Ok::<_, String>(question)
        };
        let questions = self.questions(self.runs).into_iter().map(whole);
        let questions = questions.collect::<Result<Vec<_>, _>>()?;
        let told = &mut |line: &str| {
            println!("{line}");
            answered_in(line).map_or(Ok(()), &mut *each)
        };
        let place = (self.dataset.as_path(), self.server.as_ref());
        fleet::compared(place, &questions, engines, &self.scratch, told)
    }

    /// With all parameters, as other engines need them.
    fn whole(&self, name: &str, given: Vec<(&str, String)>) -> Result<Value, String> {
        let sql = paths::root().join(format!("fleet/sql/{name}.sql"));
        let text = fs::read_to_string(&sql).map_err(|e| format!("{}: {e}", sql.display()))?;
        let mut parameters = serde_json::Map::new();
        let head = text.lines().map_while(|line| line.strip_prefix("-- "));
        for (slot, _) in head.skip(1).filter_map(|line| line.split_once(": ")) {
            let (slot, default) = slot.split_once('=').unwrap_or((slot, ""));
            let given = given.iter().find(|(name, _)| *name == slot);
            let value = given.map_or(default, |(_, value)| value);
            parameters.insert(slot.to_owned(), value.into());
        }
        Ok(json!({ "name": name, "ask": true, "sql": sql, "parameters": parameters }))
    }
}

/// `spark top: 3.21 s, 6.40 s of CPU time, 20 rows, equal`: who was asked what, and how long that took.
fn answered_in(line: &str) -> Option<Value> {
    let (engine, rest) = line.split_once(' ')?;
    let (question, rest) = rest.split_once(": ")?;
    let (wall, rest) = rest.split_once(" s, ")?;
    let (cpu, _) = rest.split_once(" s of CPU time")?;
    let (wall, cpu): (f64, f64) = (wall.parse().ok()?, cpu.parse().ok()?);
    Some(
        json!({ "engine": engine, "question": question, "wall_ms": wall * 1e3, "cpu_ms": cpu * 1e3 }),
    )
}

/// Bytes that the file system of a folder has room for.
fn free(folder: &Path) -> Option<u64> {
    let said = tools::output(
        Command::new("df")
            .args(["--output=avail", "--block-size=1"])
            .arg(folder),
    )
    .ok()?;
    String::from_utf8_lossy(&said)
        .lines()
        .last()?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod fleet_bench_tests {
    use super::*;

    #[test]
    fn answers_have_both_times() {
        let line = "spark top-growth: 3.21 s, 6.40 s of CPU time, 20 rows, equal";
        let told = answered_in(line).unwrap();
        let expected = json!({ "engine": "spark", "question": "top-growth", "wall_ms": 3210.0, "cpu_ms": 6400.0 });
        assert_eq!(told, expected);
        assert_eq!(
            answered_in("  3 rows expected; the first that differ: …"),
            None
        );
    }
}
