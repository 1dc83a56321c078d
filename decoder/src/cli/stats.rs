//! `lucce stats`: what is in a log, and what it spends its bytes on.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use lucce_decoder::escape::{Line, Text};
use lucce_decoder::{ALLOC, Coverage, Covered, Profile, Skipped, Stream, Summary, path_beside};
use lucce_tracelog::NoRoom;
use serde::Serialize;

use super::classes::Classes;
use super::output::{grouped, json, stdout};
use super::progress::Bar;
use super::window;
use super::{End, Failure, ending_of};

/// Threads whose coverage is shown; `--json` has all.
const THREADS: usize = 8;

/// Prints the sizes of the graph and the log, the run's facts and the agent's counters.
#[derive(clap::Args)]
#[command(after_help = "Example:
  lucce stats run-1234.lucce --json")]
pub struct Args {
    file: PathBuf,
    #[command(flatten)]
    classes: Classes,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Stats<'a> {
    run: &'a BTreeMap<String, String>,
    /// None: the log is older than runs' ids.
    run_id: Option<String>,
    pid: u32,
    /// Milliseconds since 1970.
    start: u64,
    ended: bool,
    damaged: bool,
    /// Blocks of counters without a checksum.
    unsealed: u64,
    graph: BTreeMap<&'static str, u64>,
    code: BTreeMap<&'static str, u64>,
    events: BTreeMap<&'static str, u64>,
    /// What of the bytes that the VM allocated was counted.
    coverage: Option<Coverage>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage_none: Option<&'a str>,
    kinds: Vec<KindOf>,
    log: Vec<LogPart>,
    /// Of the file beside it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<StreamOf>,
    agent: &'a BTreeMap<String, u64>,
    skipped: Vec<String>,
    /// What the agent warned of on standard error; of classes and methods without hooks first.
    warnings: Vec<String>,
}

/// What was counted of a kind.
#[derive(Serialize)]
struct KindOf {
    kind: String,
    count: u64,
    /// In the unit.
    value: u64,
    unit: String,
}

/// Events with their times.
#[derive(Serialize)]
struct StreamOf {
    events: u64,
    threads: u64,
    bytes: u64,
    /// Nanoseconds from the start until the first event found no room.
    full_since: Option<u64>,
    damaged: bool,
}

#[derive(Serialize)]
struct LogPart {
    kind: &'static str,
    records: u64,
    bytes: u64,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    let has_stream = path_beside(&args.file).exists();
    let stream = has_stream.then(|| window::read(&args.file)).transpose()?;
    let profile = args.classes.open(&args.file)?;
    let summary = summary(&profile);
    let end = match &stream {
        Some(stream) => window::explained(&args.file, &profile, stream)?,
        None => End::Fine,
    };
    let mut stats = Stats::new(&profile, &summary);
    stats.stream = stream.as_ref().map(StreamOf::new);
    let mut out = stdout();
    match args.json {
        true => json(&mut out, &stats)?,
        false => stats.write(&mut out)?,
    }
    out.flush()?;
    let unknown = summary.unknown.len();
    let ended = ending_of(&args.file, unknown, summary.damage.as_ref(), End::Fine);
    Ok(ended.max(end))
}

