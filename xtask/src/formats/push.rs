//! OpenTelemetry's collector itself, built from its modules, and `lucce otlp` to it while a JVM runs.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Logs, consumers, equal, holds, totals};
use crate::{Outcome, jdk, paths, tools};

/// Profiles, and what they are in the log.
const SUMS: [(&str, &str, bool); 4] = [
    ("alloc_space", "alloc", true),
    ("alloc_objects", "alloc", false),
    ("delay", "lock", true),
    ("contentions", "lock", false),
];
/// For a machine that is busy.
const LONGEST: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(50);

/// The collector goes away in the middle and comes back: each event was delivered once.
pub fn restart(logs: &Logs) -> Outcome {
    let place = Collector::free("push-restart", logs)?;
    let log = logs.folder.join("push.lucce");
    let mut busy = Ended(busy(logs, &log)?.spawn().map_err(|e| e.to_string())?);
    let totals_known = || totals(&log, "lock").is_ok_and(|(_, count)| count > 0);
    until("the JVM has contended for a lock", totals_known)?;
    let collector = place.collector()?;
    let mut lucce = Command::new(paths::lucce());
    lucce.args([
        "otlp",
        "--interval",
        "200ms",
        "--json",
        "--endpoint",
        &place.url(),
    ]);
    lucce
        .arg(busy.0.id().to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let push = lucce.spawn().map_err(|e| e.to_string())?;
    let requests = |many: usize| until("requests come", || place.starts().len() >= many);
    requests(3)?;
    drop(collector);
    thread::sleep(Duration::from_secs(1));
    let before = place.starts().len();
    let _collector = place.collector()?;
    requests(before + 3)?;
    // As a person ends it: the rest of the log comes then.
    tools::run_quietly(Command::new("kill").arg(busy.0.id().to_string()))?;
    busy.0.wait().map_err(|e| e.to_string())?;
    let ended = push.wait_with_output().map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    equal(&said, &ended.status.code(), &Some(0))?;
    holds(&said, "trying again")?;
    holds(&said, "answers again")?;
    place.has_sums_of(&log)?;
    let told: Value = serde_json::from_slice(&ended.stdout).map_err(|e| e.to_string())?;
    equal("retries", &(told["retries"].as_u64() > Some(0)), &true)?;
    equal(
        "undelivered",
        &told["undelivered"].to_string(),
        &"{}".to_owned(),
    )
}

/// Times of requests follow each other without a gap, from the start on; and a path that the collector does not know is named.
pub fn times(logs: &Logs) -> Outcome {
    let place = Collector::free("push-times", logs)?;
    let _collector = place.collector()?;
    let push = |url: &str, code: i32| {
        let mut lucce = Command::new(paths::lucce());
        let output = lucce
            .args(["otlp", "--endpoint", url])
            .arg(&logs.shop)
            .output();
        let output = output.map_err(|e| format!("lucce otlp: {e}"))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        equal(&said, &output.status.code(), &Some(code)).map(|()| said)
    };
    push(&place.url(), 0)?;
    place.has_sums_of(&logs.shop)?;
    let start = super::told(&logs.shop, &["stats"])?["start"].as_u64();
    let told = place.starts().first().map(|start| start / 1_000_000);
    equal("start in ms", &told, &start)?;
    let wrong = format!("{}/v1/nothing", place.url());
    holds(&push(&wrong, 2)?, "takes no profiles: 404")
}

/// Where a collector listens, and what it has written.
struct Collector {
    port: u16,
    lines: PathBuf,
}

impl Collector {
    fn free(name: &str, logs: &Logs) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0");
        let address = listener.and_then(|listener| listener.local_addr());
        let port = address.map_err(|e| e.to_string())?.port();
        let lines = logs.folder.join(name).with_extension("jsonl");
        Ok(Collector { port, lines })
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    fn collector(&self) -> Result<Ended, String> {
        let mut collector = Command::new(consumers::go("collector")?);
        collector
            .arg(self.address())
            .arg(&self.lines)
            .stdin(Stdio::null());
        let mut running = Ended(collector.spawn().map_err(|e| e.to_string())?);
        let has_ended =
            |running: &mut Ended| running.0.try_wait().is_ok_and(|ended| ended.is_some());
        until("the collector listens", || {
            has_ended(&mut running) || TcpStream::connect(self.address()).is_ok()
        })?;
        match has_ended(&mut running) {
            true => Err("the collector has ended".to_owned()),
            false => Ok(running),
        }
    }

    fn lines(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.lines).unwrap_or_default();
        // The last one may be on its way.
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Different times at which what was told begins, in nanoseconds since 1970.
    fn starts(&self) -> Vec<u64> {
        let mut starts: Vec<_> = self
            .lines()
            .iter()
            .filter_map(|line| line["start"].as_u64())
            .collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// Each profile once, whose request may have come twice.
    fn has_sums_of(&self, log: &Path) -> Outcome {
        let lines = self.lines();
        let by_id: BTreeMap<_, _> = lines
            .iter()
            .map(|line| (line["id"].to_string(), line))
            .collect();
        for (name, kind, is_value) in SUMS {
            let (value, count) = whole(log, kind)?;
            let own = by_id.values().filter(|line| line["name"] == name);
            let sum: u64 = own.filter_map(|line| line["sum"].as_u64()).sum();
            equal(name, &sum, &if is_value { value } else { count })?;
        }
        let mut spans: Vec<(u64, u64)> = Vec::new();
        for line in &lines {
            let number = |key: &str| line[key].as_u64().ok_or("no times");
            spans.push((number("start")?, number("start")? + number("duration")?));
        }
        spans.sort_unstable();
        spans.dedup();
        let gap = spans.windows(2).find(|pair| pair[0].1 > pair[1].0);
        equal("spans that overlap", &gap, &None)
    }
}

/// The sum and the number of a kind's events, also of threads that wait for work.
fn whole(log: &Path, kind: &str) -> Result<(u64, u64), String> {
    let report = super::told(log, &["report", "--idle", "--top", "1", "--event", kind])?;
    let total = |key: &str| report["totals"][key].as_u64();
    let found = total("value").zip(total("count"));
    found.ok_or_else(|| format!("no totals of {kind}"))
}

/// Ends with its owner.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both fail for one that has ended and was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that goes on until it is ended.
fn busy(logs: &Logs, log: &Path) -> Result<Command, String> {
    let jdk = jdk::compiler().ok_or("no JDK that compiles")?;
    let mut javac = jdk.javac();
    javac
        .arg("-d")
        .arg(&logs.folder)
        .arg(consumers::sources().join("Busy.java"));
    tools::run_quietly(&mut javac)?;
    let options = format!("out={},events=alloc+lock", log.display());
    let mut java = jdk.light_java();
    java.arg(format!("-agentpath:{}={options}", paths::agent().display()))
        .arg("-cp")
        .arg(&logs.folder)
        .arg("Busy");
    java.stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(java)
}

fn until(what: &str, mut done: impl FnMut() -> bool) -> Outcome {
    let started = Instant::now();
    while !done() {
        if started.elapsed() > LONGEST {
            return Err(format!("not within two minutes: {what}"));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
