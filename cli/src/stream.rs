//! `lucce stream`: prints single events in order of time.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use lucce_decoder::escape::{CsvCellText, EscapedText};
use lucce_decoder::{
    ContextId, EventExplanation, EventStream, EventTypeId, FrameList, LogDamage, Profile,
    StreamEvent, ThreadId, TraceTree, events_path, explain_event, find_thread_tags, format_tags,
};
use serde::Serialize;

use super::output::{format_plural, grouped, lock_stdout, write_json};
use super::process::is_gone;
use super::selection::Selection;
use super::threshold::{estimate_frame_bytes, warn_if_large};
use super::time_window::{check_stream, read_stream, warn_about_unstreamed};
use super::{CommandError, CommandStatus, find_kind, print_diagnostic, report_damage};

/// Print single events in the order of time, with time, thread, value and place (agent option stream=on).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce stream run-1234.lucce --event lock --from 10s --to 12s --traces
  lucce stream run-1234.lucce --thread 'http-.*' --json | jq .value
  lucce stream run-1234.lucce --event 'cache miss' --follow")]
pub struct StreamArgs {
    /// Log of the run; the file beside it with the ending .events holds the events
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// Maximum number of events [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Print the whole trace of each event
    #[arg(long)]
    traces: bool,
    /// Print one JSON object per line
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values, after a line of names
    #[arg(long, conflicts_with = "traces")]
    csv: bool,
    /// Continue with new events until the JVM ends
    #[arg(long)]
    follow: bool,
}

/// Time between two readings of a running JVM's files.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

pub fn run(args: &StreamArgs) -> Result<CommandStatus, CommandError> {
    args.selection.times.check_order()?;
    args.selection.counts.interval.refuse_marks()?;
    let log = log_path(&args.file);
    let mut out = lock_stdout();
    if args.csv {
        writeln!(
            out,
            "time_ns,thread,event,detail,value,unit,id,at,tags,stack"
        )?;
    }
    let mut printed = PrintedEvents::default();
    loop {
        let stream = read_stream(&log)?;
        let profile = args.selection.counts.classes.open_log(&log)?;
        let end = check_stream(&log, &profile, &stream)?;
        if !args.follow {
            // The kind must exist now; otherwise its events may still come.
            find_kind(&log, &profile, args.selection.event(), end)?;
            args.selection
                .counts
                .tagged
                .check_log_tags(&log, &profile)?;
        }
        let is_last = !args.follow || !is_running(&log, &profile, &stream);
        let mut printer = EventPrinter::new(args, &profile, &stream, &mut printed);
        if args.traces && !args.follow {
            printer.announce_size();
        }
        printer.print_events(&mut out)?;
        out.flush()?;
        let damage = printer.damage.take();
        if is_last || end == CommandStatus::Damaged || printed.is_enough(args) {
            warn_about_unstreamed(&log, &profile, &stream);
            if printed.outside > 0 {
                let events = format_plural(printed.outside, "event");
                print_diagnostic(format_args!(
                    "{events} without any frame of these classes left out"
                ));
            }
            let end = report_damage(&events_path(&log), damage.as_ref(), end);
            return Ok(report_damage(&log, profile.damage.as_ref(), end));
        }
        sleep(POLL_INTERVAL);
    }
}

/// The log's path; `file` may also be the stream.
fn log_path(file: &Path) -> PathBuf {
    match file.extension() {
        Some(extension) if extension == "events" => file.with_extension(""),
        _ => file.to_owned(),
    }
}

fn is_running(log: &Path, profile: &Profile, stream: &EventStream) -> bool {
    stream.end_clock().is_none() && !is_gone(profile.header.pid, log)
}

/// The events that were already printed.
#[derive(Default)]
struct PrintedEvents {
    /// Number of events read, by the log's thread: a thread only appends to its own events.
    seen: HashMap<ThreadId, u64>,
    events: u64,
    outside: u64,
}

