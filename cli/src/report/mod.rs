//! `lucce report`: prints where memory was allocated, or where other events happened.
//!
//! Reading order: `report_filter` (selected events), `report_head` (the run), `listing` (contexts), `sum_table` (`--by`),
//! `tree` (`--tree`).

mod listing;
mod report_filter;
mod report_head;
mod sum_table;
mod tree;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::path::PathBuf;

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{
    ALLOC, AllocationCoverage, BurstSummary, ContextList, EventContext, KindDescriptor, KindTotal,
    LEAK, Measure, MergedCounter, MergedProfile, Profile, StackMeasure,
};
use regex_lite::Regex;
use serde::Serialize;

use super::amounts::format_amount;
use super::classes::ClassFilterArgs;
use super::compare::GroupByArg;
use super::output::{format_plural, grouped, lock_stdout, write_json};
use super::progress::ProgressMeter;
use super::tag_filter::TagFilterArgs;
use super::threshold::{ThresholdArgs, warn_if_traces_are_large};
use super::time_window::StreamWindowArgs;
use super::{
    CommandError, CommandStatus, MeasureArg, SortArg, find_kind, prefix_path, print_diagnostic,
    report_contexts_damage,
};
use listing::ContextRows;
use report_filter::{ReportFilter, RowClass, RowFilter};
use report_head::ReportHead;

/// Print what allocates most, or where other events happened: contexts with their stack traces, sums by type, class, package,
/// method, line, thread or tag, or a tree of calls.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce report run-1234.lucce --top 5 --sort count --type 'java\\.lang\\.String'
  lucce report run-1234.lucce --by method --sort total
  lucce report run-1234.lucce --tree --through 'com\\.acme\\.'
  lucce report run-1234.lucce --tree --inverted --min-share 5
  lucce report run-1234.lucce --event lock
  lucce report run-1234.lucce --from 10s --to 12s --thread 'http-.*'
  lucce report run-1234.lucce --include 'com.acme.*' --exclude 'com.acme.util.*'")]
pub struct ReportArgs {
    /// Log of the run
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Maximum number of contexts or sums; 0: all
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Sum up by this; with --tree the kind of its branches: class, package, method or line [default: context; with --tree method]
    #[arg(long, value_name = "BY", value_enum)]
    by: Option<GroupByArg>,
    /// Print a tree of calls from thread entries; branches below 1% are summed up (--min-share)
    #[arg(long)]
    tree: bool,
    /// Print the tree from events to their callers
    #[arg(long, requires = "tree")]
    inverted: bool,
    /// Maximum depth of the tree [default: 500]
    #[arg(long, value_name = "N", requires = "tree", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,
    /// Sort key [default: value; count for events without values]
    #[arg(long, value_name = "KEY", value_enum)]
    sort: Option<SortArg>,
    /// Report events of this kind [default: allocations, else the most frequent kind]
    #[arg(long, value_name = "KIND")]
    event: Option<String>,
    /// Report only matching types of objects
    #[arg(long = "type", value_name = "REGEX")]
    type_pattern: Option<Regex>,
    /// Report only stacks with a matching method (package.Class.method)
    #[arg(long, value_name = "REGEX")]
    through: Option<Regex>,
    /// Report waits of idle pool threads too, instead of one line for them (kinds that count time)
    #[arg(long)]
    idle: bool,
    #[command(flatten)]
    threshold: ThresholdArgs,
    #[command(flatten)]
    classes: ClassFilterArgs,
    #[command(flatten)]
    part: StreamWindowArgs,
    #[command(flatten)]
    tagged: TagFilterArgs,
    /// Continue in the context that started the thread (agent option events=thread)
    #[arg(long)]
    across_threads: bool,
    /// Print one JSON object; docs/reference/json.md describes it
    #[arg(long)]
    json: bool,
}

pub fn run(args: &ReportArgs) -> Result<CommandStatus, CommandError> {
    check_args(args)?;
    let stream = args.part.open_stream(&args.file)?;
    let mut profile = args.classes.open_log(&args.file)?;
    if args.across_threads {
        profile.distinguish_submitters();
    }
    let streamed = args.part.apply(&args.file, &mut profile, stream)?;
    args.tagged.apply(&args.file, &mut profile)?;
    let kind = resolve_kind(args, &profile, streamed)?;
    let of = ReportRequest {
        args,
        profile: &profile,
        kind: &kind,
        filter: ReportFilter::new(args, &kind),
    };
    let end = match (args.tree, args.by) {
        (true, by) => of.report_sums(SumLayout::Tree(by.unwrap_or(GroupByArg::Method)))?,
        (false, Some(by)) if by != GroupByArg::Context => of.report_sums(SumLayout::Table(by))?,
        (false, _) => of.report_contexts()?,
    };
    Ok(end.max(streamed))
}

