//! `lucce top`: shows on a terminal what a JVM does now.
//!
//! ```text
//! log  ─► LogSampler: reads it repeatedly, in its own thread ─► SampleWindow: new events
//! keys ─► TopView: the selected list and sort key ─► rows ─► screen
//! ```

mod overview;
mod rows;
mod sampler;
mod screen;

use std::io::{IsTerminal, Write};
use std::time::Duration;

use lucce_decoder::GroupBy;
use lucce_options::kinds::REQUEST;
use lucce_options::units::parse_interval;

use self::rows::TopView;
use self::sampler::LogSampler;
use super::output::lock_stdout;
use super::selection::{CountSelection, IdleArgs, SortArgs};
use super::target::{RunTarget, TargetArgs};
use super::{CommandError, CommandStatus, SortArg, prefix_path, print_diagnostic};

/// Show what a JVM does now: events of the last seconds by context, type, class, package, method, line, entry, thread, tag or request.
///
/// The JVM must have the agent (`lucce list`). Keys: left and right choose the list, `e` the next kind of events, `s` the sort key
/// (value or count), `f` shows who waits for whom, living threads, open resources, survivors, classes or times of the whole run; up and down choose a row, Enter shows its trace (page up and page down scroll), space pauses, `d` copies the
/// log, `q` quits.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce top 1234
  lucce top com.acme.Server --event lock --interval 5s
  lucce top 1234 --by method --include 'com.acme.*' --tag 'request=GET /orders'
  lucce top 1234 --once --by type              prints one interval as text, for scripts")]
pub struct TopArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Time between readings; longer if reading takes over a quarter of it
    #[arg(short, long, value_name = "TIME", default_value = "2s", value_parser = parse_interval)]
    interval: Duration,
    /// Sum up by this first [default: context; with --event request: request]
    #[arg(long, value_name = "BY", value_enum)]
    by: Option<GroupBy>,
    #[command(flatten)]
    order: SortArgs,
    #[command(flatten)]
    idle: IdleArgs,
    #[command(flatten)]
    selection: CountSelection,
    /// Print one interval as text, and end
    #[arg(long)]
    once: bool,
    /// With --once: maximum number of rows; 0: all
    #[arg(long, value_name = "N", default_value_t = 30, requires = "once")]
    top: usize,
}

impl TopArgs {
    /// Requests that one line answers differ by their tags only.
    pub(super) fn first_grouping(&self) -> GroupBy {
        let is_request = self.selection.event.as_deref() == Some(REQUEST.name);
        self.by.unwrap_or(match is_request {
            true => GroupBy::Request,
            false => GroupBy::Context,
        })
    }
}

pub fn run(args: &TopArgs) -> Result<CommandStatus, CommandError> {
    if !args.once && !std::io::stdout().is_terminal() {
        let message = "standard output is no terminal; --once prints one screen as text";
        return Err(CommandError::Usage(message.into()));
    }
    let by = args.first_grouping();
    SortArg::check_total(args.order.sort, by.includes_callees())?;
    SortArg::check_heap(args.order.sort, false, false)?;
    let target = RunTarget::from_name(&args.target.jvm)?;
    let sampler = LogSampler::new(&target.log, args.interval, args.selection.clone())?;
    if let Some(event) = &args.selection.event {
        check_kind(event, &sampler)?;
    }
    let mut view = TopView::new(args.selection.event.clone(), by);
    view.by_count = args.order.sort == Some(SortArg::Count);
    view.with_callees = args.order.sort == Some(SortArg::Total);
    view.with_idle = args.idle.idle;
    match args.once {
        true => print_once(sampler, view, row_limit(args.top)),
        false => screen::run_screen(&target, sampler, view),
    }
}

/// Rows of a table of the whole run, with --once.
const FACT_ROWS: usize = 3;

/// Maximum number of rows: 0 stands for all.
fn row_limit(top: usize) -> usize {
    if top == 0 { usize::MAX } else { top }
}

/// Checks the kind as `lucce report` does; kinds that the run is to record are valid, since events may follow.
fn check_kind(event: &String, sampler: &LogSampler) -> Result<(), CommandError> {
    let kinds = sampler.kinds();
    if kinds.contains(event) {
        return Ok(());
    }
    let there = match kinds.is_empty() {
        true => "no events at all".to_owned(),
        false => kinds.join(", "),
    };
    let message = format_args!("no events of kind {event:?}; there are {there}");
    Err(CommandError::Usage(prefix_path(sampler.path(), message)))
}

fn print_once(
    mut sampler: LogSampler,
    view: TopView,
    most: usize,
) -> Result<CommandStatus, CommandError> {
    std::thread::sleep(sampler.poll_interval());
    let window = sampler
        .read_window()
        .map_err(|error| CommandError::Open(sampler.path().to_owned(), error))?;
    let mut out = lock_stdout();
    for line in rows::format_head(&window, &view) {
        writeln!(out, "{line}")?;
    }
    let facts = match view.kind.is_some() {
        true => rows::format_facts(&window, &view, FACT_ROWS),
        false => rows::format_summaries(&window, &view),
    };
    for line in facts {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    let rows = overview::list_top_rows(&window, &view);
    let shown = view.shown_kind(&window);
    let is_counted = window.totals.iter().any(|total| total.name == shown);
    if !is_counted && sampler.selection().has_filters() {
        let message = sampler.selection().patterns.nothing_matches(shown);
        print_diagnostic(prefix_path(sampler.path(), message));
    }
    for row in rows.iter().take(most) {
        writeln!(out, "{row}")?;
    }
    if let Some(more) = rows.len().checked_sub(most).filter(|more| *more > 0) {
        writeln!(out, "{more} more (--top)")?;
    }
    out.flush()?;
    Ok(CommandStatus::Fine)
}
