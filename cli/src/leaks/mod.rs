//! `lucce leaks`: finds contexts whose objects are never released.
//!
//! Reading order: `report` (evidence as text and JSON), `rows` (its rows), `alive` (live objects), `exhaustion` (heap of a JVM that ran out
//! of memory), `watch` (follows a running JVM), `snapshot_request` (asks the agent for newer data), `as_of_time`.

mod alive;
mod as_of_time;
mod exhaustion;
mod report;
mod rows;
mod snapshot_request;
mod watch;

use std::cmp::Reverse;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use lucce_decoder::{
    LEAK, LeakAnalysis, LogDamage, Measure, Profile, analyze_leaks, list_alive_objects,
};
use lucce_options::units::parse_interval;
use lucce_page::{AliveTable, LeaksText};

use super::amounts::format_amount;
use super::classes::ClassFilterArgs;
use super::holders::{SearchLimits, find_holders, parse_pause_budget};
use super::output::{format_plural, lock_stdout, write_json};
use super::progress::ProgressMeter;
use super::selection::{EventPatterns, SortArgs};
use super::{CommandError, CommandStatus, SortArg, prefix_path, print_diagnostic, report_damage};
use alive::{AliveListing, AliveReport};
use as_of_time::AsOfTime;
use exhaustion::HeapExhaustion;
use report::{LeaksReport, SUSPECTS};
use watch::LeaksSource;

pub use snapshot_request::{announce_collection, collect_heap, request_snapshot};

/// Rank contexts by the evidence that their objects leak, and print the evidence.
///
/// The run must have events=leak. Only objects that a collection of the old generation left alive count; --gc makes
/// one. If the JVM ran out of memory, the report begins with what filled its heap.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce leaks run-1234.lucce
  lucce leaks --watch --interval 2s 1234
  lucce leaks 1234 --holders
  lucce leaks --alive 1234         prints what is alive now, and from where
  lucce leaks run-1234.lucce --type 'com\\.acme\\.Session' --through 'com\\.acme\\.'
  lucce leaks --gc 1234            collects the whole heap first")]
pub struct LeaksArgs {
    /// Log of a run; or a JVM that has the agent: its process id, its main class or jar, or the end of one
    #[arg(value_name = "FILE|JVM")]
    source: LeaksSource,
    /// Follow the log until its JVM has ended
    #[arg(long)]
    watch: bool,
    /// With --watch: time between readings; longer if reading takes over a quarter of it
    #[arg(short, long, value_name = "TIME", default_value = "5s", value_parser = parse_interval, requires = "watch")]
    interval: Duration,
    /// Find what holds the objects of the first leak, or of the first suspect
    #[arg(long, conflicts_with = "watch")]
    holders: bool,
    /// With --holders: maximum pause of the JVM [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = parse_pause_budget, requires = "holders")]
    pause_budget: Option<Duration>,
    /// Print what is alive by context, type and age, without judgement
    #[arg(long, conflicts_with = "watch")]
    alive: bool,
    #[command(flatten)]
    order: SortArgs,
    /// Collect the whole heap of the JVM first; the program stands still meanwhile
    #[arg(long, conflicts_with = "watch")]
    gc: bool,
    /// Maximum number of contexts; 0: all
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print one JSON object; with --watch, one per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    patterns: EventPatterns,
    #[command(flatten)]
    classes: ClassFilterArgs,
}

/// Collects the JVM's whole heap; prints the expected and the actual cost.
fn collect_heap_aloud(pid: u32) -> Result<(), CommandError> {
    announce_collection(pid, "its whole heap now")?;
    if let Some(took) = collect_heap(pid)? {
        let took = format_amount(took.as_nanos() as f64, "ns");
        print_diagnostic(format!("the collection took {took}"));
    }
    Ok(())
}

