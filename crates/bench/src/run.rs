//! Runs all programs under all variants, interleaved.
//!
//! In each round of a program, every variant runs once, in its own JVM. Variants of a program that can wait take turns,
//! iteration by iteration; others run one after the other. The order rotates, so that no variant always follows the
//! same other one. Anything that slows the machine for a while affects baseline and variants alike.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::iterations::ends_iteration;
use crate::jit;
use crate::process::{self, Ended};
use crate::{Column, Iterations, Metric, Outcome, Plan, Program, Report, Row, Variant};

/// A JVM that has just ended.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    pub program: &'a str,
    pub variant: &'a str,
    /// From 1.
    pub round: usize,
    /// Number of JVMs so far, and the expected total.
    pub done: usize,
    pub total: usize,
    /// Ratio of the own threads' CPU time to the baseline's in this round, if the baseline has run.
    pub ratio: Option<f64>,
}

/// Measures. Passes every step to `on_step`, with the report so far.
pub fn measure(plan: &Plan, on_step: &dyn Fn(&Step, &Report)) -> Report {
    let refused = refusals(plan);
    let column = |variant: &Variant| Column {
        name: variant.name.clone(),
        about: variant.about.clone(),
    };
    let mut reporter = ProgressReporter {
        on_step,
        done: 0,
        total: plan.programs.len() * plan.rounds * refused.iter().filter(|r| r.is_none()).count(),
        report: Report {
            rows: Vec::new(),
            setting: setting(plan),
            centre: plan.centre,
            columns: plan.variants.iter().map(column).collect(),
        },
    };
    for program in &plan.programs {
        let cells = Cells::new(plan, program, &refused);
        reporter.report.rows.push(cells.row());
        cells.run(&mut reporter);
    }
    reporter.report
}

struct ProgressReporter<'a> {
    on_step: &'a dyn Fn(&Step, &Report),
    done: usize,
    total: usize,
    /// The last row belongs to the running program.
    report: Report,
}

const PROBE_LIMIT: Duration = Duration::from_secs(60);

/// Returns for each variant why a JVM does not accept its flags.
pub fn refusals(plan: &Plan) -> Vec<Option<String>> {
    let Some(program) = plan.programs.first() else {
        return Vec::new();
    };
    let probe = |variant: &Variant| {
        let recording = plan.scratch.join(format!("probe.{}", variant.recording()));
        let flags = variant.flags(&plan.tools, &recording)?;
        let mut command = program.command.probe(&flags);
        let ended = run(&mut command, plan, PROBE_LIMIT);
        let _ = fs::remove_file(&recording);
        ended.map(drop)
    };
    plan.variants.iter().map(|v| probe(v).err()).collect()
}

fn setting(plan: &Plan) -> BTreeMap<String, String> {
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let mut setting = BTreeMap::from([
        ("processors".to_owned(), processors.to_string()),
        ("rounds".to_owned(), plan.rounds.to_string()),
        ("iterations_dropped".to_owned(), plan.warm_up.to_string()),
    ]);
    setting.extend(plan.setting.clone());
    if let Some(jvm) = plan.programs.first().and_then(|program| jvm(plan, program)) {
        setting.insert("jvm".to_owned(), jvm);
    }
    setting
}

/// Returns the JVM's name and version.
fn jvm(plan: &Plan, program: &Program) -> Option<String> {
    let ended = run(&mut program.command.probe(&[]), plan, PROBE_LIMIT).ok()?;
    // The third line has the name and the exact version.
    Some(ended.stderr.lines().last()?.trim().to_owned())
}

/// Runs a command that must succeed.
///
/// # Errors
/// The command failed; the message has its last output.
fn run(command: &mut Command, plan: &Plan, limit: Duration) -> Result<Ended, String> {
    let ended = process::run(command, &plan.scratch, limit);
    judged(ended, command, limit)
}

