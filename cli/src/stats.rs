//! `lucce stats`: prints a log's content and the sizes of its parts.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use lucce_decoder::escape::{EscapedLine, EscapedText};
use lucce_decoder::{
    ALLOC, AllocationCoverage, ContextSummary, CoverageBytes, EventStream, Profile, SkippedCode,
    compute_coverage, events_path,
};
use lucce_options::kinds::is_supplement_kind;
use lucce_tracelog::{EventTypeId, LogFullCause};
use serde::Serialize;

use super::classes::ClassFilterArgs;
use super::output::{grouped, lock_stdout, write_json};
use super::progress::ProgressMeter;
use super::time_window;
use super::{CommandError, CommandStatus, report_unknown_and_damage};

/// Number of threads whose coverage is shown; `--json` has all.
const THREADS: usize = 8;

/// Print facts and sizes of the run, the graph and the log, and the agent's counters.
#[derive(clap::Args)]
#[command(after_help = "Example:
  lucce stats run-1234.lucce --json")]
pub struct StatsArgs {
    /// Log of the run
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    classes: ClassFilterArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct LogStats<'a> {
    run: &'a BTreeMap<String, String>,
    /// `None`: the log is from before run ids.
    run_id: Option<String>,
    pid: u32,
    /// Start of the run in milliseconds since 1970.
    start: u64,
    ended: bool,
    damaged: bool,
    /// Number of blocks of counters without a checksum.
    unsealed: u64,
    graph: BTreeMap<&'static str, u64>,
    code: BTreeMap<&'static str, u64>,
    events: BTreeMap<&'static str, u64>,
    /// Allocation coverage.
    coverage: Option<AllocationCoverage>,
    /// The reason why there is no coverage.
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage_none: Option<&'a str>,
    kinds: Vec<KindStats>,
    log: Vec<LogPart>,
    /// The stream beside the log, if it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<StreamStats>,
    agent: &'a BTreeMap<String, u64>,
    skipped: Vec<String>,
    /// The agent's warnings on standard error, first those about classes and methods without hooks.
    warnings: Vec<String>,
}

/// The counted events of a kind.
#[derive(Serialize)]
struct KindStats {
    kind: String,
    count: u64,
    /// The sum of values, in the unit.
    value: u64,
    unit: String,
}

/// The stream of events.
#[derive(Serialize)]
struct StreamStats {
    events: u64,
    threads: u64,
    bytes: u64,
    /// Nanoseconds from the start until the first event that did not fit.
    full_since: Option<u64>,
    damaged: bool,
}

#[derive(Serialize)]
struct LogPart {
    kind: &'static str,
    records: u64,
    bytes: u64,
}

pub fn run(args: &StatsArgs) -> Result<CommandStatus, CommandError> {
    let has_stream = events_path(&args.file).exists();
    let stream = has_stream
        .then(|| time_window::read_stream(&args.file))
        .transpose()?;
    let profile = args.classes.open_log(&args.file)?;
    let summary = read_summary(&profile);
    let end = match &stream {
        Some(stream) => time_window::check_stream(&args.file, &profile, stream)?,
        None => CommandStatus::Fine,
    };
    let mut stats = LogStats::new(&profile, &summary);
    stats.stream = stream.as_ref().map(StreamStats::new);
    let mut out = lock_stdout();
    match args.json {
        true => write_json(&mut out, &stats)?,
        false => stats.write(&mut out)?,
    }
    out.flush()?;
    let unknown = summary.unknown.len();
    let ended = report_unknown_and_damage(
        &args.file,
        unknown,
        summary.damage.as_ref(),
        CommandStatus::Fine,
    );
    Ok(ended.max(end))
}

