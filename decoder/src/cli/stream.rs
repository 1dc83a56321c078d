//! `lucce stream`: single events in the order of their times.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use lucce_decoder::escape::{Csv, Text};
use lucce_decoder::{
    ContextId, Damage, Event, EventTypeId, Listed, Profile, Stream, ThreadId, ToldEvent, Traces,
    path_beside, tags_in_line,
};
use regex_lite::Regex;
use serde::Serialize;

use super::classes::Classes;
use super::output::{grouped, json, plural, stdout};
use super::process::is_gone;
use super::tagged::Tagged;
use super::threshold::{complain_if_large, written};
use super::window::{Times, complain_of_rest, explained, read};
use super::{End, Failure, complain, ending, kind};

/// Prints each event with its time, thread, value and place, in the order of time (agent option
/// record=stream).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce stream run-1234.lucce --event lock --from 10s --to 12s --traces
  lucce stream run-1234.lucce --thread 'http-.*' --json | jq .value
  lucce stream run-1234.lucce --event 'cache miss' --follow")]
pub struct Args {
    /// The log; the events are in the file beside it whose name ends in .events
    file: PathBuf,
    /// Only events of this kind
    #[arg(long, value_name = "KIND")]
    event: Option<String>,
    /// Only of types that match
    #[arg(long, value_name = "REGEX")]
    class: Option<Regex>,
    #[command(flatten)]
    times: Times,
    #[command(flatten)]
    tagged: Tagged,
    #[command(flatten)]
    classes: Classes,
    /// At most so many events
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// The whole trace of each event
    #[arg(long)]
    traces: bool,
    /// One JSON object per line
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Comma-separated values, with a line of names
    #[arg(long, conflicts_with = "traces")]
    csv: bool,
    /// Go on with what happens until the JVM ends
    #[arg(long)]
    follow: bool,
}

/// From one look at a running JVM's files to the next.
const PAUSE: Duration = Duration::from_millis(300);

pub fn run(args: &Args) -> Result<End, Failure> {
    args.times.check()?;
    let log = log_of(&args.file);
    let mut out = stdout();
    if args.csv {
        writeln!(
            out,
            "time_ns,thread,event,detail,value,unit,id,at,tags,stack"
        )?;
    }
    let mut printed = Printed::default();
    loop {
        let stream = read(&log)?;
        let profile = args.classes.open(&log)?;
        let end = explained(&log, &profile, &stream)?;
        if !args.follow {
            // Which is there; otherwise it may come.
            kind(&log, &profile, args.event.as_deref(), end)?;
            args.tagged.check(&log, &profile)?;
        }
        let is_last = !args.follow || !runs(&log, &profile, &stream);
        let mut printer = Printer::new(args, &profile, &stream, &mut printed);
        if args.traces && !args.follow {
            printer.announce();
        }
        printer.print(&mut out)?;
        out.flush()?;
        let damage = printer.damage.take();
        if is_last || end == End::Damaged || printed.is_enough(args) {
            complain_of_rest(&log, &profile, &stream);
            if printed.outside > 0 {
                let events = plural(printed.outside, "event");
                complain(format_args!(
                    "{events} without any frame of these classes left out"
                ));
            }
            let end = ending(&path_beside(&log), damage.as_ref(), end);
            return Ok(ending(&log, profile.damage.as_ref(), end));
        }
        sleep(PAUSE);
    }
}

/// The name of the stream itself will do, too.
fn log_of(file: &Path) -> PathBuf {
    match file.extension() {
        Some(extension) if extension == "events" => file.with_extension(""),
        _ => file.to_owned(),
    }
}

fn runs(log: &Path, profile: &Profile, stream: &Stream) -> bool {
    stream.ended().is_none() && !is_gone(profile.header.pid, log)
}

/// What was printed already.
#[derive(Default)]
struct Printed {
    /// Events that were looked at, by the log's thread: each of them only adds to its own.
    seen: HashMap<ThreadId, u64>,
    events: u64,
    outside: u64,
}

impl Printed {
    fn is_enough(&self, args: &Args) -> bool {
        args.limit.is_some_and(|limit| self.events >= limit)
    }
}

/// Prints what is new.
struct Printer<'p> {
    args: &'p Args,
    profile: &'p Profile,
    stream: &'p Stream,
    traces: Traces<'p>,
    told: HashMap<(ContextId, EventTypeId), Option<ToldEvent>>,
    /// Under the tags that are asked for; `None`: all.
    tagged: Option<BTreeSet<ThreadId>>,
    printed: &'p mut Printed,
    /// The first event that the log does not explain.
    damage: Option<Damage>,
}

#[derive(Serialize)]
struct Line<'l> {
    /// Nanoseconds since the start.
    time: u64,
    thread: &'l str,
    #[serde(rename = "virtual")]
    is_virtual: bool,
    /// The program's own (`CallContext.tag`).
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<&'l BTreeMap<String, String>>,
    event: &'l str,
    detail: Option<&'l str>,
    value: i64,
    unit: &'l str,
    id: String,
    /// The content id of its trace.
    stack: String,
    frames: Listed<'l>,
}

impl<'p> Printer<'p> {
    fn new(
        args: &'p Args,
        profile: &'p Profile,
        stream: &'p Stream,
        printed: &'p mut Printed,
    ) -> Self {
        Printer {
            args,
            profile,
            stream,
            traces: Traces::new(profile),
            told: HashMap::new(),
            tagged: args.tagged.threads(profile),
            printed,
            damage: None,
        }
    }