/// Checks that a command succeeded.
///
/// # Errors
/// The command failed.
fn judged(ended: io::Result<Ended>, command: &Command, limit: Duration) -> Result<Ended, String> {
    let ended =
        ended.map_err(|e| format!("cannot start {}: {e}", command.get_program().display()))?;
    match () {
        () if ended.timed_out => Err(format!("did not end within {} s", limit.as_secs())),
        () if ended.status.success() => Ok(ended),
        () => Err(format!("{} ({})", last_words(&ended), ended.status)),
    }
}

/// Returns the line that explains a failure best: an error of the program or of the agent, or else the last line.
fn last_words(ended: &Ended) -> String {
    let lines = || ended.stderr.lines().chain(ended.stdout.lines());
    let ours = lines().find(|line| line.starts_with("lucce:"));
    let failed = || lines().find(|line| line.starts_with("FAILED"));
    let error = || lines().find(|line| line.contains("ERROR") || line.contains("Exception"));
    let last = || lines().rfind(|line| !line.trim().is_empty());
    match failed() {
        Some(failed) => with_reasons(failed, ended),
        None => {
            let line = error().or(ours).or_else(last);
            line.unwrap_or("no output").trim().to_owned()
        }
    }
}

/// Returns a failure together with the program's other failed checks.
fn with_reasons(failed: &str, ended: &Ended) -> String {
    const MOST: usize = 4;
    let mut reasons = vec![failed.trim()];
    for line in ended.stderr.lines().map(str::trim) {
        if reasons.len() < MOST
            && line.to_lowercase().contains("failed")
            && !reasons.contains(&line)
        {
            reasons.push(line);
        }
    }
    reasons.join("; ")
}

/// The results of a JVM.
struct Run {
    metrics: BTreeMap<Metric, Vec<f64>>,
    checksums: BTreeSet<String>,
    /// Whether it printed iterations of its own.
    repeats: bool,
}

/// The cells of a program's row.
struct Cells<'a> {
    plan: &'a Plan,
    program: &'a Program,
    outcomes: Vec<Outcome>,
    /// The result of the baseline.
    expected: Option<BTreeSet<String>>,
}