impl<'a> LogStats<'a> {
    fn new(profile: &'a Profile, summary: &ContextSummary) -> Self {
        let (graph, code) = (&profile.graph, &profile.code);
        let coverage = match profile.is_restricted() {
            true => Err("only some classes are shown (--include, --exclude)"),
            false => compute_coverage(profile),
        };
        LogStats {
            run: &profile.meta,
            run_id: profile.header.run.map(|run| run.to_string()),
            pid: profile.header.pid,
            start: profile.header.start / 1_000_000,
            ended: profile.ended,
            damaged: summary.damage.is_some(),
            unsealed: profile.unsealed,
            graph: collect_counts([
                ("nodes", graph.node_count()),
                ("transitions", graph.transition_count()),
                ("anchors", graph.anchor_count()),
                ("versions", graph.version_count()),
                ("bases", graph.base_count()),
            ]),
            code: collect_counts([
                ("classes", code.class_count()),
                ("methods", code.method_count()),
                ("sites", code.site_count()),
                ("skipped", profile.skipped.len()),
            ]),
            events: count_events(profile, summary),
            coverage_none: coverage.as_ref().err().copied(),
            coverage: coverage.ok(),
            kinds: collect_kinds(profile, summary),
            log: log_parts(profile),
            stream: None,
            agent: &profile.stats,
            skipped: profile.skipped.iter().map(ToString::to_string).collect(),
            warnings: collect_warnings(profile),
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let ended = match (self.ended, self.damaged) {
            (true, _) => "yes",
            (false, true) => "not known: the log is damaged",
            (false, false) => "no: killed, or still runs",
        };
        write_section(
            out,
            "run",
            self.run
                .iter()
                .map(|(key, value)| (key.as_str(), value.clone())),
        )?;
        if let Some(run) = &self.run_id {
            write_row(out, "run id", run)?;
        }
        write_row(out, "pid", &self.pid.to_string())?;
        write_row(out, "ended by itself", ended)?;
        let sums = match self.unsealed {
            0 => "yes",
            _ => "no: damage to counters is not noticed",
        };
        write_row(out, "counters have checksums", sums)?;
        write_section(out, "graph", format_counts(&self.graph))?;
        write_section(out, "code", format_counts(&self.code))?;
        write_section(out, "events", format_counts(&self.events))?;
        self.write_kinds(out)?;
        self.write_coverage(out)?;
        write_section(
            out,
            "log",
            self.log.iter().map(|part| {
                let text = format!(
                    "{:>12} bytes {:>10} records",
                    grouped(part.bytes),
                    grouped(part.records)
                );
                (part.kind, text)
            }),
        )?;
        if let Some(stream) = &self.stream {
            stream.write(out)?;
        }
        let agent = self
            .agent
            .iter()
            .map(|(key, value)| (key.as_str(), grouped(*value)));
        write_section(out, "agent", agent)?;
        write_list(out, "ran without hooks", &self.skipped)?;
        // The warnings after those about classes and methods, which were already listed.
        let others = self.warnings.get(self.skipped.len()..);
        write_list(out, "warnings", others.unwrap_or_default())
    }
}

impl StreamStats {
    fn new(stream: &EventStream) -> StreamStats {
        StreamStats {
            events: stream.event_count(),
            threads: stream.threads().len() as u64,
            bytes: stream.size_bytes(),
            full_since: stream.full_since().map(|clock| stream.since_start(clock)),
            damaged: stream.damage().is_some(),
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let rows = [
            ("events", self.events),
            ("threads", self.threads),
            ("bytes", self.bytes),
        ];
        write_section(
            out,
            "stream",
            rows.into_iter().map(|(key, value)| (key, grouped(value))),
        )?;
        match self.full_since {
            Some(nanos) => write_row(out, "full since", &format!("{:.3} s", nanos as f64 / 1e9)),
            None => Ok(()),
        }
    }
}

impl LogStats<'_> {
    fn write_coverage(&self, out: &mut impl Write) -> io::Result<()> {
        let title = "counted, of the bytes that the VM allocated";
        match (&self.coverage, self.coverage_none) {
            (Some(coverage), _) => {
                writeln!(out, "counted: {coverage}")?;
                coverage.threads.iter().take(THREADS).try_for_each(|of| {
                    let name = EscapedText(&of.thread).to_string();
                    writeln!(
                        out,
                        "  {name:<22} {}",
                        format_coverage(of.bytes, coverage.percent_digits())
                    )
                })
            }
            (None, Some(reason)) => writeln!(out, "{title}: not known, {}", EscapedLine(reason)),
            (None, None) => Ok(()),
        }
    }

