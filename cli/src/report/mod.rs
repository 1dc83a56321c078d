//! `lucce report`: prints where memory was allocated, or where other events happened.
//!
//! Reading order: `context_report` (the whole), `report_head` (the run), `overview` (all kinds), `own_lines` (lines of own code),
//! `listing` (contexts), `sum_table` (`--by`),
//! `tree` (`--tree`).

mod context_report;
mod defined_classes;
mod heap_column;
mod listing;
mod living_memory;
mod living_threads;
mod lock_holders;
mod object_sizes;
mod overview;
mod own_lines;
mod report_head;
mod sum_table;
mod totals;
mod tree;

use std::cmp::Reverse;
use std::io::Write;
use std::path::PathBuf;

use lucce_decoder::{
    ALLOC, AllocationAmount, ContextFocus, ContextList, EventContext, FrameDisplay, GroupBy, HEAP,
    KindDescriptor, KindTotal, Measure, MergedCounter, MergedProfile, Profile, SampleErrors,
    compute_coverage, has_requests, has_survival, list_defined_classes, list_living_memory,
    list_lock_pairs, list_recorded_kinds, list_started_threads, read_heap_interval,
    select_own_kinds,
};
use lucce_options::kinds::{CLASSES, LOCK_WAITS, NATIVE_MEMORY, SURVIVE, THREAD};

use super::amounts::AmountFormat;
use super::frame_args::FrameArgs;
use super::output::{lock_stdout, write_json};
use super::progress::ProgressMeter;
use super::selection::{
    EventFilter, IdleArgs, RowClass, RowFilter, SelectedRun, Selection, SortArgs, StreamCountArgs,
};
use super::threshold::{ThresholdArgs, warn_if_traces_are_large};
use super::{
    CommandError, CommandStatus, SortArg, find_kind, prefix_path, print_diagnostic,
    report_contexts_damage,
};
use context_report::{ContextReport, ReportBody};
use defined_classes::DefinedClasses;
use heap_column::{HeapColumn, HeapTotals, RowOrder};
use listing::ContextRows;
use living_memory::LivingMemoryReport;
use living_threads::LivingThreads;
use lock_holders::LockHolders;
use object_sizes::{ReportGrouping, SizeLimit};
pub use overview::is_costly_kind;
use overview::{KindContexts, RunOverview, rows_of_others};
pub use own_lines::group_by_own_line;
use own_lines::{OwnLines, is_own_code_mixed};
use totals::ReportTotals;

pub use report_head::ReportHead;

/// Print what allocates most, or where other events happened: contexts with their stack traces, sums by type, class, package,
/// method, line, entry, thread or tag, or a tree of calls.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce report run-1234.lucce --top 5 --sort count --type 'java\\.lang\\.String'
  lucce report run-1234.lucce --by method --sort total
  lucce report run-1234.lucce --by entry --event exception
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
    /// Sum up by this; with --tree the kind of its branches: class, package, method, line, or methods below entries [default: context; with --tree method]
    #[arg(long, value_name = "BY", value_enum)]
    by: Option<ReportGrouping>,
    /// Leave out smaller allocations: a power of two such as 1m, or `humongous`, half a region of G1. Arrays need the agent option events=alloc=sizes
    #[arg(long, value_name = "SIZE")]
    min_size: Option<SizeLimit>,
    /// Print a tree of calls from thread entries; branches below 1% are summed up (--min-share)
    #[arg(long)]
    tree: bool,
    /// Print the tree from events to their callers
    #[arg(long, requires = "tree")]
    inverted: bool,
    /// Maximum depth of the tree [default: 500]
    #[arg(long, value_name = "N", requires = "tree", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,
    #[command(flatten)]
    order: SortArgs,
    #[command(flatten)]
    frame_args: FrameArgs,
    #[command(flatten)]
    idle: IdleArgs,
    #[command(flatten)]
    threshold: ThresholdArgs,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    counted: StreamCountArgs,
    /// Continue in the context that started the thread (agent option events=thread)
    #[arg(long)]
    across_threads: bool,
    /// Print one JSON object; docs/reference/json.md describes it
    #[arg(long)]
    json: bool,
}