impl PrintedEvents {
    fn is_enough(&self, args: &StreamArgs) -> bool {
        args.limit.is_some_and(|limit| self.events >= limit)
    }
}

/// Prints new events.
struct EventPrinter<'p> {
    args: &'p StreamArgs,
    profile: &'p Profile,
    stream: &'p EventStream,
    traces: TraceTree<'p>,
    descriptions: HashMap<(ContextId, EventTypeId), Option<EventExplanation>>,
    /// The threads with the selected tags; `None`: all.
    tagged_threads: Option<BTreeSet<ThreadId>>,
    printed: &'p mut PrintedEvents,
    /// The first event that the log does not explain.
    damage: Option<LogDamage>,
}

#[derive(Serialize)]
struct EventLine<'l> {
    /// Time in nanoseconds since the start.
    time: u64,
    thread: &'l str,
    #[serde(rename = "virtual")]
    is_virtual: bool,
    /// Tags of the program (`CallContext.tag`).
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<&'l BTreeMap<String, String>>,
    event: &'l str,
    detail: Option<&'l str>,
    value: i64,
    unit: &'l str,
    id: String,
    /// The content id of the trace.
    stack: String,
    frames: FrameList<'l>,
}

impl<'p> EventPrinter<'p> {
    fn new(
        args: &'p StreamArgs,
        profile: &'p Profile,
        stream: &'p EventStream,
        printed: &'p mut PrintedEvents,
    ) -> Self {
        EventPrinter {
            args,
            profile,
            stream,
            traces: TraceTree::new(profile),
            descriptions: HashMap::new(),
            tagged_threads: args.selection.counts.tagged.thread_ids(profile),
            printed,
            damage: None,
        }
    }