impl<'a> Cells<'a> {
    fn new(plan: &'a Plan, program: &'a Program, refused: &[Option<String>]) -> Cells<'a> {
        let outcome = |reason: &Option<String>| match reason {
            Some(reason) => Outcome::NotRun(reason.clone()),
            None => Outcome::Measured(BTreeMap::new()),
        };
        Cells {
            plan,
            program,
            outcomes: refused.iter().map(outcome).collect(),
            expected: None,
        }
    }

    fn run(mut self, reporter: &mut ProgressReporter) {
        let repeats = self.round(0, reporter);
        let mut rounds = self.plan.rounds;
        // The whole process is measured: the first one of each variant is the warm-up.
        if !repeats && self.plan.warm_up > 0 {
            reporter.total += self.waiting();
            self.forget();
            rounds += 1;
        }
        for round in 1..rounds {
            self.round(round, reporter);
        }
        reporter.see(self.row());
    }

    fn row(&self) -> Row {
        Row {
            program: self.program.name.clone(),
            outcomes: self.outcomes.clone(),
        }
    }

    /// Runs each variant once. Returns whether the program repeats its work by itself.
    fn round(&mut self, round: usize, reporter: &mut ProgressReporter) -> bool {
        let count = self.outcomes.len();
        if self.program.turns {
            return self.together(round, reporter);
        }
        let mut repeats = false;
        let mut cpu: Vec<Option<f64>> = vec![None; count];
        for turn in 0..count {
            // The baseline is first in the first round: its result is the expected one.
            let at = (turn + round) % count;
            if !self.still_measured(at) {
                continue;
            }
            let run = self.once(at);
            if let Some(cell) = cpu.get_mut(at) {
                *cell = run.as_ref().ok().and_then(Run::cpu);
            }
            repeats |= run.as_ref().is_ok_and(|run| run.repeats);
            self.keep(at, run);
            reporter.report_step(self.step(at, round, &cpu), self.row());
        }
        repeats
    }

    /// Runs one round of all variants at once, in turns.
    fn together(&mut self, round: usize, reporter: &mut ProgressReporter) -> bool {
        let count = self.outcomes.len();
        let able: Vec<usize> = (0..count).filter(|at| self.still_measured(*at)).collect();
        let mut commands = Vec::new();
        let mut started = Vec::new();
        for at in able {
            match self.command(at) {
                Ok(command) => {
                    commands.push(command);
                    started.push(at);
                }
                Err(reason) => self.keep(at, Err(reason)),
            }
        }
        let (scratch, limit) = (&self.plan.scratch, self.plan.limit);
        let ends = process::run_in_turns(&mut commands, scratch, limit, round, &ends_iteration);
        let mut repeats = false;
        let mut cpu: Vec<Option<f64>> = vec![None; count];
        // The baseline comes first: its result is the expected one.
        for ((at, ended), command) in started.into_iter().zip(ends).zip(&commands) {
            let run = self.seen(at, judged(ended, command, limit));
            if let Some(cell) = cpu.get_mut(at) {
                *cell = run.as_ref().ok().and_then(Run::cpu);
            }
            repeats |= run.as_ref().is_ok_and(|run| run.repeats);
            self.keep(at, run);
            reporter.report_step(self.step(at, round, &cpu), self.row());
        }
        repeats
    }

    fn step(&self, at: usize, round: usize, cpu: &[Option<f64>]) -> Step<'a> {
        let value = |at: usize| cpu.get(at).copied().flatten();
        Step {
            program: &self.program.name,
            variant: self.plan.variants.get(at).map_or("", |v| &v.name),
            round: round + 1,
            done: 0,
            total: 0,
            ratio: value(at).zip(value(0)).map(|(one, base)| one / base),
        }
    }

    fn still_measured(&self, at: usize) -> bool {
        matches!(self.outcomes.get(at), Some(Outcome::Measured(_)))
    }

    fn waiting(&self) -> usize {
        let count = self.outcomes.len();
        (0..count).filter(|at| self.still_measured(*at)).count()
    }

    fn forget(&mut self) {
        for outcome in &mut self.outcomes {
            if let Outcome::Measured(metrics) = outcome {
                metrics.clear();
            }
        }
    }

    fn keep(&mut self, at: usize, run: Result<Run, String>) {
        let run = run.and_then(|run| self.compare(at, run));
        let baseline_failed = at == 0 && run.is_err();
        if let Some(outcome) = self.outcomes.get_mut(at) {
            outcome.add(run);
        }
        if baseline_failed {
            for outcome in &mut self.outcomes {
                outcome.add(Err("the baseline failed".into()));
            }
        }
    }

    /// Compares a run's result with the baseline's.
    ///
    /// # Errors
    /// The results differ.
    fn compare(&mut self, at: usize, run: Run) -> Result<Run, String> {
        if at == 0 && self.expected.is_none() {
            self.expected = Some(run.checksums.clone());
        }
        let Some(expected) = &self.expected else {
            return Ok(run);
        };
        let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" and ");
        match run.checksums == *expected && expected.len() <= 1 {
            true => Ok(run),
            false => Err(format!(
                "computed {}, the baseline {}",
                list(&run.checksums),
                list(expected)
            )),
        }
    }

    /// Runs one JVM.
    fn once(&self, at: usize) -> Result<Run, String> {
        let ended = run(&mut self.command(at)?, self.plan, self.plan.limit);
        self.seen(at, ended)
    }

    fn variant(&self, at: usize) -> Result<&'a Variant, String> {
        let variant = self.plan.variants.get(at);
        variant.ok_or_else(|| "no such variant".to_owned())
    }

    fn command(&self, at: usize) -> Result<Command, String> {
        let variant = self.variant(at)?;
        let recording = self.recording(variant);
        // The agent would leave a file of an interrupted run as it is, and write another file.
        let _ = fs::remove_file(&recording);
        let flags = variant.flags(&self.plan.tools, &recording)?;
        Ok(self.program.command.with(&flags))
    }

    /// Returns the results of a JVM, and its recording.
    fn seen(&self, at: usize, ended: Result<Ended, String>) -> Result<Run, String> {
        let recording = self.recording(self.variant(at)?);
        let recorded = fs::metadata(&recording).map(|file| file.len());
        let _ = fs::remove_file(&recording);
        let warm_up = self.program.warm_up.unwrap_or(self.plan.warm_up);
        let mut run = Run::of(&ended?, warm_up, self.program.whole)?;
        if let Ok(bytes) = recorded {
            run.metrics.insert(Metric::Recorded, vec![bytes as f64]);
        }
        Ok(run)
    }

    fn recording(&self, variant: &Variant) -> PathBuf {
        let file = format!("{}.{}", variant.name, variant.recording());
        Path::new(&self.plan.scratch).join(file)
    }
}