pub fn run(args: &LeaksArgs) -> Result<CommandStatus, CommandError> {
    if args.order.sort.is_some() && !args.alive {
        let text = "--sort is for --alive: suspects are sorted by their evidence";
        return Err(CommandError::Usage(text.into()));
    }
    let log = args.source.resolve_log()?;
    if args.watch {
        return watch::watch_leaks(&log, args);
    }
    match (&args.source, args.gc) {
        (LeaksSource::Process(pid), true) => collect_heap_aloud(*pid)?,
        (LeaksSource::Process(pid), false) => snapshot_request::request_snapshot(*pid),
        (LeaksSource::File(_), true) => {
            let text = "--gc asks a JVM that runs: name its process id";
            return Err(CommandError::Usage(text.into()));
        }
        (LeaksSource::File(_), false) => {}
    }
    if args.alive {
        return print_alive(&log, args);
    }
    let (profile, leaks) = read_leaks(&log, args)?;
    print_report(&log, &profile, &leaks, args)?;
    Ok(report_outcome(&log, &profile, &leaks))
}

/// The output of `lucce leaks` for a page. If the JVM `pid` runs, it includes the command that finds root paths.
pub fn leaks_text(profile: &Profile, pid: Option<u32>) -> LeaksText {
    const TOP: usize = 100;
    const SUSPECTS: usize = 30;
    const ALIVE: usize = 200;
    let bar = ProgressMeter::new("looking for leaks", 0);
    let leaks = analyze_leaks(profile, &|more| bar.tick(more));
    drop(bar);
    let report = LeaksReport::new(profile, &leaks, TOP, SUSPECTS)
        .with_process(profile, &leaks, pid)
        .with_exhaustion(HeapExhaustion::from_profile(profile, pid.is_none(), TOP));
    let listing = alive_listing(profile, pid, Measure::Value, ALIVE);
    LeaksText {
        alive: listing.map(|(listing, _)| AliveTable {
            says: listing.format_headline(),
            rows: listing.to_texts(),
        }),
        ..report.to_text()
    }
}

/// Why leaks cannot be excluded, with the largest suspect. `None`: leaks were found or excluded, or no objects were followed.
pub fn describe_open_leaks(profile: &Profile, leaks: &LeakAnalysis) -> Option<String> {
    let is_open = leaks.findings.is_empty() && profile.meta.contains_key("leak.interval");
    let report = is_open.then(|| LeaksReport::new(profile, leaks, 0, 0))?;
    report.describe_open()
}

/// The live objects at the last census. `pid`: the JVM, if it runs. `None`: the log has no census.
fn alive_listing(
    profile: &Profile,
    pid: Option<u32>,
    measure: Measure,
    top: usize,
) -> Option<(AliveListing, Option<LogDamage>)> {
    let census = profile.followed_objects.last_census()?;
    let bar = ProgressMeter::new("decoding", 0);
    let mut objects = list_alive_objects(profile, census, &|more| bar.tick(more));
    drop(bar);
    if measure == Measure::Count {
        objects
            .rows
            .sort_by_key(|row| Reverse(row.total_amount().objects));
    }
    let now = pid.map(|_| SystemTime::now());
    let as_of = AsOfTime::new(profile.header.start, census.record.millis, now);
    let listing = AliveListing::new(profile, &objects, as_of, top);
    Some((listing, objects.damage))
}

fn print_alive(log: &Path, args: &LeaksArgs) -> Result<CommandStatus, CommandError> {
    SortArg::check_total(args.order.sort, false)?;
    SortArg::check_heap(args.order.sort, false, false)?;
    let measure = args.order.measure().unwrap_or_default();
    let profile = open_selected(log, args)?;
    let pid = args.source.running_pid(profile.header.pid, log);
    let pid = pid.filter(|_| !profile.ended);
    let top = if args.top == 0 { usize::MAX } else { args.top };
    let Some((listing, damage)) = alive_listing(&profile, pid, measure, top) else {
        let reason = not_followed_reason(&profile).unwrap_or_else(|| {
            "no object was sampled yet, or an older agent wrote the log, which lists snapshots only"
                .into()
        });
        print_diagnostic(prefix_path(log, reason));
        return Ok(report_damage(
            log,
            profile.damage.as_ref(),
            CommandStatus::Unusable,
        ));
    };
    let report = AliveReport::new(&profile, pid, listing);
    let mut out = lock_stdout();
    match args.json {
        true => write_json(&mut out, &report)?,
        false => report.write(&mut out)?,
    }
    out.flush()?;
    Ok(report_damage(log, damage.as_ref(), CommandStatus::Fine))
}

