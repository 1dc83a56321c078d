//! `starve`: twelve JVMs under the agent share this machine's processors and are stopped at random.
//!
//! A lock of the agent whose holder does not run makes other threads wait. The agent measures the longest of these waits
//! (`locks.longest_wait_ns` in the log), and this check bounds it, together with the time that a JVM takes to answer
//! `lucce ctl` and to end. What the machine itself does to a thread is measured beside it: how late a thread of this process
//! wakes up.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::jdk::{self, Jdk};
use crate::workloads::{APPS, App};
use crate::{Outcome, paths};

/// Applications with several threads each.
const STARVED: [&str; 4] = ["H2Mix", "XalanTransform", "LuceneIndex", "TomcatServe"];
const JVMS: usize = 12;
/// The longest time for which a JVM is stopped.
const LONGEST_STOP: Duration = Duration::from_millis(400);
const BETWEEN_STOPS: Duration = Duration::from_millis(100);
const BETWEEN_QUESTIONS: Duration = Duration::from_secs(5);
/// A thread may wait this long for a lock of the agent, beside a stop of its JVM and the machine's own delay.
const WAIT_BOUND: Duration = Duration::from_secs(2);
/// A JVM may take this long to answer or to end.
const ANSWER_BOUND: Duration = Duration::from_secs(20);

#[derive(clap::Args)]
pub struct StarveOptions {
    /// Duration in minutes
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u64,
}

/// # Errors
/// A JVM lost events, a thread waited too long for a lock of the agent, or a JVM did not answer or end in time.
pub fn check(options: &StarveOptions) -> Outcome {
    let folder = paths::target().join("starve");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let machine = MachineDelay::default();
    let runs = thread::scope(|scope| {
        scope.spawn(|| machine.measure());
        let runs = StarvedRun::start_all(&folder).map(|mut runs| {
            let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
            let end = Instant::now() + Duration::from_secs(60 * options.minutes);
            let mut question = Instant::now() + BETWEEN_QUESTIONS;
            while Instant::now() < end {
                let chosen = dice.below(runs.len() as u64) as usize;
                if let Some(run) = runs.get_mut(chosen) {
                    run.stop_for(LONGEST_STOP.mul_f64(dice.below(1000) as f64 / 1000.0));
                    if Instant::now() >= question {
                        run.ask();
                        question = Instant::now() + BETWEEN_QUESTIONS;
                    }
                }
                thread::sleep(BETWEEN_STOPS);
            }
            runs.iter_mut().for_each(StarvedRun::end);
            runs
        });
        machine.is_over.store(true, Ordering::Relaxed);
        runs
    })?;
    judge(&runs, machine.longest())
}

fn judge(runs: &[StarvedRun], machine: Duration) -> Outcome {
    println!(
        "{:<16} {:>3} {:>12} {:>7} {:>10} {:>12} {:>10} {:>8}  longest wait for",
        "application", "JDK", "events", "lost", "waits", "longest wait", "answer", "end"
    );
    let mut failures = Vec::new();
    for run in runs {
        match run.read_log() {
            Ok(row) => {
                println!(
                    "{:<16} {:>3} {:>12} {:>7} {:>10} {:>9.1} ms {:>8.2} s {:>6.2} s  {}",
                    run.app.name,
                    run.jdk.version,
                    row.events,
                    row.lost,
                    row.waits,
                    row.longest_wait.as_secs_f64() * 1e3,
                    run.longest_answer.as_secs_f64(),
                    run.ending.as_secs_f64(),
                    row.lock,
                );
                failures.extend(run.complaints(&row, machine));
            }
            Err(message) => failures.push(message),
        }
    }
    println!(
        "a thread of this check woke up {:.1} ms late at most",
        machine.as_secs_f64() * 1e3
    );
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n")),
    }
}

/// How late the machine wakes a thread.
#[derive(Default)]
struct MachineDelay {
    longest_ns: AtomicU64,
    is_over: AtomicBool,
}

impl MachineDelay {
    fn measure(&self) {
        const NAP: Duration = Duration::from_millis(1);
        while !self.is_over.load(Ordering::Relaxed) {
            let began = Instant::now();
            thread::sleep(NAP);
            let late_ns = began.elapsed().saturating_sub(NAP).as_nanos();
            let late_ns = u64::try_from(late_ns).unwrap_or(u64::MAX);
            self.longest_ns.fetch_max(late_ns, Ordering::Relaxed);
        }
    }

    fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest_ns.load(Ordering::Relaxed))
    }
}

/// Numbers that are the same in each run (a linear congruential generator).
struct Dice(u64);

