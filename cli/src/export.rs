//! `lucce export`: writes files for other tools.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use lucce_decoder::{
    CollapsedStacks, ContextList, ExportOptions, KindTotal, Measure, Profile, events_path,
    export_run, has_followed_objects, write_difference,
};
use lucce_export::{ExportCount, ExportEvent};

use super::output::{format_plural, write_output};
use super::progress::ProgressMeter;
use super::selection::{SelectedRun, Selection, StreamCountArgs};
use super::threshold::{ThresholdArgs, warn_if_traces_are_large};
use super::time_window;
use super::{
    CommandError, CommandStatus, chrome, find_kind, prefix_path, print_diagnostic,
    report_contexts_damage, report_damage,
};

/// Write all contexts in a format of other tools.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce export run-1234.lucce --format collapsed --leaf-type -o run.collapsed
  lucce export new.lucce --format collapsed --diff old.lucce -o change.collapsed      # flamegraph.pl change.collapsed
  lucce export run-1234.lucce --format pprof -o run.pb.gz     # go tool pprof -top -sample_index=alloc_space run.pb.gz
  lucce export run-1234.lucce --format chrome --event lock -o run.json")]
pub struct ExportArgs {
    /// Log of the run
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = COLLAPSED, value_parser = ExportFormatArg::value_parser())]
    format: ExportFormatArg,
    /// Write this amount [default: value; count for events without values]
    #[arg(long, value_name = "AMOUNT", value_enum)]
    measure: Option<Measure>,
    /// Add the type that was allocated, locked, … as a frame
    #[arg(long)]
    leaf_type: bool,
    /// Add contexts' content ids, equal in every run, as labels: 17 bytes each, packed
    #[arg(long)]
    content_ids: bool,
    /// With `collapsed`: also write the sums of an older run (`stack OLD NEW`), for difference flame graphs
    #[arg(long, value_name = "OLD")]
    diff: Option<PathBuf>,
    #[command(flatten)]
    threshold: ThresholdArgs,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    counted: StreamCountArgs,
    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The output format.