    /// Says beforehand if much will be written.
    fn announce(&mut self) {
        // Of each event, beside its frames.
        const LINE: u64 = 100;
        let most = usize::try_from(self.args.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let mut traces = Vec::new();
        for event in self.stream.events() {
            if traces.len() == most {
                break;
            }
            if self.is_wanted(&event) {
                traces.extend(self.told(&event).map(|told| told.trace));
            }
        }
        let as_json = self.args.json;
        let sums = self.traces.sums(|_, frame| written(frame, as_json));
        let bytes = traces
            .iter()
            .map(|trace| sums.of(*trace).saturating_add(LINE));
        let events = plural(traces.len() as u64, "event");
        let what = format!("{events} with their traces; --limit, --from and --to take a part");
        complain_if_large(bytes.fold(0, u64::saturating_add), &what);
    }

    /// As far as its time, its thread and its tags say.
    fn is_wanted(&self, event: &Event) -> bool {
        let times = &self.args.times;
        let tagged = self.tagged.as_ref();
        tagged.is_none_or(|tagged| tagged.contains(&event.lane))
            && times.with(|window| window.holds(self.stream, event))
    }

    fn print(&mut self, out: &mut impl Write) -> io::Result<()> {
        let mut now: HashMap<ThreadId, u64> = HashMap::new();
        for event in self.stream.events() {
            let at = now.entry(event.lane).or_default();
            *at += 1;
            if *at <= self.printed.seen.get(&event.lane).copied().unwrap_or(0) {
                continue;
            }
            if self.printed.is_enough(self.args) {
                break;
            }
            if self.is_wanted(&event) {
                self.event(&event, out)?;
            }
        }
        self.printed.seen = now;
        Ok(())
    }

    fn event(&mut self, event: &Event, out: &mut impl Write) -> io::Result<()> {
        let (args, stream, profile) = (self.args, self.stream, self.profile);
        if self.told(event).is_none() {
            return Ok(());
        }
        let told = self.told.get(&(event.id, event.event));
        let Some(told) = told.and_then(Option::as_ref) else {
            return Ok(());
        };
        let detail = told.detail.as_deref();
        let stack = self.traces.stack(told.trace).to_string();
        let most = if args.traces { usize::MAX } else { 1 };
        let frames = self.traces.listed(told.trace, most);
        if frames.iter().next().is_none() {
            self.printed.outside += 1;
            return Ok(());
        }
        let thread = stream.thread(event.thread);
        let name = thread.map_or(Cow::Borrowed(""), |thread| profile.streamed_name(thread));
        let line = Line {
            time: stream.since_start(event.clock),
            thread: &name,
            is_virtual: thread.is_some_and(|thread| thread.is_virtual),
            tags: profile.tags_by_key(event.lane),
            event: &told.info.kind,
            detail,
            value: told.value(event),
            unit: &told.info.unit,
            id: profile.number(event.id).to_string(),
            stack,
            frames,
        };
        match (args.json, args.csv) {
            (true, _) => json(out, &line)?,
            (_, true) => line.csv(out)?,
            _ => line.text(args.traces, out)?,
        }
        self.printed.events += 1;
        Ok(())
    }

    /// What the log says of an event that is wanted. `None`: it is not, or the log does not explain it.
    fn told(&mut self, event: &Event) -> Option<&ToldEvent> {
        let told = match self.told.entry((event.id, event.event)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => {
                let told = self.profile.tell(&mut self.traces, event);
                let told = told.map_err(|damage| self.damage.get_or_insert(damage));
                free.insert(told.ok())
            }
        };
        let (kind, class) = (&self.args.event, &self.args.class);
        told.as_ref().filter(|told| {
            let detail = told.detail.as_deref().unwrap_or_default();
            kind.as_ref().is_none_or(|kind| told.info.kind == *kind)
                && class.as_ref().is_none_or(|class| class.is_match(detail))
        })
    }
}

impl Line<'_> {
    fn text(&self, traces: bool, out: &mut impl Write) -> io::Result<()> {
        let seconds = self.time / 1_000_000_000;
        let nanos = self.time % 1_000_000_000;
        write!(out, "{seconds:>5}.{nanos:09}  {}", Text(self.thread),)?;
        if let Some(tags) = self.tags {
            write!(out, "  [{}]", Text(&tags_in_line(tags)))?;
        }
        write!(out, "  {}", Text(self.event))?;
        if let Some(detail) = self.detail {
            write!(out, "  {}", Text(detail))?;
        }
        let sign = if self.value < 0 { "-" } else { "" };
        let value = grouped(self.value.unsigned_abs());
        match (self.value, self.unit) {
            (0, "") => {}
            (_, "") => write!(out, "  {sign}{value}")?,
            (_, unit) => write!(out, "  {sign}{value} {}", Text(unit))?,
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

    fn csv(&self, out: &mut impl Write) -> io::Result<()> {
        let at = self.frames.iter().next();
        let at = at.map_or_else(String::new, ToString::to_string);
        let detail = self.detail.unwrap_or_default();
        let tags = self.tags.map(tags_in_line).unwrap_or_default();
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
        let [thread, event, detail, unit, id, at, tags, stack] = texts.map(Csv);
        let Line { time, value, .. } = self;
        writeln!(
            out,
            "{time},{thread},{event},{detail},{value},{unit},{id},{at},{tags},{stack}"
        )
    }
}