/// Why the log cannot show leaks, however long the run was. A leak that was found is reported anyway.
fn find_missing_evidence(profile: &Profile, leaks: &LeakAnalysis) -> Option<String> {
    if let Some(reason) = not_followed_reason(profile) {
        return Some(reason);
    }
    let refused = profile.stat_value("log.refused");
    (refused > 0 && leaks.findings.is_empty()).then(|| {
        let seconds = leaks.last_snapshot.map_or(0, |last| last.millis) as f64 / 1e3;
        let records = format_plural(refused, "record");
        format!("the log was full, so what lived is known of the first {seconds:.1} s only: {records} found no room; run with a larger limit=, or more room on the disk")
    })
}

/// Why no objects were sampled. `None`: they were.
fn not_followed_reason(profile: &Profile) -> Option<String> {
    if let Some(reason) = profile.meta.get("leak.none") {
        return Some(format!("no objects were followed: {reason}"));
    }
    // The damaged part may have had the option.
    if !profile.meta.contains_key("leak.interval") && profile.damage.is_some() {
        return Some("what could be read does not say whether objects were followed".into());
    }
    if !profile.meta.contains_key("leak.interval") {
        let text = "no objects were followed: start the JVM with events=leak, or `lucce attach PID --events leak`";
        return Some(text.into());
    }
    None
}

/// Whether the log lacks the agent's options yet: objects may still be sampled.
fn is_starting(profile: &Profile) -> bool {
    !profile.meta.contains_key("options")
}

/// Opens a log and selects its live objects. Says so if none remains.
fn open_selected(log: &Path, args: &LeaksArgs) -> Result<Profile, CommandError> {
    let mut profile = args.classes.open_log(log)?;
    let had_objects = profile.followed_objects.has_objects();
    args.patterns.limit_counters(&mut profile);
    if had_objects && !args.watch && !profile.followed_objects.has_objects() {
        let message = args.patterns.nothing_matches(LEAK.name);
        print_diagnostic(prefix_path(log, message));
    }
    Ok(profile)
}

fn read_leaks(log: &Path, args: &LeaksArgs) -> Result<(Profile, LeakAnalysis), CommandError> {
    let profile = open_selected(log, args)?;
    let bar = ProgressMeter::new("decoding", 0);
    let leaks = analyze_leaks(&profile, &|more| bar.tick(more));
    drop(bar);
    Ok((profile, leaks))
}

fn print_report(
    log: &Path,
    profile: &Profile,
    leaks: &LeakAnalysis,
    args: &LeaksArgs,
) -> Result<(), CommandError> {
    let pid = args.source.running_pid(profile.header.pid, log);
    let top = if args.top == 0 { usize::MAX } else { args.top };
    let exhaustion = HeapExhaustion::from_profile(profile, pid.is_none(), top);
    let pid = pid.filter(|_| !profile.ended);
    let mut report = LeaksReport::new(profile, leaks, args.top, SUSPECTS)
        .with_process(profile, leaks, pid)
        .with_exhaustion(exhaustion);
    if args.holders {
        let pid = pid.ok_or_else(|| {
            CommandError::Usage(
                "the JVM has ended: only one that runs says what holds its objects".into(),
            )
        })?;
        if let Some((ids, class)) = report.first_objects() {
            let limits = SearchLimits::with_budget(args.pause_budget);
            let holders = find_holders(pid, (&ids, class), limits, profile)?;
            report.add_holders(holders);
        }
    }
    let mut out = lock_stdout();
    match args.json {
        true => write_json(&mut out, &report)?,
        false => report.write(&mut out)?,
    }
    out.flush()?;
    Ok(())
}

fn report_outcome(log: &Path, profile: &Profile, leaks: &LeakAnalysis) -> CommandStatus {
    let missing = find_missing_evidence(profile, leaks);
    let is_exhausted = profile.followed_objects.exhaustion_census().is_some();
    let end = match (&missing, leaks.findings.is_empty() && !is_exhausted) {
        (_, false) => CommandStatus::Finding,
        (Some(_), true) => CommandStatus::Unusable,
        (None, true) => CommandStatus::Fine,
    };
    if let Some(missing) = missing {
        print_diagnostic(prefix_path(log, missing));
    }
    report_damage(log, leaks.damage.as_ref(), end)
}