    fn write_kinds(&self, out: &mut impl Write) -> io::Result<()> {
        let rows = self.kinds.iter().map(|kind| {
            let sum = match (kind.unit.as_str(), kind.value) {
                ("", 0) => String::new(),
                (unit, value) => format!(" {:>20} {unit}", grouped(value)),
            };
            let text = format!("{:>12}{sum}", grouped(kind.count));
            (kind.kind.as_str(), text.trim_end().to_owned())
        });
        match self.kinds.is_empty() {
            true => Ok(()),
            false => write_section(out, "events by kind", rows),
        }
    }
}

/// `99.8%    998 of 1,000 bytes`
/// `digits`: number of decimal digits of a percentage.
fn format_coverage(bytes: CoverageBytes, digits: usize) -> String {
    let percent = bytes
        .percent
        .map_or("-".into(), |percent| format!("{percent:.digits$}%"));
    let (counted, allocated) = (grouped(bytes.counted), grouped(bytes.allocated));
    format!("{percent:>7} {counted:>18} of {allocated} bytes")
}

fn collect_counts<const N: usize>(
    counts: [(&'static str, usize); N],
) -> BTreeMap<&'static str, u64> {
    counts
        .into_iter()
        .map(|(key, value)| (key, value as u64))
        .collect()
}

fn read_summary(profile: &Profile) -> ContextSummary {
    let bar = ProgressMeter::new("decoding", profile.events.context_ids().len() as u64);
    profile.summarize_contexts(&|more| bar.tick(more))
}

fn collect_kinds(profile: &Profile, summary: &ContextSummary) -> Vec<KindStats> {
    let sums = summary.by_kind(profile);
    let kinds = profile.counted_kinds().into_iter().map(|kind| {
        let (count, value) = sums.get(&kind.name).copied().unwrap_or_default();
        KindStats {
            value,
            count: match profile.is_restricted() {
                true => count,
                false => kind.count,
            },
            kind: kind.name,
            unit: kind.unit,
        }
    });
    kinds.collect()
}

fn count_events(profile: &Profile, summary: &ContextSummary) -> BTreeMap<&'static str, u64> {
    // Kinds that say more about other events are none of their own.
    let is_event = |event: EventTypeId| {
        let info = profile.types.get(event);
        info.is_none_or(|info| !is_supplement_kind(&info.kind))
    };
    let events = match profile.is_restricted() {
        true => summary.event_count(is_event),
        false => {
            let events = profile
                .events
                .filter_counters(|counter| is_event(counter.event));
            events.event_count()
        }
    };
    let mut all = BTreeMap::from([
        ("threads", profile.threads.len() as u64),
        ("threads_with_events", profile.events.thread_count() as u64),
        ("events", events),
        (
            "bytes",
            summary
                .by_kind(profile)
                .get(ALLOC.name)
                .map_or(0, |(_, bytes)| *bytes),
        ),
        ("contexts", summary.traces),
        ("numbers", profile.events.context_ids().len() as u64),
    ]);
    if profile.is_restricted() {
        all.insert("out_of_scope", summary.outside);
    }
    all
}

fn log_parts(profile: &Profile) -> Vec<LogPart> {
    let sizes = &profile.sizes;
    let part = |kind, (records, bytes)| LogPart {
        kind,
        records,
        bytes,
    };
    let mut parts: Vec<_> = sizes
        .records
        .iter()
        .map(|(kind, size)| part(kind.name(), *size))
        .collect();
    parts.push(part("counters", sizes.counters));
    parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    let records = parts.iter().map(|part| part.records).sum();
    parts.push(part("file", (records, profile.size)));
    parts
}

/// Replaces keys by readable names; keeps unknown keys.
fn format_counts(counts: &BTreeMap<&'static str, u64>) -> Vec<(String, String)> {
    let row = |(key, value): (&&str, &u64)| (key.replace('_', " "), grouped(*value));
    counts.iter().map(row).collect()
}

fn write_section<K: AsRef<str>>(
    out: &mut impl Write,
    title: &str,
    rows: impl IntoIterator<Item = (K, String)>,
) -> io::Result<()> {
    writeln!(out, "{title}")?;
    let mut rows = rows.into_iter();
    rows.try_for_each(|(key, value)| write_row(out, key.as_ref(), &value))
}

fn write_row(out: &mut impl Write, key: &str, value: &str) -> io::Result<()> {
    let key = EscapedText(key).to_string();
    writeln!(out, "  {key:<22} {}", EscapedLine(value))
}

fn collect_warnings(profile: &Profile) -> Vec<String> {
    let skipped = profile.skipped.iter().map(SkippedCode::warning_text);
    // A full log has a number instead of the text.
    let full = LogFullCause::ALL
        .into_iter()
        .filter(|why| profile.stat_value(why.key()) > 0);
    skipped
        .chain(profile.warnings.iter().cloned())
        .chain(full.map(|why| why.to_string()))
        .collect()
}

fn write_list(out: &mut impl Write, title: &str, lines: &[String]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}")?;
    lines
        .iter()
        .try_for_each(|line| writeln!(out, "  {}", EscapedLine(line)))
}

#[cfg(test)]
mod stats_tests {
    use super::*;

    #[test]
    fn names_of_the_program_stand_as_they_are() {
        let mut out = Vec::new();
        let kinds = [("cache_miss", grouped(1_234))];
        write_section(&mut out, "events by kind", kinds).unwrap();
        let own = collect_counts([("threads_with_events", 2)]);
        write_section(&mut out, "events", format_counts(&own)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "events by kind\n  cache_miss             1,234\nevents\n  threads with events    2\n"
        );
    }
}