/// The reported kind. A kind that the run was to record is valid even without events.
fn resolve_kind(
    args: &ReportArgs,
    profile: &Profile,
    streamed: CommandStatus,
) -> Result<KindTotal, CommandError> {
    let known = profile.counted_kinds();
    let asked = profile.recorded_kinds();
    let without_events = match &args.event {
        Some(event) => Some(event.as_str())
            .filter(|event| known.iter().all(|kind| kind.name != *event))
            .and_then(|event| asked.iter().find(|name| **name == event)),
        None => asked
            .iter()
            .find(|name| ALLOC.is_kind(name))
            .or(asked.first())
            .filter(|_| known.is_empty()),
    };
    match without_events {
        Some(name) => Ok(KindTotal {
            name: (*name).to_owned(),
            ..KindDescriptor::for_kind(name).to_total(0)
        }),
        None => find_kind(&args.file, profile, args.event.as_deref(), streamed),
    }
}

fn check_args(args: &ReportArgs) -> Result<(), CommandError> {
    let has_frames = !matches!(
        args.by,
        Some(GroupByArg::Context | GroupByArg::Type | GroupByArg::Thread | GroupByArg::Tag)
    );
    if args.tree && !has_frames {
        return Err(CommandError::Usage(
            "--tree is one of classes, packages, methods or lines (--by)".into(),
        ));
    }
    let has_callees = args.tree || (args.by.is_some() && has_frames);
    match args.sort == Some(SortArg::Total) && !has_callees {
        true => Err(CommandError::Usage(
            "--sort total needs rows with callees: --by class, package, method or line".into(),
        )),
        false => Ok(()),
    }
}

impl ReportArgs {
    /// The amount of the sort key, if one is named.
    fn sorted_measure(&self) -> Option<MeasureArg> {
        self.sort.and_then(SortArg::to_measure_arg)
    }
}

/// The request of a report.
struct ReportRequest<'r> {
    args: &'r ReportArgs,
    profile: &'r Profile,
    kind: &'r KindTotal,
    filter: ReportFilter<'r>,
}

/// The layout of sums.
#[derive(Clone, Copy)]
enum SumLayout {
    Table(GroupByArg),
    Tree(GroupByArg),
}

impl<'r> ReportRequest<'r> {
    /// Reports single contexts.
    fn report_contexts(&self) -> Result<CommandStatus, CommandError> {
        let (args, profile, kind) = (self.args, self.profile, self.kind);
        let events = profile.events_of_kind(&kind.name);
        let (events, idle) = self.filter.split_idle(profile, events);
        let all = events.context_ids().len() + idle.context_ids().len();
        let bar = ProgressMeter::new("decoding", all as u64);
        let mut contexts = profile.list_contexts_of(&events, &|more| bar.tick(more));
        let mut idle = profile.list_contexts_of(&idle, &|more| bar.tick(more));
        drop(bar);
        contexts.add_left_out(&mut idle);
        let all = contexts.total_value().saturating_add(idle.total_value());
        let value = MeasureArg::choose_measure(args.sorted_measure(), kind, all);
        for list in [&mut contexts.list, &mut idle.list] {
            self.filter.retain_wanted(profile, list);
        }
        let largest_first =
            |context: &EventContext| (Reverse(value.measure_context(context)), context.id);
        contexts.list.sort_by_key(largest_first);
        let totals = ReportTotals::new(kind, &contexts.list);
        let idle = ReportTotals::new(kind, &idle.list);
        let whole = value_of(value, &totals);
        let shown = listing::select_listed(&contexts.list, args, value, whole);
        let rows = ContextRows::new(profile, kind, (&totals, value), shown, args.across_threads);
        let number = rows.list.len();
        warn_if_traces_are_large(rows.estimate_bytes(args.json), number as u64, false);
        let left = contexts.list.get(number..).unwrap_or_default();
        let body = ReportBody::Contexts {
            contexts: Box::new(rows),
            rest: args
                .threshold
                .is_set()
                .then(|| ReportTotals::new(kind, left)),
        };
        self.print_report(&contexts, (totals, idle), body)
    }

