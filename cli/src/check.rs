//! `lucce check`: checks that every compared context id decoded to the JVM's own trace, and that the log is whole.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lucce_decoder::escape::{EscapedLine, EscapedText};
use lucce_decoder::{ContextSummary, DecodeMismatch, Profile, read_recorded_options};
use serde::Serialize;

use super::classes::ClassFilterArgs;
use super::output::{format_plural, grouped, lock_stdout, write_json};
use super::progress::ProgressMeter;
use super::{CommandError, CommandStatus, report_unknown_and_damage};

/// Fail if a number did not decode to the JVM's own trace, or if a log is damaged.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce run --opt verify=100 --out run.lucce -- java -jar app.jar
  lucce check run.lucce
  lucce check run.lucce --include 'com.acme.*'      # checks these frames only")]
pub struct CheckArgs {
    /// Logs of runs with verify=N
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    classes: ClassFilterArgs,
    /// Print one JSON object per file
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct CheckResult {
    file: String,
    /// `None`: the log is from before run ids.
    run: Option<String>,
    compared: u64,
    /// Whether the number is unknown: the log of a killed JVM, from a version that did not count comparisons in the log.
    #[serde(skip)]
    is_unreported: bool,
    mismatches: u64,
    /// Number of events that could not be compared, by reason.
    not_compared: BTreeMap<String, u64>,
    /// Number of VM entries whose caller is unknown: their events have no trace.
    lost_entries: u64,
    /// Coverage of the comparison of every N-th event; null: the log does not have it.
    coverage: Option<ComparisonCoverage>,
    /// Number of context ids with events; the next field: of these, the ones that do not decode.
    numbers: u64,
    unknown: u64,
    /// Mismatches that do not differ in a frame of the selected classes, and context ids without such a frame.
    outside: OutsideCounts,
    ended: bool,
    damaged: bool,
    /// Number of blocks of counters without a checksum.
    unsealed: u64,
    /// Size of the log in bytes.
    bytes: u64,
}

/// The compared part of a run.
#[derive(Serialize)]
struct ComparisonCoverage {
    events: u64,
    events_not_compared: u64,
    /// Number of threads with events.
    threads: u64,
    /// Number of these threads without a compared event.
    threads_not_compared: u64,
}

impl ComparisonCoverage {
    fn from_profile(profile: &Profile) -> Option<Self> {
        let events = *profile.stats.get("verify.events")?;
        Some(ComparisonCoverage {
            events,
            events_not_compared: events.saturating_sub(profile.stat_value("verify.compared")),
            threads: profile.stat_value("verify.threads"),
            threads_not_compared: profile.stat_value("verify.threads_not_compared"),
        })
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let events = format_plural(self.events, "event");
        write!(
            out,
            "  not compared: {} of {events}",
            grouped(self.events_not_compared)
        )?;
        if self.threads_not_compared > 0 {
            let threads = format_plural(self.threads, "thread");
            let left_out = grouped(self.threads_not_compared);
            write!(out, "; {left_out} of {threads} had no event compared")?;
        }
        writeln!(out)
    }
}

#[derive(Serialize)]
struct OutsideCounts {
    mismatches: u64,
    events: u64,
}

pub fn run(args: &CheckArgs) -> Result<CommandStatus, CommandError> {
    let mut end = CommandStatus::Fine;
    for file in &args.files {
        let checked = match check_file(file, args) {
            Err(CommandError::Output(e)) => return Err(e.into()),
            // An error does not prevent the check of the other files.
            checked => checked.unwrap_or_else(CommandError::report_to_stderr),
        };
        end = end.max(checked);
    }
    Ok(end)
}

fn check_file(file: &Path, args: &CheckArgs) -> Result<CommandStatus, CommandError> {
    let mut profile = args.classes.open_log(file)?;
    let all = profile.mismatches.len();
    profile
        .mismatches
        .retain_mut(|mismatch| differs_in_classes(mismatch, &args.classes));
    let outside = (all - profile.mismatches.len()) as u64;
    let summary = summarize_profile(&profile);
    let checked = CheckResult::new(file, &profile, &summary, outside);
    let mut out = lock_stdout();
    if args.json {
        write_json(&mut out, &checked)?;
    } else {
        profile
            .mismatches
            .iter()
            .try_for_each(|mismatch| write_mismatch(&profile, mismatch, &mut out))?;
        summary.unknown.iter().try_for_each(|(id, error)| {
            writeln!(
                out,
                "unknown number {}: {error}",
                profile.context_number(*id)
            )
        })?;
        checked.write(&mut out)?;
    }
    out.flush()?;
    let end = match checked.mismatches {
        0 => CommandStatus::Fine,
        _ => CommandStatus::Finding,
    };
    let unknown = summary.unknown.len();
    Ok(report_unknown_and_damage(
        file,
        unknown,
        summary.damage.as_ref(),
        end,
    ))
}

/// Whether the two traces differ in frames of the selected classes. Removes all other frames from both.
fn differs_in_classes(mismatch: &mut DecodeMismatch, classes: &ClassFilterArgs) -> bool {
    for trace in [&mut mismatch.expected, &mut mismatch.decoded] {
        let shown = trace.lines().filter(|line| classes.admits_frame(line));
        *trace = shown.collect::<Vec<_>>().join("\n");
    }
    classes.is_open() || mismatch.expected != mismatch.decoded
}

fn summarize_profile(profile: &Profile) -> ContextSummary {
    let bar = ProgressMeter::new("checking", profile.events.context_ids().len() as u64);
    profile.summarize_contexts(&|more| bar.tick(more))
}

fn write_mismatch(
    profile: &Profile,
    mismatch: &DecodeMismatch,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(
        out,
        "mismatch at event {}, number {}",
        mismatch.at,
        profile.context_number(mismatch.id)
    )?;
    let mut trace = |title: &str, text: &str| {
        writeln!(out, "  {title}:")?;
        text.lines()
            .try_for_each(|line| writeln!(out, "\t{}", EscapedLine(line.trim_start())))
    };
    trace("the JVM's trace", &mismatch.expected)?;
    trace("the number's trace", &mismatch.decoded)?;
    writeln!(out)
}

impl CheckResult {
    fn new(file: &Path, profile: &Profile, summary: &ContextSummary, outside: u64) -> Self {
        let mismatches = profile.mismatches.len() as u64;
        let reasons = profile.stats.iter().filter_map(|(key, value)| {
            Some((key.strip_prefix("verify.skipped.")?.to_owned(), *value))
        });
        CheckResult {
            file: file.display().to_string(),
            run: profile.header.run.map(|run| run.to_string()),
            compared: profile.stat_value("verify.compared"),
            is_unreported: is_comparison_unreported(profile),
            // The log has only the first mismatches.
            mismatches: profile
                .stat_value("verify.mismatches")
                .saturating_sub(outside)
                .max(mismatches),
            not_compared: reasons.filter(|(_, count)| *count > 0).collect(),
            coverage: ComparisonCoverage::from_profile(profile),
            lost_entries: profile.stat_value("agent.upcalls_lost"),
            numbers: profile.events.context_ids().len() as u64,
            unknown: summary.unknown.len() as u64,
            outside: OutsideCounts {
                mismatches: outside,
                events: summary.outside,
            },
            ended: profile.ended,
            damaged: summary.damage.is_some(),
            unsealed: profile.unsealed,
            bytes: profile.size,
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let compared = match self.compared {
            0 if self.is_unreported => "how many events were compared is not known".to_owned(),
            0 => "no events were compared (agent option verify=N)".to_owned(),
            n => format!(
                "{} compared, {}",
                format_plural(n, "event"),
                mismatch_text(self.mismatches)
            ),
        };
        let decodable = format_plural(self.numbers - self.unknown, "number");
        writeln!(
            out,
            "{}: {compared}; {decodable} decode, {} do not",
            EscapedLine(&self.file),
            self.unknown
        )?;
        let is_partial = |coverage: &&ComparisonCoverage| coverage.events_not_compared > 0;
        if let Some(coverage) = self.coverage.as_ref().filter(is_partial) {
            coverage.write(out)?;
        }
        for (reason, count) in &self.not_compared {
            writeln!(out, "  not compared: {} {count}", EscapedText(reason))?;
        }
        if self.lost_entries > 0 {
            let entries = format_plural(self.lost_entries, "method");
            writeln!(
                out,
                "  entered by the JVM from an unknown caller: {entries}; events in them have no trace and count as lost"
            )?;
        }
        if self.outside.mismatches > 0 {
            let outside = mismatch_text(self.outside.mismatches);
            writeln!(out, "  {outside} outside of these classes")?;
        }
        if self.outside.events > 0 {
            let events = format_plural(self.outside.events, "event");
            writeln!(out, "  {events} without any frame of these classes")?;
        }
        let whole = if self.damaged { "damaged" } else { "whole" };
        writeln!(
            out,
            "  the log is {whole}, {}",
            format_plural(self.bytes, "byte")
        )?;
        if self.unsealed > 0 {
            let why = match self.ended {
                false => "the JVM that writes them was killed or still runs",
                true => "an older version wrote it, or it was copied while it ended",
            };
            writeln!(
                out,
                "  its counters have no checksums, so damage to them is not noticed: {why}"
            )?;
        }
        if !self.ended && !self.damaged {
            let until = match self.compared {
                0 => "",
                _ => ", this is what was compared until then",
            };
            writeln!(out, "  the JVM was killed or still runs{until}")?;
        }
        Ok(())
    }
}

/// Whether the run was to compare traces, but the log has no result.
fn is_comparison_unreported(profile: &Profile) -> bool {
    let options = read_recorded_options(profile);
    let is_enabled = options.is_some_and(|options| options.verify > 0);
    is_enabled && !profile.stats.contains_key("verify.compared")
}

fn mismatch_text(count: u64) -> String {
    match count {
        0 => "no mismatch".to_owned(),
        1 => "1 mismatch".to_owned(),
        n => format!("{n} mismatches"),
    }
}