#[derive(Clone, Copy)]
enum ExportFormatArg {
    Collapsed,
    Chrome,
    Other(&'static dyn lucce_export::ExportFormat),
}

const COLLAPSED: &str = "collapsed";
const OWN: [(&str, &str); 2] = [
    (
        COLLAPSED,
        "`a.b.C.main;a.b.C.work 24`: root first, for flame graphs",
    ),
    (
        "chrome",
        "The stream's events as a time line, for about:tracing or Perfetto (agent option stream=on)",
    ),
];

impl ExportFormatArg {
    fn value_parser() -> impl TypedValueParser<Value = ExportFormatArg> {
        let others = lucce_export::ALL_FORMATS.iter();
        let others = others.map(|format| (format.name(), format.description()));
        let values = OWN.into_iter().chain(others);
        let values = values.map(|(name, about)| PossibleValue::new(name).help(about));
        PossibleValuesParser::new(values).map(|name| match lucce_export::format_by_name(&name) {
            Some(format) => ExportFormatArg::Other(format),
            None if name == COLLAPSED => ExportFormatArg::Collapsed,
            None => ExportFormatArg::Chrome,
        })
    }
}

pub fn run(args: &ExportArgs) -> Result<CommandStatus, CommandError> {
    if args.diff.is_some() && !matches!(args.format, ExportFormatArg::Collapsed) {
        let text = "--diff is of --format collapsed; go tool pprof compares by -diff_base, and so do lucce view and lucce diff";
        return Err(CommandError::Usage(text.into()));
    }
    if args.content_ids && !matches!(args.format, ExportFormatArg::Other(_)) {
        let text = "--content-ids are labels, and collapsed and chrome have none";
        return Err(CommandError::Usage(text.into()));
    }
    if matches!(args.format, ExportFormatArg::Chrome) {
        args.selection.counts.interval.refuse_marks()?;
    }
    if !args.selection.counts.tagged.is_unrestricted()
        && matches!(args.format, ExportFormatArg::Chrome)
    {
        let text = "--tag is for sums, and chrome has single events";
        return Err(CommandError::Usage(text.into()));
    }
    match args.format {
        ExportFormatArg::Collapsed => match &args.diff {
            Some(old) => export_difference(args, old),
            None => export_collapsed(args),
        },
        ExportFormatArg::Chrome => export_chrome(args),
        ExportFormatArg::Other(format) => export_other(args, format),
    }
}

/// Writes a file in another tool's format.
fn export_other(
    args: &ExportArgs,
    format: &dyn lucce_export::ExportFormat,
) -> Result<CommandStatus, CommandError> {
    if args.out.is_none() && !format.is_text() && io::stdout().is_terminal() {
        let name = format.name();
        let text = format!("--format {name} is no text for a terminal: -o FILE keeps it");
        return Err(CommandError::Usage(text));
    }
    let times = exports_events(args, format)
        .then(|| time_window::read_stream(&args.file))
        .transpose()?;
    let (mut profile, streamed) = match &times {
        Some(stream) => {
            let profile = args.selection.counts.classes.open_log(&args.file)?;
            let status = time_window::check_stream(&args.file, &profile, stream)?;
            (profile, status)
        }
        None => {
            let run = args.selection.open_run(&args.file, args.counted.stream)?;
            (run.profile, run.status)
        }
    };
    let event = args.selection.event();
    if let Some(event) = event.filter(|event| !has_followed_objects(&profile, event)) {
        find_kind(&args.file, &profile, Some(event), streamed)?;
    }
    args.selection.counts.patterns.limit_counters(&mut profile);
    if args.content_ids && !format.has_content_ids() {
        let name = format.name();
        let text = format!("--format {name} has no room for --content-ids");
        return Err(CommandError::Usage(text));
    }
    let bar = ProgressMeter::new("decoding", profile.events.context_ids().len() as u64);
    let options = ExportOptions {
        kind: args.selection.event(),
        value: args.measure,
        leaf_type: args.leaf_type,
        content_ids: args.content_ids,
        admits: &|sum, whole| args.threshold.admits(sum, whole),
    };
    let exported = export_run(&profile, &options, times.as_ref(), &|more| bar.tick(more));
    drop(bar);
    let bytes = format.estimate_stack_bytes(&exported.run);
    let stacks = exported.run.rows.len() as u64;
    warn_if_traces_are_large(bytes, stacks, format.is_compressed());
    let left_out = Cell::new(0);
    let write = |out: &mut dyn Write| match &times {
        None => format.write(&exported.run, None, out),
        Some(stream) => args.selection.times.with_window(|window| {
            let events = |tell: &mut dyn FnMut(&ExportEvent) -> io::Result<()>| {
                exported.for_each_event(stream, window, &left_out, tell)
            };
            format.write(&exported.run, Some(&events), out)
        }),
    };
    write_output(args.out.as_deref(), write, |written| match written {
        ExportCount::Stacks(number) => format_plural(*number, "stack"),
        ExportCount::Events(number) => format_plural(*number, "event"),
    })?;
    if let Some(stream) = &times {
        time_window::warn_about_unstreamed(&args.file, &profile, stream);
    }
    if left_out.get() > 0 && args.selection.event().is_none() && !profile.is_restricted() {
        let events = format_plural(left_out.get(), "event");
        print_diagnostic(prefix_path(
            &args.file,
            format_args!("left out {events} that the log does not explain"),
        ));
    }
    Ok(report_contexts_damage(&args.file, &exported.left_out, CommandStatus::Fine).max(streamed))
}

/// Whether single events are written: the format has times, a stream exists, and nothing is summed up.
fn exports_events(args: &ExportArgs, format: &dyn lucce_export::ExportFormat) -> bool {
    format.has_times()
        && events_path(&args.file).exists()
        && !args.threshold.is_set()
        && args.selection.counts.tagged.is_unrestricted()
        && !args.selection.event_filter().has_patterns()
}

fn export_collapsed(args: &ExportArgs) -> Result<CommandStatus, CommandError> {
    let side = CollapsedSide::open(args, &args.file, args.selection.event())?;
    let value = Measure::resolve(args.measure, &side.kind.unit, side.contexts.total_value());
    let mut collapsed = side.collapse_stacks(value, args.leaf_type);
    let whole = collapsed.total_value();
    collapsed.merge_small_stacks(|sum| args.threshold.admits(sum, whole));
    let written = collapsed.prepare_writer(&side.profile);
    let stacks = collapsed.len() as u64;
    warn_if_traces_are_large(written.estimate_bytes(), stacks, false);
    let bar = ProgressMeter::new("writing", stacks);
    let write = |mut out: &mut dyn Write| written.write(&mut out, &|more| bar.tick(more));
    write_output(args.out.as_deref(), write, |()| {
        format_plural(stacks, "stack")
    })?;
    Ok(side.end)
}

/// A run, and its stacks of one kind.
struct CollapsedSide {
    profile: Profile,
    kind: KindTotal,
    contexts: ContextList,
    end: CommandStatus,
}

impl CollapsedSide {
    fn open(args: &ExportArgs, file: &Path, event: Option<&str>) -> Result<Self, CommandError> {
        CollapsedSide::open_with_kind(args, file, |profile, end| {
            find_kind(file, profile, event, end)
        })
    }