pub fn run(args: &ReportArgs) -> Result<CommandStatus, CommandError> {
    check_args(args)?;
    let SelectedRun {
        mut profile,
        status: streamed,
    } = args.selection.open_run(&args.file, args.counted.stream)?;
    if args.across_threads {
        profile.distinguish_submitters();
    }
    let kind = resolve_kind(args, &profile, streamed)?;
    let unknown_sizes = object_sizes::apply_sizes(args, &kind, &mut profile)?;
    let of = ReportRequest {
        args,
        profile: &profile,
        kind: &kind,
        unknown_sizes,
        filter: match args.idle.idle {
            true => args.selection.event_filter(),
            false => args.selection.event_filter().without_idle(&kind),
        },
    };
    let has_column = !args.tree && of.has_heap_column();
    SortArg::check_heap(args.order.sort, has_column, has_survival(&profile))?;
    let end = match (args.tree, args.group()) {
        (true, by) => of.report_sums(SumLayout::Tree(by.unwrap_or(GroupBy::Method)))?,
        (false, Some(by)) if by != GroupBy::Context => of.report_sums(SumLayout::Table(by))?,
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
    let counted = profile.counted_kinds();
    let recorded = list_recorded_kinds(profile);
    let without_events = match args.selection.event() {
        Some(event) => Some(event)
            .filter(|event| counted.iter().all(|kind| kind.name != *event))
            .and_then(|event| recorded.iter().find(|name| **name == event)),
        None => recorded
            .iter()
            .find(|name| ALLOC.is_kind(name))
            .or(recorded.first())
            .filter(|_| counted.is_empty()),
    };
    match without_events {
        Some(name) => Ok(KindTotal {
            name: (*name).to_owned(),
            ..KindTotal::from_descriptor(KindDescriptor::for_kind(name), 0)
        }),
        None => find_kind(&args.file, profile, args.selection.event(), streamed),
    }
}

fn check_args(args: &ReportArgs) -> Result<(), CommandError> {
    let by = args.group().unwrap_or_default();
    let has_tree = args.by.is_none() || by == GroupBy::Entry || by.includes_callees();
    if args.tree && !has_tree {
        return Err(CommandError::Usage(
            "--tree is one of entries, classes, packages, methods or lines (--by)".into(),
        ));
    }
    let has_callees = args.tree || by.includes_callees();
    SortArg::check_total(args.order.sort, has_callees)
}

impl ReportArgs {
    /// Whether allocations are selected or grouped by size.
    fn has_sizes(&self) -> bool {
        self.min_size.is_some() || self.by == Some(ReportGrouping::Size)
    }

    /// What is summed up by. Sizes take the place of types.
    fn group(&self) -> Option<GroupBy> {
        self.by.map(|by| match by {
            ReportGrouping::Group(by) => by,
            ReportGrouping::Size => GroupBy::Type,
        })
    }

    /// Whether other frames than those of own code are folded. JSON has all frames.
    fn is_focused(&self) -> bool {
        self.frame_args.frames == FrameDisplay::Focused && !self.json
    }
}

/// The request of a report.
struct ReportRequest<'r> {
    args: &'r ReportArgs,
    profile: &'r Profile,
    kind: &'r KindTotal,
    /// Allocations that `--min-size` leaves out, as their sizes are unknown.
    unknown_sizes: AllocationAmount,
    filter: EventFilter<'r>,
}

/// The layout of sums.
#[derive(Clone, Copy)]
enum SumLayout {
    Table(GroupBy),
    Tree(GroupBy),
}