    /// Announces a large output.
    fn announce_size(&mut self) {
        // Approximate bytes of an event without frames.
        const LINE: u64 = 100;
        let most = usize::try_from(self.args.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let mut traces = Vec::new();
        for event in self.stream.iter_events() {
            if traces.len() == most {
                break;
            }
            if self.is_wanted(&event) {
                traces.extend(
                    self.describe_event(&event)
                        .map(|explanation| explanation.trace),
                );
            }
        }
        let as_json = self.args.json;
        let sums = self
            .traces
            .sum_frames(|_, frame| estimate_frame_bytes(frame, as_json));
        let bytes = traces
            .iter()
            .map(|trace| sums.trace_sum(*trace).saturating_add(LINE));
        let events = format_plural(traces.len() as u64, "event");
        let what = format!("{events} with their traces; --limit, --from and --to take a part");
        warn_if_large(bytes.fold(0, u64::saturating_add), &what);
    }

    /// Whether time, thread and tags of an event match.
    fn is_wanted(&self, event: &StreamEvent) -> bool {
        let times = &self.args.selection.times;
        let tagged = self.tagged_threads.as_ref();
        tagged.is_none_or(|tagged| tagged.contains(&event.log_thread))
            && times.with_window(|window| window.contains_event(self.stream, event))
    }

    fn print_events(&mut self, out: &mut impl Write) -> io::Result<()> {
        let mut now: HashMap<ThreadId, u64> = HashMap::new();
        for event in self.stream.iter_events() {
            let at = now.entry(event.log_thread).or_default();
            *at += 1;
            if *at
                <= self
                    .printed
                    .seen
                    .get(&event.log_thread)
                    .copied()
                    .unwrap_or(0)
            {
                continue;
            }
            if self.printed.is_enough(self.args) {
                break;
            }
            if self.is_wanted(&event) {
                self.print_event(&event, out)?;
            }
        }
        self.printed.seen = now;
        Ok(())
    }

    fn print_event(&mut self, event: &StreamEvent, out: &mut impl Write) -> io::Result<()> {
        let (args, stream, profile) = (self.args, self.stream, self.profile);
        if self.describe_event(event).is_none() {
            return Ok(());
        }
        let explanation = self.descriptions.get(&(event.id, event.event));
        let Some(explanation) = explanation.and_then(Option::as_ref) else {
            return Ok(());
        };
        let detail = explanation.detail.as_deref();
        let stack = self.traces.stack_id(explanation.trace).to_string();
        let most = if args.traces { usize::MAX } else { 1 };
        let frames = self.traces.list_frames(explanation.trace, most);
        if frames.iter().next().is_none() {
            self.printed.outside += 1;
            return Ok(());
        }
        let thread = stream.thread_info(event.thread);
        let name = thread.map_or(Cow::Borrowed(""), |thread| {
            profile.stream_thread_name(thread)
        });
        let line = EventLine {
            time: stream.since_start(event.clock),
            thread: &name,
            is_virtual: thread.is_some_and(|thread| thread.is_virtual),
            tags: find_thread_tags(profile, event.log_thread),
            event: &explanation.info.kind,
            detail,
            value: explanation.event_value(event),
            unit: &explanation.info.unit,
            id: profile.context_number(event.id).to_string(),
            stack,
            frames,
        };
        match (args.json, args.csv) {
            (true, _) => write_json(out, &line)?,
            (_, true) => line.write_csv(out)?,
            _ => line.write_text(args.traces, out)?,
        }
        self.printed.events += 1;
        Ok(())
    }

    /// Explains an event. `None`: it is not wanted, or the log does not explain it.
    fn describe_event(&mut self, event: &StreamEvent) -> Option<&EventExplanation> {
        let explanation = match self.descriptions.entry((event.id, event.event)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => {
                let explanation = explain_event(self.profile, &mut self.traces, event);
                let explanation = explanation.map_err(|damage| self.damage.get_or_insert(damage));
                free.insert(explanation.ok())
            }
        };
        let (selection, traces) = (&self.args.selection, &self.traces);
        explanation.as_ref().filter(|explanation| {
            let kind = selection.event();
            kind.is_none_or(|kind| explanation.info.kind == *kind)
                && selection.event_filter().admits_event(traces, explanation)
        })
    }
}

impl EventLine<'_> {
    fn write_text(&self, traces: bool, out: &mut impl Write) -> io::Result<()> {
        let seconds = self.time / 1_000_000_000;
        let nanos = self.time % 1_000_000_000;
        write!(out, "{seconds:>5}.{nanos:09}  {}", EscapedText(self.thread),)?;
        if let Some(tags) = self.tags {
            write!(out, "  [{}]", EscapedText(&format_tags(tags)))?;
        }
        write!(out, "  {}", EscapedText(self.event))?;
        if let Some(detail) = self.detail {
            write!(out, "  {}", EscapedText(detail))?;
        }
        let sign = if self.value < 0 { "-" } else { "" };
        let value = grouped(self.value.unsigned_abs());
        match (self.value, self.unit) {
            (0, "") => {}
            (_, "") => write!(out, "  {sign}{value}")?,
            (_, unit) => write!(out, "  {sign}{value} {}", EscapedText(unit))?,
        }
        if traces {
            writeln!(out, "  {}  {}", self.id, self.stack)?;
            let mut frames = self.frames.iter();
            return frames.try_for_each(|frame| writeln!(out, "\tat {frame}"));
        }
        let at = self.frames.iter().next();
        let at = at.map_or_else(String::new, |frame| format!("  at {frame}"));
        writeln!(out, "{at}  {}  {}", self.id, self.stack)
    }

    fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        let at = self.frames.iter().next();
        let at = at.map_or_else(String::new, ToString::to_string);
        let detail = self.detail.unwrap_or_default();
        let tags = self.tags.map(format_tags).unwrap_or_default();
        let texts = [
            self.thread,
            self.event,
            detail,
            self.unit,
            &self.id,
            &at,
            &tags,
            &self.stack,
        ];
        let [thread, event, detail, unit, id, at, tags, stack] = texts.map(CsvCellText);
        let EventLine { time, value, .. } = self;
        writeln!(
            out,
            "{time},{thread},{event},{detail},{value},{unit},{id},{at},{tags},{stack}"
        )
    }
}