    /// Opens a run; without events of the kind it has no stacks.
    fn open_with_kind(
        args: &ExportArgs,
        file: &Path,
        kind: impl Fn(&Profile, CommandStatus) -> Result<KindTotal, CommandError>,
    ) -> Result<Self, CommandError> {
        let SelectedRun {
            profile,
            status: streamed,
        } = args.selection.open_run(file, args.counted.stream)?;
        let kind = kind(&profile, streamed)?;
        let events = profile.events_of_kind(&kind.name);
        let bar = ProgressMeter::new("decoding", events.context_ids().len() as u64);
        let mut contexts = profile.list_contexts_of(&events, &|more| bar.tick(more));
        let filter = args.selection.event_filter();
        if filter.has_patterns() {
            filter.retain_contexts(&profile, &mut contexts.list);
            if contexts.list.is_empty() && kind.count > 0 {
                let message = args.selection.nothing_matches(&kind.name);
                print_diagnostic(prefix_path(file, message));
            }
        }
        let end = report_contexts_damage(file, &contexts, CommandStatus::Fine).max(streamed);
        Ok(CollapsedSide {
            profile,
            kind,
            contexts,
            end,
        })
    }

    fn collapse_stacks(&self, value: Measure, leaf_type: bool) -> CollapsedStacks {
        let list = &self.contexts.list;
        let bar = ProgressMeter::new("summing up", list.len() as u64);
        let tick = |more| bar.tick(more);
        CollapsedStacks::new(&self.profile, list, value, leaf_type, &tick)
    }
}

/// Writes the stacks of two runs.
fn export_difference(args: &ExportArgs, old: &Path) -> Result<CommandStatus, CommandError> {
    let new = CollapsedSide::open(args, &args.file, args.selection.event())?;
    let old = CollapsedSide::open_with_kind(args, old, |_, _| Ok(new.kind.clone()))?;
    let value = Measure::resolve(args.measure, &new.kind.unit, new.contexts.total_value());
    let of_both = [&old, &new].map(|side| side.collapse_stacks(value, args.leaf_type));
    let [of_old, of_new] = &of_both;
    let whole = of_old.total_value().max(of_new.total_value());
    let written = (
        of_old.prepare_writer(&old.profile),
        of_new.prepare_writer(&new.profile),
    );
    let bytes = written
        .0
        .estimate_bytes()
        .saturating_add(written.1.estimate_bytes());
    warn_if_traces_are_large(bytes, (of_old.len() + of_new.len()) as u64, false);
    let admits = |sum| args.threshold.admits(sum, whole);
    let write = |out: &mut dyn Write| write_difference((&written.0, &written.1), admits, out);
    write_output(args.out.as_deref(), write, |lines| {
        format_plural(*lines, "stack")
    })?;
    Ok(old.end.max(new.end))
}

fn export_chrome(args: &ExportArgs) -> Result<CommandStatus, CommandError> {
    if args.measure.is_some() || args.leaf_type || args.threshold.is_set() {
        let text = "--measure, --leaf-type, --min-share and --min-value sum up, and --format chrome shows each event, with its value and type";
        return Err(CommandError::Usage(text.into()));
    }
    args.selection.times.check_order()?;
    let stream = time_window::read_stream(&args.file)?;
    let profile = &args.selection.counts.classes.open_log(&args.file)?;
    let end = time_window::check_stream(&args.file, profile, &stream)?;
    find_kind(&args.file, profile, args.selection.event(), end)?;
    let write = |mut out: &mut dyn Write| {
        args.selection.times.with_window(|window| {
            let wanted = (window, &args.selection);
            chrome::write_events(profile, &stream, wanted, &mut out)
        })
    };
    let written = write_output(args.out.as_deref(), write, |written| {
        format_plural(written.events, "event")
    })?;
    time_window::warn_about_unstreamed(&args.file, profile, &stream);
    let end = report_damage(&events_path(&args.file), written.damage.as_ref(), end);
    Ok(report_damage(&args.file, profile.damage.as_ref(), end))
}