impl ProgressReporter<'_> {
    fn see(&mut self, row: Row) {
        if let Some(last) = self.report.rows.last_mut() {
            *last = row;
        }
    }

    fn report_step(&mut self, step: Step, row: Row) {
        self.done += 1;
        self.see(row);
        let step = Step {
            done: self.done,
            total: self.total,
            ..step
        };
        (self.on_step)(&step, &self.report);
    }
}

impl Outcome {
    /// Adds a round.
    fn add(&mut self, run: Result<Run, String>) {
        let Outcome::Measured(metrics) = self else {
            return;
        };
        match run {
            Ok(run) => {
                for (metric, values) in run.metrics {
                    metrics.entry(metric).or_default().push(values);
                }
            }
            Err(reason) => *self = Outcome::Failed(reason),
        }
    }
}

impl Run {
    fn of(ended: &Ended, warm_up: usize, whole: bool) -> Result<Run, String> {
        let printed = Iterations::parse(&ended.stdout);
        if let Some(failed) = printed.failed {
            return Err(with_reasons(&failed, ended));
        }
        let usage = &ended.usage;
        let repeats = !printed.list.is_empty() && !whole;
        let kept = printed.list.get(warm_up..).unwrap_or_default();
        if repeats && kept.is_empty() {
            let count = printed.list.len();
            return Err(format!(
                "printed {count} iterations, of which {warm_up} are dropped"
            ));
        }
        let (cpu, wall) = match repeats {
            true => (
                kept.iter().map(|iteration| iteration.cpu).collect(),
                kept.iter().map(|iteration| iteration.wall).collect(),
            ),
            false => (vec![usage.cpu], vec![usage.wall]),
        };
        let mut metrics = jit::parse(&ended.stdout);
        metrics.insert(Metric::Cpu, cpu);
        metrics.insert(Metric::Wall, wall);
        if repeats {
            metrics.insert(Metric::Process, vec![usage.cpu]);
            let bytes: Vec<f64> = kept
                .iter()
                .filter_map(|iteration| iteration.bytes)
                .collect();
            if bytes.len() == kept.len() {
                metrics.insert(Metric::Allocated, bytes);
            }
            // If times cannot be assigned to iterations with certainty, they are omitted.
            if ended.own.len() == printed.list.len() {
                let own = ended.own.iter().skip(warm_up).copied();
                metrics.insert(Metric::Own, own.collect());
            }
        } else if let Some(own) = usage.own {
            metrics.insert(Metric::Own, vec![own.cpu]);
            metrics.insert(Metric::Unattributed, vec![own.unattributed]);
        }
        metrics.insert(Metric::PeakRss, vec![usage.peak_rss as f64]);
        Ok(Run {
            metrics,
            checksums: printed.checksums,
            repeats,
        })
    }

    fn cpu(&self) -> Option<f64> {
        let of = |metric| self.metrics.get(&metric);
        let values = of(Metric::Own).or_else(|| of(Metric::Cpu))?;
        Some(crate::Spread::of(values.iter().copied())?.median)
    }
}