impl<'r> ReportRequest<'r> {
    /// Reports single contexts.
    fn report_contexts(&self) -> Result<CommandStatus, CommandError> {
        let (args, profile, kind) = (self.args, self.profile, self.kind);
        let (mut contexts, idle, value) = self.select_contexts(kind, &self.filter);
        let heap = HeapColumn::read(self, &contexts.list);
        let errors = self.read_sample_errors();
        let order = RowOrder::new(profile, (args.order.sort, value), heap.as_ref());
        let order = order.with_errors(errors.as_ref());
        if order.heap.is_some() {
            let largest_first =
                |context: &EventContext| (Reverse(order.amount(context)), context.id);
            contexts.list.sort_by_cached_key(largest_first);
        }
        let totals = ReportTotals::sum_contexts(kind, contexts.list.iter());
        let total_error = order.sum_error(contexts.list.iter());
        let idle = ReportTotals::sum_contexts(kind, idle.list.iter());
        let heap_totals = heap.as_ref().map(HeapTotals::new);
        let all_heap = heap_totals.as_ref().map(|heap| heap.total);
        let whole = order.select_amount(totals.value, totals.count, all_heap);
        let mut lacks_own_code = false;
        if args.is_focused() {
            let ids: Vec<_> = contexts.list.iter().map(|context| context.id).collect();
            let focus = profile.find_focus(&ids);
            // Old logs do not tell own code.
            lacks_own_code = !focus.is_empty()
                && !profile.code.has_no_locations()
                && focus.iter().all(|focus| focus.own.is_none());
            if is_own_code_mixed(&focus) {
                let listed = (&contexts.list[..], &focus[..]);
                if let Some(overview) = self.build_overview(listed, (whole, order)) {
                    let body = ReportBody::Overview(overview);
                    let mut report = ContextReport::new(profile, &contexts, kind, (totals, body));
                    report.heap = heap_totals;
                    report.total_error = total_error;
                    return self.print_report(report, &contexts, idle);
                }
                let by = (whole, order);
                let lines = OwnLines::new(profile, kind, by, listed, (args, args.top));
                let body = ReportBody::OwnLines(Box::new(lines));
                let mut report = ContextReport::new(profile, &contexts, kind, (totals, body));
                report.sorted_by = value;
                report.heap = heap_totals;
                report.total_error = total_error;
                return self.print_report(report, &contexts, idle);
            }
        }
        let shown = listing::select_listed(&contexts.list, args, &order, whole);
        let style = (args.across_threads, args.frame_args.resolve_display(false));
        let rows = ContextRows::new(profile, kind, (whole, order), shown, style);
        let number = rows.list.len();
        warn_if_traces_are_large(rows.estimate_bytes(args.json), number as u64, false);
        let left = contexts.list.get(number..).unwrap_or_default();
        let body = ReportBody::Contexts {
            contexts: Box::new(rows),
            different: contexts.list.len() as u64,
            rest: ReportTotals::sum_contexts(kind, left.iter()),
        };
        let mut report = ContextReport::new(profile, &contexts, kind, (totals, body));
        report.sorted_by = value;
        report.heap = heap_totals;
        report.total_error = total_error;
        report.lacks_own_code = lacks_own_code;
        self.print_report(report, &contexts, idle)
    }

    /// The contexts of a kind, largest first; those of idle threads; and what they are sorted by.
    fn select_contexts(
        &self,
        kind: &KindTotal,
        filter: &EventFilter<'_>,
    ) -> (ContextList, ContextList, Measure) {
        let (args, profile) = (self.args, self.profile);
        let events = profile.events_of_kind(&kind.name);
        let (events, idle) = filter.split_idle(profile, events);
        let all = events.context_ids().len() + idle.context_ids().len();
        let bar = ProgressMeter::new("decoding", all as u64);
        let mut contexts = profile.list_contexts_of(&events, &|more| bar.tick(more));
        let mut idle = profile.list_contexts_of(&idle, &|more| bar.tick(more));
        drop(bar);
        contexts.add_left_out(&mut idle);
        let all = contexts.total_value().saturating_add(idle.total_value());
        let value = Measure::resolve(args.order.measure(), &kind.unit, all);
        for list in [&mut contexts.list, &mut idle.list] {
            filter.retain_contexts(profile, list);
        }
        let largest_first = |context: &EventContext| (Reverse(context.amount(value)), context.id);
        contexts.list.sort_by_key(largest_first);
        (contexts, idle, value)
    }