    /// Reports sums. Each context is decoded once; its node in the tree has everything needed.
    fn report_sums(&self, sums: SumLayout) -> Result<CommandStatus, CommandError> {
        let (args, profile, kind) = (self.args, self.profile, self.kind);
        let events = profile.events_of_kind(&kind.name);
        let bar = ProgressMeter::new("decoding", events.context_ids().len() as u64);
        let (joined, left_out) =
            MergedProfile::from_events(profile, &events, &|more| bar.tick(more));
        drop(bar);
        let all = joined.filter_counters(0, |_| true).map(|row| row.value);
        let value = MeasureArg::choose_measure(
            args.sorted_measure(),
            kind,
            all.fold(0, u64::saturating_add),
        );
        let sorted = &self.filter.build_row_filter(&joined);
        let of_sort =
            |sort: RowClass| joined.filter_counters(0, move |row| sorted.classify_row(row) == sort);
        let totals = ReportTotals::from_rows(kind, of_sort(RowClass::Wanted));
        let idle = ReportTotals::from_rows(kind, of_sort(RowClass::Idle));
        let summed = ReportSums {
            joined: &joined,
            row_filter: sorted,
            value,
            unit: unit_of(value, kind),
            whole: value_of(value, &totals),
        };
        let body = match sums {
            SumLayout::Table(by) => ReportBody::Sums(sum_table::SumTable::new(&summed, args, by)),
            SumLayout::Tree(by) => ReportBody::Tree(tree::ReportTree::new(&summed, args, by)),
        };
        self.print_report(&left_out, (totals, idle), body)
    }

    /// Prints a report. `contexts`: what was left out, and damage.
    fn print_report(
        &self,
        contexts: &ContextList,
        (totals, idle): (ReportTotals, ReportTotals),
        body: ReportBody<'_>,
    ) -> Result<CommandStatus, CommandError> {
        let (args, profile, kind) = (self.args, self.profile, self.kind);
        let is_whole =
            args.part.is_whole() && args.tagged.is_unrestricted() && !profile.is_restricted();
        let is_whole = is_whole && ALLOC.is_kind(&kind.name);
        let mut report = ContextReport::new(profile, contexts, kind, (totals, body));
        report.coverage = is_whole
            .then(|| profile.allocation_coverage().ok())
            .flatten();
        report.idle = (idle.contexts > 0).then_some(idle);
        let is_none = report.totals.count == 0 && report.idle.is_none();
        let mut out = lock_stdout();
        match args.json {
            true => write_json(&mut out, &report)?,
            false => report.write(profile, &mut out)?,
        }
        out.flush()?;
        if is_none && kind.count > 0 {
            warn_about_patterns(args, kind);
        }
        Ok(report_contexts_damage(
            &args.file,
            contexts,
            CommandStatus::Fine,
        ))
    }
}

/// Warns if the kind has events but none is reported: a pattern may be mistyped.
fn warn_about_patterns(args: &ReportArgs, kind: &KindTotal) {
    let asked = [("--type", &args.type_pattern), ("--through", &args.through)];
    let asked = asked.iter().filter_map(|(option, pattern)| {
        let pattern = pattern.as_ref()?.as_str();
        Some(format!("{option} '{pattern}'"))
    });
    let asked: Vec<_> = asked.collect();
    if !asked.is_empty() {
        let asked = asked.join(" and ");
        let message = format_args!("no event of kind {} matches {asked}", kind.name);
        print_diagnostic(prefix_path(&args.file, message));
    }
}

/// The tree from which sums are made.
struct ReportSums<'r> {
    joined: &'r MergedProfile,
    row_filter: &'r RowFilter<'r>,
    value: StackMeasure,
    /// The unit of amounts.
    unit: &'r str,
    /// The total of the selected events.
    whole: u64,
}

impl ReportSums<'_> {
    fn measure(&self) -> Measure {
        match self.value {
            StackMeasure::Sum => Measure::Value,
            StackMeasure::Count => Measure::Count,
        }
    }

    fn is_wanted(&self, row: &MergedCounter) -> bool {
        self.row_filter.classify_row(row) == RowClass::Wanted
    }
}

/// The unit of amounts; counts have none.
fn unit_of(value: StackMeasure, kind: &KindTotal) -> &str {
    match value {
        StackMeasure::Sum => &kind.unit,
        StackMeasure::Count => "",
    }
}

fn value_of(sorted_by: StackMeasure, totals: &ReportTotals) -> u64 {
    match sorted_by {
        StackMeasure::Sum => totals.value,
        StackMeasure::Count => totals.count,
    }
}

