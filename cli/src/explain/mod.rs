//! `lucce explain`: names what a run does wastefully, by its own lines, with exact counts.
//!
//! ```text
//! log ─► PreparedRun: contexts with own lines and entries ─► DETECTORS ─► findings, by cost ─► text, JSON, page
//! ```
//! Reading order: `prepared_run`, `finding`, `detectors` (the table), `repeated_calls`, `contention`, `exceptions`, `allocation_rules`,
//! `counted_calls`, `explanation`, `page`.

mod allocation_rules;
mod contention;
mod counted_calls;
mod detectors;
mod exceptions;
mod explanation;
mod finding;
mod page;
mod prepared_run;
mod repeated_calls;

#[cfg(test)]
mod explain_tests;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lucce_control::{ControlCommand, send_command, stop_signal};
use lucce_decoder::{TraceTree, analyze_leaks};
use lucce_options::units::parse_duration;

use super::agent_path::agent_path;
use super::amounts::format_amount;
use super::attach::{agent_options, attach_agent};
use super::classes::ClassFilterArgs;
use super::leaks::{announce_collection, collect_heap, describe_open_leaks, request_snapshot};
use super::list::{find_pid, list_jvms, query_agent};
use super::output::{format_plural, lock_stdout, write_json};
use super::progress::ProgressMeter;
use super::record::{RecordingEnd, wait_for_end};
use super::recording_args::RecordingArgs;
use super::run_interval::RunIntervalArgs;
use super::target::find_log_file;
use super::{
    CommandError, CommandStatus, agent_status, print_diagnostic, process, report_contexts_damage,
    view,
};
use allocation_rules::ALLOCATIONS;
use detectors::DETECTORS;
use explanation::explain_run;
use prepared_run::{PreparedRun, insert_traces};

/// Say what a program does wastefully: repeated queries, exceptions for control flow, contended locks, leaks, needless
/// allocations.
///
/// Findings are ordered by cost. Each has its count, a line of the program's own code, a trace, and the command that shows
/// more. A JVM without the agent is recorded for a while: the agent is attached and detached again.
#[derive(clap::Args, Default)]
#[command(after_help = "Examples:
  lucce explain run-1234.lucce
  lucce explain 1234 --for 30s --gc
  lucce run --explain java -jar app.jar")]
pub struct ExplainArgs {
    /// Log of a run, or a running JVM: process id, main class or jar
    #[arg(value_name = "FILE|JVM", required_unless_present = "help_findings")]
    source: Option<String>,
    /// Record a JVM for this time [default: 30s]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Collect the JVM's whole heap 30 times meanwhile, to prove leaks; the program stands still each time
    #[arg(long)]
    gc: bool,
    /// Write the log of a JVM to this file [default: lucce-%p-%t.lucce]
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write a page to this file
    #[arg(short, long, value_name = "PAGE")]
    out: Option<PathBuf>,
    /// Maximum number of findings; 0: all
    #[arg(long, value_name = "N", default_value_t = DEFAULT_TOP)]
    top: usize,
    /// Print one JSON object; docs/reference/json.md describes it
    #[arg(long)]
    json: bool,
    /// Print the detectors, their thresholds and advice
    #[arg(long)]
    help_findings: bool,
    #[command(flatten)]
    interval: RunIntervalArgs,
    #[command(flatten)]
    classes: ClassFilterArgs,
}

/// What `lucce run --explain` records.
pub const RUN_EVENTS: &str =
    "alloc+exception+lock+thread+io+leak=16k+class+call:loggers+java.lang.System.gc";
/// What a running JVM can report to an attached agent. Smaller samples say more about short recordings.
const ATTACHED_EVENTS: &str = "alloc+leak=4k+lock+class+call:java.lang.System.gc";
/// Findings of the text.
const DEFAULT_TOP: usize = 5;
const DEFAULT_DURATION: Duration = Duration::from_secs(30);
/// Collections of `--gc`: more than the ages that a proof of a leak needs.
const COLLECTIONS: u32 = 30;

pub fn run(args: &ExplainArgs) -> Result<CommandStatus, CommandError> {
    if args.help_findings {
        return print_detectors();
    }
    if let Some(page) = &args.out {
        view::check_output(page)?;
    }
    let source = args.source.as_deref().unwrap_or_default();
    if let Some(log) = find_log_file(source)? {
        if args.gc || args.duration.is_some() || args.log.is_some() {
            let text = "--for, --gc and --log are for a JVM that runs: name its process id";
            return Err(CommandError::Usage(text.into()));
        }
        return explain_log(&log, args);
    }
    let pid = find_pid(source, &list_jvms())?;
    match record_jvm(pid, args)? {
        Ok(log) => explain_log(&log, args),
        Err(end) => Ok(end),
    }
}