impl Dice {
    /// At least 0, below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

struct StarvedRun {
    app: &'static App,
    jdk: Jdk,
    log: PathBuf,
    java: Child,
    longest_answer: Duration,
    ending: Duration,
}

/// What the log says in the end.
struct WaitRow {
    events: u64,
    lost: u64,
    waits: u64,
    longest_wait: Duration,
    /// What the lock of the longest wait protects.
    lock: String,
}

impl StarvedRun {
    fn start_all(folder: &std::path::Path) -> Result<Vec<StarvedRun>, String> {
        let jdks = jdk::tested()?;
        let apps = || APPS.iter().filter(|app| STARVED.contains(&app.name));
        let pairs = jdks
            .iter()
            .flat_map(|jdk| apps().map(move |app| (app, jdk)));
        pairs
            .cycle()
            .take(JVMS)
            .enumerate()
            .map(|(number, (app, jdk))| {
                let log = folder.join(format!("{number}.lucce"));
                StarvedRun::start(app, jdk, log)
            })
            .collect()
    }

    fn start(app: &'static App, jdk: &Jdk, log: PathBuf) -> Result<StarvedRun, String> {
        let file = fs::File::create(log.with_extension("out")).map_err(|e| e.to_string())?;
        let errors = file.try_clone().map_err(|e| e.to_string())?;
        let mut java = jdk.java();
        java.arg("-Xmx300m").arg(format!(
            "-agentpath:{}=out={},events=alloc+lock",
            paths::agent().display(),
            log.display()
        ));
        java.args(app.class_path_and_main());
        java.args(["--iterations", "1000000", "--threads", "4"]);
        java.args(["--size", &app.small.to_string()]);
        java.args(app.operand());
        java.stdin(Stdio::null()).stdout(file).stderr(errors);
        let java = java.spawn().map_err(|e| format!("java: {e}"))?;
        Ok(StarvedRun {
            app,
            jdk: jdk.clone(),
            log,
            java,
            longest_answer: Duration::ZERO,
            ending: Duration::ZERO,
        })
    }

    fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        let _ = kill.arg(name).arg(self.java.id().to_string()).status();
    }

    fn stop_for(&self, time: Duration) {
        self.signal("-STOP");
        thread::sleep(time);
        self.signal("-CONT");
    }

    /// Asks the agent for its state, as a person would.
    fn ask(&mut self) {
        let began = Instant::now();
        let mut lucce = Command::new(paths::lucce());
        let pid = self.java.id().to_string();
        let quiet = lucce.args(["ctl", &pid, "status"]).stdout(Stdio::null());
        let _ = quiet.stderr(Stdio::null()).status();
        self.longest_answer = self.longest_answer.max(began.elapsed());
    }

    fn end(&mut self) {
        let began = Instant::now();
        self.signal("-TERM");
        let _ = self.java.wait();
        self.ending = began.elapsed();
    }

    fn read_log(&self) -> Result<WaitRow, String> {
        let mut lucce = Command::new(paths::lucce());
        let output = lucce.args(["stats", "--json"]).arg(&self.log).output();
        let output = output.map_err(|e| format!("lucce: {e}"))?;
        let stats: Value = serde_json::from_slice(&output.stdout)
            .map_err(|e| format!("{}: {e}", paths::short(&self.log)))?;
        let agent = stats["agent"].as_object();
        let agent = agent.ok_or("lucce stats: no counts of the agent")?;
        let count = |key: &str| agent.get(key).and_then(Value::as_u64);
        let missing = |key: &str| format!("{}: no {key}", paths::short(&self.log));
        let longest_ns = count("locks.longest_wait_ns").ok_or_else(|| missing("waits"))?;
        let kinds = agent
            .iter()
            .filter_map(|(key, ns)| Some((key.strip_prefix("locks.longest_wait_ns.")?, ns)));
        let lock = kinds.max_by_key(|(_, ns)| ns.as_u64());
        Ok(WaitRow {
            events: count("events.recorded").ok_or_else(|| missing("events"))?,
            lost: count("events.lost").ok_or_else(|| missing("lost events"))?,
            waits: count("locks.waits").unwrap_or_default(),
            longest_wait: Duration::from_nanos(longest_ns),
            lock: lock.map_or("", |(name, _)| name).to_owned(),
        })
    }

    fn complaints(&self, row: &WaitRow, machine: Duration) -> Vec<String> {
        let name = format!("{} on {}", self.app.name, self.jdk.version);
        let wait = LONGEST_STOP + machine + WAIT_BOUND;
        let checks = [
            (row.events == 0, "recorded nothing".to_owned()),
            (row.lost > 0, format!("lost {} events", row.lost)),
            (
                row.longest_wait > wait,
                format!("a thread waited {:?} for {}", row.longest_wait, row.lock),
            ),
            (
                self.longest_answer > ANSWER_BOUND,
                format!("took {:?} to answer", self.longest_answer),
            ),
            (
                self.ending > ANSWER_BOUND,
                format!("took {:?} to end", self.ending),
            ),
        ];
        let failed = checks.into_iter().filter(|(is_bad, _)| *is_bad);
        failed.map(|(_, what)| format!("{name}: {what}")).collect()
    }
}

impl Drop for StarvedRun {
    fn drop(&mut self) {
        let _ = self.java.kill();
        let _ = self.java.wait();
    }
}