#[derive(Serialize)]
struct ContextReport<'r> {
    schema: &'static str,
    version: u32,
    #[serde(flatten)]
    head: ReportHead,
    event: String,
    /// The unit of `value`; empty: a plain number of the program.
    unit: String,
    /// Number of events of the other kinds in the log.
    others: BTreeMap<String, u64>,
    totals: ReportTotals,
    /// The allocation coverage, if it is known.
    coverage: Option<AllocationCoverage>,
    /// Whether the JVM ended normally.
    ended: bool,
    damage: Option<ReportDamage>,
    lost: u64,
    /// Set if events were counted in bursts.
    #[serde(skip_serializing_if = "Option::is_none")]
    bursts: Option<BurstSummary>,
    /// Number of events without a frame of the selected classes.
    outside: u64,
    skipped: SkippedCounts,
    /// The sampling interval in bytes, if counts are estimated from samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled_bytes: Option<u64>,
    /// A known bias of this JVM's samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample_bias: Option<&'static str>,
    /// Waits of idle threads, which the other sums exclude.
    #[serde(skip_serializing_if = "Option::is_none")]
    idle: Option<ReportTotals>,
    #[serde(flatten)]
    body: ReportBody<'r>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ReportBody<'r> {
    Contexts {
        contexts: Box<ContextRows<'r>>,
        /// With a threshold: the sum of unlisted contexts.
        #[serde(skip_serializing_if = "Option::is_none")]
        rest: Option<ReportTotals>,
    },
    Sums(sum_table::SumTable),
    Tree(tree::ReportTree),
}

#[derive(Serialize)]
struct ReportTotals {
    contexts: u64,
    count: u64,
    value: u64,
    /// The value, if it is in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

impl ReportTotals {
    fn new(kind: &KindTotal, contexts: &[EventContext]) -> Self {
        let sum =
            |of: fn(&EventContext) -> u64| contexts.iter().map(of).fold(0, u64::saturating_add);
        let mut traces: Vec<_> = contexts.iter().map(|context| context.stack).collect();
        traces.sort_unstable();
        traces.dedup();
        let value = sum(|context| context.value);
        ReportTotals {
            contexts: traces.len() as u64,
            count: sum(|context| context.count),
            value,
            bytes: value_in_bytes(kind, value),
        }
    }

    fn from_rows<'c>(kind: &KindTotal, rows: impl Iterator<Item = &'c MergedCounter>) -> Self {
        let (mut traces, mut count, mut value) = (HashSet::new(), 0_u64, 0_u64);
        for row in rows {
            traces.insert(row.node);
            count = count.saturating_add(row.count);
            value = value.saturating_add(row.value);
        }
        ReportTotals {
            contexts: traces.len() as u64,
            count,
            value,
            bytes: value_in_bytes(kind, value),
        }
    }

    /// `12 bytes, 3 events in 2 contexts`
    fn write(&self, unit: &str, out: &mut impl Write) -> io::Result<()> {
        if self.count == 0 {
            return writeln!(out, "none");
        }
        let value = format_value(self.value, unit).map_or_else(String::new, |text| text + ", ");
        let contexts = format_plural(self.contexts, "context");
        writeln!(
            out,
            "{value}{} in {contexts}",
            format_plural(self.count, "event")
        )
    }
}

#[derive(Serialize)]
struct ReportDamage {
    offset: u64,
    reason: String,
}

#[derive(Serialize)]
struct SkippedCounts {
    classes: u64,
    methods: u64,
}