    /// The first screen of a run with several kinds of events, if no kind and no events are selected. The arguments are of
    /// the main kind.
    fn build_overview(
        &self,
        (contexts, focus): (&[EventContext], &[ContextFocus]),
        (whole, order): (u64, RowOrder<'_>),
    ) -> Option<RunOverview> {
        let (args, profile, kind) = (self.args, self.profile, self.kind);
        let has_selection = args.selection.event().is_some() || self.filter.has_patterns();
        if has_selection || args.by.is_some() || args.across_threads {
            return None;
        }
        let kinds = profile.counted_kinds();
        let mut others = select_own_kinds(&kinds);
        others.retain(|other| other.name != kind.name);
        others.sort_by_key(|kind| !is_costly_kind(kind));
        if others.is_empty() {
            return None;
        }
        let mut overview = RunOverview::new();
        let of = KindContexts {
            kind,
            contexts,
            focus,
            whole,
            order,
        };
        overview.add_kind(profile, &of, args, args.top);
        let first = overview.line_count();
        let costly = others.iter().filter(|kind| is_costly_kind(kind)).count();
        let most = args.top.div_ceil(2);
        let used = first + costly * (1 + most);
        let rest = rows_of_others(args.top, used, others.len() - costly);
        for kind in others {
            let filter = match args.idle.idle {
                true => args.selection.event_filter(),
                false => args.selection.event_filter().without_idle(kind),
            };
            let (contexts, _, sorted_by) = self.select_contexts(kind, &filter);
            let ids: Vec<_> = contexts.list.iter().map(|context| context.id).collect();
            let totals = ReportTotals::sum_contexts(kind, contexts.list.iter());
            let of = KindContexts {
                kind,
                contexts: &contexts.list,
                focus: &profile.find_focus(&ids),
                whole: sorted_by.select_amount(totals.value, totals.count),
                order: RowOrder::new(profile, (None, sorted_by), None),
            };
            let rows = match args.top {
                0 => 0,
                _ if is_costly_kind(kind) => most,
                _ => rest,
            };
            overview.add_kind(profile, &of, args, rows);
        }
        Some(overview)
    }

    /// Reports sums. Each context is decoded once; its node in the tree has everything needed.
    fn report_sums(&self, sums: SumLayout) -> Result<CommandStatus, CommandError> {
        let (args, profile, kind) = (self.args, self.profile, self.kind);
        let events = profile.events_of_kind(&kind.name);
        let bar = ProgressMeter::new("decoding", events.context_ids().len() as u64);
        let (mut joined, left_out) =
            MergedProfile::from_events(profile, &events, &|more| bar.tick(more));
        drop(bar);
        let heap_interval = read_heap_interval(profile).filter(|_| self.has_heap_column());
        let has_survival = heap_interval.is_some() && has_survival(profile);
        let survival = SURVIVE.log_kinds.iter().filter(|_| has_survival);
        for kind in heap_interval
            .map(|_| HEAP)
            .into_iter()
            .chain(survival.copied())
        {
            joined.add_events(profile, &profile.events_of_kind(kind.name), &|_| ());
        }
        let all = joined.filter_counters(0, |_| true).map(|row| row.value);
        let value = Measure::resolve(
            args.order.measure(),
            &kind.unit,
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
            unit: value.select_unit(&kind.unit),
            amounts: AmountFormat::for_kind(profile, kind),
            whole: value.select_amount(totals.value, totals.count),
            heap_interval,
            has_survival,
        };
        let body = match sums {
            SumLayout::Table(by) => ReportBody::Sums(sum_table::SumTable::new(&summed, args, by)),
            SumLayout::Tree(by) => ReportBody::Tree(tree::ReportTree::new(&summed, args, by)),
        };
        let mut report = ContextReport::new(profile, &left_out, kind, (totals, body));
        report.total_error = self.read_sample_errors().map(|errors| {
            let rows = joined.filter_counters(0, |row| summed.is_wanted(row));
            let rows: Vec<_> = rows.map(|row| (row.id, row.count, row.value)).collect();
            errors.counter_error(rows.into_iter())
        });
        self.print_report(report, &left_out, idle)
    }

    /// The errors of the events, if they are sampled.
    fn read_sample_errors(&self) -> Option<SampleErrors> {
        let is_sampled = ALLOC.is_kind(&self.kind.name) && !self.args.counted.stream;
        let errors = is_sampled.then(|| SampleErrors::read(self.profile));
        errors.flatten()
    }

    /// Prints a report. `contexts`: what was left out, and damage.
    fn print_report(
        &self,
        mut report: ContextReport<'_>,
        contexts: &ContextList,
        idle: ReportTotals,
    ) -> Result<CommandStatus, CommandError> {
        let (args, profile, kind) = (self.args, self.profile, self.kind);
        let is_whole = !args.counted.stream
            && args.selection.is_whole_kind()
            && !profile.is_restricted()
            && profile.interval.is_none();
        let is_whole = is_whole && ALLOC.is_kind(&kind.name) && !args.has_sizes();
        report.unknown_sizes = self.unknown_sizes;
        report.coverage = is_whole.then(|| compute_coverage(profile).ok()).flatten();
        report.idle = (idle.contexts > 0).then_some(idle);
        let is_everything = !args.counted.stream
            && args.selection.is_whole_kind()
            && !self.filter.has_patterns()
            && !profile.is_restricted();
        // Threads, classes and memory live at the end of the run.
        let is_whole_run = is_everything && profile.interval.is_none();
        if is_whole_run && THREAD.name == kind.name {
            let threads = list_started_threads(profile).ok().flatten();
            report.threads = threads.map(|of| LivingThreads::new(profile, &of, args.top));
        }
        if is_whole_run && NATIVE_MEMORY.is_kind(&kind.name) {
            let memory = list_living_memory(profile).ok().flatten();
            report.memory = memory.map(|of| LivingMemoryReport::new(profile, &of, args.top));
        }
        if is_whole_run && CLASSES.is_kind(&kind.name) {
            let rows = list_defined_classes(profile).ok();
            report.classes = rows.map(|rows| DefinedClasses::new(profile, &rows, args.top));
        }
        if is_everything && LOCK_WAITS.is_kind(&kind.name) {
            // A context that the log does not explain is reported with the waits.
            let pairs = list_lock_pairs(profile).unwrap_or_default();
            report.holders = (pairs.waits > 0).then(|| LockHolders::new(profile, &pairs, args.top));
        }
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
        if args.group() == Some(GroupBy::Request) && !has_requests(profile) {
            let text = "no event has a request: record with requests=auto";
            print_diagnostic(prefix_path(&args.file, text));
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
    if args.selection.event_filter().has_patterns() {
        let message = args.selection.nothing_matches(&kind.name);
        print_diagnostic(prefix_path(&args.file, message));
    }
}

/// The tree from which sums are made.
struct ReportSums<'r> {
    joined: &'r MergedProfile,
    row_filter: &'r RowFilter,
    value: Measure,
    /// The unit of amounts.
    unit: &'r str,
    amounts: AmountFormat,
    /// The total of the selected events.
    whole: u64,
    /// The sampling interval in bytes of what reached the heap; those samples are the second run.
    heap_interval: Option<u64>,
    /// Whether further runs are the kinds of `events=survive`.
    has_survival: bool,
}

impl ReportSums<'_> {
    fn is_wanted(&self, row: &MergedCounter) -> bool {
        self.row_filter.classify_row(row) == RowClass::Wanted
    }
}