impl<'a> Stats<'a> {
    fn new(profile: &'a Profile, summary: &Summary) -> Self {
        let (graph, code) = (&profile.graph, &profile.code);
        let coverage = match profile.is_restricted() {
            true => Err("only some classes are shown (--include, --exclude)"),
            false => profile.coverage(),
        };
        Stats {
            run: &profile.meta,
            run_id: profile.header.run.map(|run| run.to_string()),
            pid: profile.header.pid,
            start: profile.header.start / 1_000_000,
            ended: profile.ended,
            damaged: summary.damage.is_some(),
            unsealed: profile.unsealed,
            graph: counts([
                ("nodes", graph.nodes()),
                ("transitions", graph.transitions()),
                ("anchors", graph.anchors()),
                ("versions", graph.versions()),
                ("bases", graph.bases()),
            ]),
            code: counts([
                ("classes", code.classes()),
                ("methods", code.methods()),
                ("sites", code.sites()),
                ("skipped", profile.skipped.len()),
            ]),
            events: events(profile, summary),
            coverage_none: coverage.as_ref().err().copied(),
            coverage: coverage.ok(),
            kinds: kinds(profile, summary),
            log: log_parts(profile),
            stream: None,
            agent: &profile.stats,
            skipped: profile.skipped.iter().map(ToString::to_string).collect(),
            warnings: warnings(profile),
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let ended = match (self.ended, self.damaged) {
            (true, _) => "yes",
            (false, true) => "not known: the log is damaged",
            (false, false) => "no: killed, or still runs",
        };
        section(
            out,
            "run",
            self.run
                .iter()
                .map(|(key, value)| (key.as_str(), value.clone())),
        )?;
        if let Some(run) = &self.run_id {
            row(out, "run id", run)?;
        }
        row(out, "pid", &self.pid.to_string())?;
        row(out, "ended by itself", ended)?;
        let sums = match self.unsealed {
            0 => "yes",
            _ => "no: damage to counters is not noticed",
        };
        row(out, "counters have checksums", sums)?;
        section(out, "graph", numbers(&self.graph))?;
        section(out, "code", numbers(&self.code))?;
        section(out, "events", numbers(&self.events))?;
        self.write_kinds(out)?;
        self.write_coverage(out)?;
        section(
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
        section(out, "agent", agent)?;
        list(out, "ran without hooks", &self.skipped)?;
        // Those behind the ones of classes and methods, which have just been listed.
        let others = self.warnings.get(self.skipped.len()..);
        list(out, "warnings", others.unwrap_or_default())
    }
}

impl StreamOf {
    fn new(stream: &Stream) -> StreamOf {
        StreamOf {
            events: stream.count(),
            threads: stream.threads().len() as u64,
            bytes: stream.size(),
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
        section(
            out,
            "stream",
            rows.into_iter().map(|(key, value)| (key, grouped(value))),
        )?;
        match self.full_since {
            Some(nanos) => row(out, "full since", &format!("{:.3} s", nanos as f64 / 1e9)),
            None => Ok(()),
        }
    }
}

impl Stats<'_> {
    fn write_coverage(&self, out: &mut impl Write) -> io::Result<()> {
        let title = "counted, of the bytes that the VM allocated";
        match (&self.coverage, self.coverage_none) {
            (Some(coverage), _) => {
                writeln!(out, "counted: {coverage}")?;
                coverage.threads.iter().take(THREADS).try_for_each(|of| {
                    let name = Text(&of.thread).to_string();
                    writeln!(out, "  {name:<22} {}", covered(of.bytes, coverage.digits()))
                })
            }
            (None, Some(reason)) => writeln!(out, "{title}: not known, {}", Line(reason)),
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
            false => section(out, "events by kind", rows),
        }
    }
}

/// `99.8%    998 of 1,000 bytes`
/// `digits`: behind the point of a percentage.
fn covered(bytes: Covered, digits: usize) -> String {
    let percent = bytes
        .percent
        .map_or("-".into(), |percent| format!("{percent:.digits$}%"));
    let (counted, allocated) = (grouped(bytes.counted), grouped(bytes.allocated));
    format!("{percent:>7} {counted:>18} of {allocated} bytes")
}

fn counts<const N: usize>(counts: [(&'static str, usize); N]) -> BTreeMap<&'static str, u64> {
    counts
        .into_iter()
        .map(|(key, value)| (key, value as u64))
        .collect()
}

fn summary(profile: &Profile) -> Summary {
    let bar = Bar::new("decoding", profile.events.ids().len() as u64);
    profile.summary(&|more| bar.tick(more))
}

fn kinds(profile: &Profile, summary: &Summary) -> Vec<KindOf> {
    let sums = summary.by_kind(profile);
    let kinds = profile.kinds().into_iter().map(|kind| {
        let (count, value) = sums.get(&kind.name).copied().unwrap_or_default();
        KindOf {
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

fn events(profile: &Profile, summary: &Summary) -> BTreeMap<&'static str, u64> {
    let events = match profile.is_restricted() {
        true => summary.count(),
        false => profile.events.count(),
    };
    let mut all = BTreeMap::from([
        ("threads", profile.threads.len() as u64),
        ("threads_with_events", profile.events.threads() as u64),
        ("events", events),
        (
            "bytes",
            summary
                .by_kind(profile)
                .get(ALLOC.name)
                .map_or(0, |(_, bytes)| *bytes),
        ),
        ("contexts", summary.traces),
        ("numbers", profile.events.ids().len() as u64),
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

/// With the keys as people say them. Other names stand as they are.
fn numbers(counts: &BTreeMap<&'static str, u64>) -> Vec<(String, String)> {
    let row = |(key, value): (&&str, &u64)| (key.replace('_', " "), grouped(*value));
    counts.iter().map(row).collect()
}

fn section<K: AsRef<str>>(
    out: &mut impl Write,
    title: &str,
    rows: impl IntoIterator<Item = (K, String)>,
) -> io::Result<()> {
    writeln!(out, "{title}")?;
    let mut rows = rows.into_iter();
    rows.try_for_each(|(key, value)| row(out, key.as_ref(), &value))
}

fn row(out: &mut impl Write, key: &str, value: &str) -> io::Result<()> {
    let key = Text(key).to_string();
    writeln!(out, "  {key:<22} {}", Line(value))
}

fn warnings(profile: &Profile) -> Vec<String> {
    let skipped = profile.skipped.iter().map(Skipped::warning);
    // A full log has a number in place of the text.
    let full = NoRoom::ALL
        .into_iter()
        .filter(|why| profile.stat(why.key()) > 0);
    skipped
        .chain(profile.warnings.iter().cloned())
        .chain(full.map(|why| why.to_string()))
        .collect()
}

fn list(out: &mut impl Write, title: &str, lines: &[String]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}")?;
    lines
        .iter()
        .try_for_each(|line| writeln!(out, "  {}", Line(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_program_stand_as_they_are() {
        let mut out = Vec::new();
        let kinds = [("cache_miss", grouped(1_234))];
        section(&mut out, "events by kind", kinds).unwrap();
        let own = counts([("threads_with_events", 2)]);
        section(&mut out, "events", numbers(&own)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "events by kind\n  cache_miss             1,234\nevents\n  threads with events    2\n"
        );
    }
}