impl<'r> ContextReport<'r> {
    fn new(
        profile: &Profile,
        contexts: &ContextList,
        kind: &KindTotal,
        (totals, body): (ReportTotals, ReportBody<'r>),
    ) -> Self {
        let others = profile.counted_kinds().into_iter();
        let others = others.filter(|other| other.name != kind.name);
        let (classes, methods) = profile.skipped_counts();
        ContextReport {
            schema: "lucce-report",
            version: 1,
            head: ReportHead::new(profile),
            others: others.map(|other| (other.name, other.count)).collect(),
            totals,
            coverage: None,
            ended: profile.ended,
            damage: contexts.damage.as_ref().map(|damage| ReportDamage {
                offset: damage.offset,
                reason: damage.reason.to_string(),
            }),
            lost: profile.dropped_events(),
            bursts: profile.burst_summary(),
            outside: contexts.outside,
            skipped: SkippedCounts { classes, methods },
            sampled_bytes: profile
                .sampled_bytes()
                .filter(|_| ALLOC.is_kind(&kind.name)),
            sample_bias: profile.sample_bias().filter(|_| ALLOC.is_kind(&kind.name)),
            idle: None,
            event: kind.name.clone(),
            unit: kind.unit.clone(),
            body,
        }
    }

    fn write(&self, profile: &Profile, out: &mut impl Write) -> io::Result<()> {
        self.write_head(out)?;
        match &self.body {
            ReportBody::Contexts { contexts, rest } => {
                contexts.write(&self.unit, out)?;
                if let Some(rest) = rest {
                    write!(out, "rest, not listed: ")?;
                    rest.write(&self.unit, out)?;
                }
            }
            ReportBody::Sums(table) => table.write(out)?,
            ReportBody::Tree(drawn) => drawn.write(out)?,
        }
        if let Some(idle) = &self.idle {
            write!(
                out,
                "idle, threads that wait for work (--idle shows them): "
            )?;
            idle.write(&self.unit, out)?;
        }
        write!(out, "total: ")?;
        self.totals.write(&self.unit, out)?;
        if LEAK.is_kind(&self.event) && self.totals.count == 0 {
            writeln!(
                out,
                "note: objects were followed, which are no events: `lucce leaks` says what of them lives"
            )?;
        }
        self.write_notes(profile, out)
    }

    fn write_head(&self, out: &mut impl Write) -> io::Result<()> {
        self.head.write(out)?;
        if let Some(coverage) = &self.coverage {
            writeln!(out, "counted: {coverage}")?;
        }
        let lost = match self.lost {
            0 => "none lost".to_owned(),
            lost => format!("{} lost", format_plural(lost, "event")),
        };
        let unit = match self.unit.as_str() {
            "" => String::new(),
            unit => format!(" in {}", EscapedText(unit)),
        };
        write!(out, "events: {}{unit}, {lost}", EscapedText(&self.event))?;
        let others = self.others.iter();
        let others: Vec<_> = others
            .map(|(name, count)| format!("{} {}", EscapedText(name), grouped(*count)))
            .collect();
        if !others.is_empty() {
            write!(out, "; others, for --event: {}", others.join(", "))?;
        }
        writeln!(out, "\n")
    }

    fn write_notes(&self, profile: &Profile, out: &mut impl Write) -> io::Result<()> {
        if let Some(damage) = &self.damage {
            writeln!(
                out,
                "note: the log is damaged at offset {}; what could be read is counted",
                damage.offset
            )?;
        } else if !self.ended {
            writeln!(
                out,
                "note: the JVM was killed or still runs; all it recorded is here, its counters without checksums"
            )?;
        } else if profile.unsealed > 0 {
            writeln!(
                out,
                "note: the log's counters have no checksums (an older version wrote it, or it was copied while it ended)"
            )?;
        }
        if let Some(bursts) = &self.bursts {
            writeln!(out, "note: {}", EscapedText(&bursts.to_string()))?;
        }
        if let Some(bytes) = self.sampled_bytes {
            let bytes = grouped(bytes);
            writeln!(
                out,
                "note: estimated from samples, one every {bytes} bytes on average"
            )?;
        }
        if let Some(bias) = self.sample_bias {
            writeln!(out, "note: {bias}")?;
        }
        if self.outside > 0 {
            let events = format_plural(self.outside, "event");
            writeln!(
                out,
                "note: {events} without any frame of these classes left out"
            )?;
        }
        let SkippedCounts { classes, methods } = self.skipped;
        if classes + methods > 0 {
            let (classes, methods) = (grouped(classes), grouped(methods));
            writeln!(
                out,
                "note: without hooks: classes {classes}, single methods {methods} (lucce stats)"
            )?;
        }
        profile
            .warnings
            .iter()
            .try_for_each(|warning| writeln!(out, "warning: {}", EscapedText(warning)))
    }
}

fn value_in_bytes(kind: &KindTotal, value: u64) -> Option<u64> {
    kind.is_bytes().then_some(value)
}

/// Formats a value with its unit, exactly if that is short; `None`: the kind has no values.
fn format_value(value: u64, unit: &str) -> Option<String> {
    match (value, unit) {
        (0, "") => None,
        (value, "") => Some(format!("value {}", grouped(value))),
        (value, unit) => Some(format_amount(value as f64, &EscapedText(unit).to_string())),
    }
}