/// Explains the log of a program that has ended, as text.
pub fn explain_ended_run(log: &Path) -> Result<CommandStatus, CommandError> {
    let args = ExplainArgs {
        top: DEFAULT_TOP,
        ..ExplainArgs::default()
    };
    explain_log(log, &args)
}

fn print_detectors() -> Result<CommandStatus, CommandError> {
    let mut out = lock_stdout();
    for detector in &DETECTORS {
        writeln!(
            out,
            "{}: {}\n   from: {}\n   do: {}\n   needs: events={}",
            detector.name,
            detector.summary,
            detector.threshold,
            detector.advice,
            detector.kinds.join(" or events=")
        )?;
        if detector.name == ALLOCATIONS {
            allocation_rules::write_rules(&mut out)?;
        }
    }
    out.flush()?;
    Ok(CommandStatus::Fine)
}

/// Records a JVM for a time. A JVM that has the agent already goes on with it. Returns its log, or the exit code of an
/// agent that cannot be attached.
fn record_jvm(
    pid: u32,
    args: &ExplainArgs,
) -> Result<Result<PathBuf, CommandStatus>, CommandError> {
    let has_agent = query_agent(pid).is_some();
    // Set before attaching, so that a signal cannot leave the agent in the JVM.
    stop_signal::handle_stop_signals()?;
    if !has_agent {
        let recording = RecordingArgs::from_events(ATTACHED_EVENTS, args.log.clone());
        let options = agent_options(&recording)?;
        if let Err(end) = attach_agent(pid, &agent_path()?, &options) {
            return Ok(Err(end));
        }
    }
    let log = agent_status::log_path_of(pid)?;
    let duration = args.duration.or((!has_agent).then_some(DEFAULT_DURATION));
    let duration = duration.unwrap_or_default();
    if !duration.is_zero() {
        print_diagnostic(format_args!(
            "process {pid} is recorded for {:.1} s in {}",
            duration.as_secs_f64(),
            log.display()
        ));
    }
    let waited = wait_and_collect(pid, &log, duration, args.gc);
    if process::is_gone(pid, &log) {
        return Ok(Ok(log));
    }
    request_snapshot(pid);
    if !has_agent
        && let Err(error) = send_command(pid, &ControlCommand::Detach)
        && !process::is_gone(pid, &log)
    {
        return Err(error.into());
    }
    waited.map(|()| Ok(log))
}

/// Waits; with `collects`, collects the heap after each part of the time.
fn wait_and_collect(
    pid: u32,
    log: &Path,
    duration: Duration,
    collects: bool,
) -> Result<(), CommandError> {
    if !collects {
        wait_for_end(pid, log, duration);
        return Ok(());
    }
    announce_collection(pid, &format!("its whole heap {COLLECTIONS} times"))?;
    let mut pauses = Vec::new();
    for _ in 0..COLLECTIONS {
        if wait_for_end(pid, log, duration / COLLECTIONS) != RecordingEnd::DurationElapsed {
            break;
        }
        pauses.extend(collect_heap(pid)?);
    }
    if let Some(longest) = pauses.iter().max() {
        let sum: Duration = pauses.iter().sum();
        print_diagnostic(format!(
            "{}: {} in sum, {} at most",
            format_plural(pauses.len() as u64, "collection"),
            format_amount(sum.as_nanos() as f64, "ns"),
            format_amount(longest.as_nanos() as f64, "ns")
        ));
    }
    Ok(())
}

fn explain_log(log: &Path, args: &ExplainArgs) -> Result<CommandStatus, CommandError> {
    let mut profile = args.classes.open_log(log)?;
    args.interval.apply(log, &mut profile)?;
    let bar = ProgressMeter::new("decoding", 0);
    let contexts = profile.list_contexts(&|more| bar.tick(more));
    let leaks = analyze_leaks(&profile, &|more| bar.tick(more));
    drop(bar);
    let mut traces = TraceTree::new(&profile);
    let paths = insert_traces(&contexts, &leaks, &mut traces);
    let run = PreparedRun::from_profile(&profile, &contexts, &leaks, &traces, &paths);
    let most = if args.top == 0 { usize::MAX } else { args.top };
    let mut open_leaks = describe_open_leaks(&profile, &leaks);
    if let (Some(reason), false) = (&mut open_leaks, profile.ended) {
        reason.push_str(" (lucce explain JVM --gc collects the heap)");
    }
    let explanation = explain_run(&profile, &run, &log.display().to_string(), most);
    let explanation = explanation.with_open_leaks(open_leaks);
    if let Some(page) = &args.out {
        view::write_page_file(page, &explanation.to_page())?;
    }
    let mut out = lock_stdout();
    match (args.json, &args.out) {
        (true, _) => write_json(&mut out, &explanation)?,
        (false, None) => explanation.write(&mut out)?,
        (false, Some(_)) => {}
    }
    out.flush()?;
    Ok(report_contexts_damage(log, &contexts, CommandStatus::Fine))
}
