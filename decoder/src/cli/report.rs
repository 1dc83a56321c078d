//! `lucce report`: where the memory was allocated, or where other events happened.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::PathBuf;

use lucce_decoder::{
    ALLOC, Bursts, Context, ContextId, Contexts, IO, IO_TIME, Kind, Profile, StackFrame, Value,
};
use regex_lite::Regex;
use serde::Serialize;

use super::classes::Classes;
use super::output::{grouped, json, percent, plural, stdout};
use super::progress::Bar;
use super::started::StartedBy;
use super::window::Part;
use super::{End, Failure, Weigh, ending_of_all, kind};

/// Prints the contexts that allocate most, or where other events happened: value, count, class and
/// the full stack trace.
#[derive(clap::Args)]
#[command(after_help = "Example:
  lucce report run-1234.lucce --top 5 --sort count --class 'java\\.lang\\.String'
  lucce report run-1234.lucce --event lock
  lucce report run-1234.lucce --from 10s --to 12s --thread 'http-.*'
  lucce report run-1234.lucce --include 'com.acme.*' --exclude 'com.acme.util.*'")]
pub struct Args {
    file: PathBuf,
    /// How many contexts; 0: all
    #[arg(long, default_value_t = 10)]
    top: usize,
    /// Else by the sum of values, or by count where events have none
    #[arg(long, value_enum)]
    sort: Option<Weigh>,
    /// Events of this kind; else allocations, or what there is most of
    #[arg(long, value_name = "KIND")]
    event: Option<String>,
    /// Only of types that match
    #[arg(long, value_name = "REGEX")]
    class: Option<Regex>,
    #[command(flatten)]
    classes: Classes,
    #[command(flatten)]
    part: Part,
    /// Go on in the context that started the thread (agent option events=thread)
    #[arg(long)]
    across_threads: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    let stream = args.part.stream(&args.file)?;
    let mut profile = args.classes.open(&args.file)?;
    if args.across_threads {
        profile.tell_apart_across_threads();
    }
    let streamed = args.part.apply(&args.file, &mut profile, stream)?;
    let kind = kind(&args.file, &profile, args.event.as_deref())?;
    let events = profile.events_of(&kind.name);
    let bar = Bar::new("decoding", events.ids().len() as u64);
    let mut contexts = profile.contexts_of(&events, &|more| bar.tick(more));
    drop(bar);
    let value = Weigh::of(args.sort, &kind, &contexts);
    select(&profile, &mut contexts, args, value);
    let times = times(&profile, &kind.name);
    let mut report = Report::new(&profile, &contexts, kind, value, args.top);
    for (row, context) in report.contexts.iter_mut().zip(&contexts.list) {
        row.nanos = times.get(&(context.id, row.class.clone())).copied();
    }
    if args.across_threads {
        let submissions = profile.submissions();
        let rows = report.contexts.iter_mut().zip(&contexts.list);
        rows.for_each(|(row, context)| {
            row.started_by = Some(StartedBy::new(&profile, &submissions, context.id));
        });
    }
    let mut out = stdout();
    match args.json {
        true => json(&mut out, &report)?,
        false => report.write(&profile, &mut out)?,
    }
    out.flush()?;
    Ok(ending_of_all(&args.file, &contexts, End::Fine).max(streamed))
}

/// How long the operations of each context took whose bytes are shown: of another kind in the log, whose
/// numbers are the same.
fn times(profile: &Profile, kind: &str) -> HashMap<(ContextId, Option<String>), u64> {
    if kind != IO {
        return HashMap::new();
    }
    let contexts = profile.contexts_of(&profile.events_of(IO_TIME), &|_| ());
    let times = contexts.list.iter().map(|context| {
        let what = profile.detail(context).map(str::to_owned);
        ((context.id, what), context.value)
    });
    times.collect()
}

/// Keeps what was asked for, the largest first.
fn select(profile: &Profile, contexts: &mut Contexts, args: &Args, value: Value) {
    contexts.list.retain(|context| {
        let name = profile.detail(context).unwrap_or_default();
        context.count > 0 && args.class.as_ref().is_none_or(|class| class.is_match(name))
    });
    contexts
        .list
        .sort_by_key(|context| (Reverse(value.of(context)), context.id));
}

#[derive(Serialize)]
struct Report {
    /// Of which run; none: the log is older than runs' ids.
    run: Option<String>,
    event: String,
    /// What `value` is in; empty: a number of the program's own.
    unit: String,
    /// Other kinds of events in the log, and how many.
    others: BTreeMap<String, u64>,
    totals: Totals,
    /// The JVM ended by itself.
    ended: bool,
    damage: Option<Damage>,
    lost: u64,
    /// Counted in bursts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    bursts: Option<Bursts>,
    /// Events without any frame of the classes that were asked for.
    outside: u64,
    skipped: SkippedCounts,
    /// Counts are estimated from samples, one every so many bytes on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled_bytes: Option<u64>,
    contexts: Vec<Row>,
}

#[derive(Serialize)]
struct Totals {
    contexts: u64,
    count: u64,
    value: u64,
    /// The same, if it is in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

#[derive(Serialize)]
struct Damage {
    offset: u64,
    reason: String,
}

#[derive(Serialize)]
struct SkippedCounts {
    classes: u64,
    methods: u64,
}

#[derive(Serialize)]
struct Row {
    id: String,
    aliases: Vec<String>,
    class: Option<String>,
    count: u64,
    value: u64,
    /// The same, if it is in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// How long they took in all, if that is known beside.
    #[serde(skip_serializing_if = "Option::is_none")]
    nanos: Option<u64>,
    /// Percent of what was sorted by.
    share: f64,
    frames: Vec<StackFrame>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_by: Option<StartedBy>,
}

/// Bytes between two samples, if allocations are estimated from samples.
fn sampled_bytes(profile: &Profile) -> Option<u64> {
    profile.meta.get("sampled.bytes")?.parse().ok()
}

impl Report {
    fn new(
        profile: &Profile,
        contexts: &Contexts,
        kind: Kind,
        sorted_by: Value,
        top: usize,
    ) -> Self {
        let totals = Totals {
            contexts: contexts.traces(),
            count: contexts.count(),
            value: contexts.value(),
            bytes: bytes(&kind, contexts.value()),
        };
        let others = profile.kinds().into_iter();
        let others = others.filter(|other| other.name != kind.name);
        let (classes, methods) = profile.skipped_counts();
        let top = if top == 0 { usize::MAX } else { top };
        let rows = contexts
            .list
            .iter()
            .take(top)
            .map(|c| row(profile, c, &kind, &totals, sorted_by));
        Report {
            run: profile.header.run.map(|run| run.to_string()),
            others: others.map(|other| (other.name, other.count)).collect(),
            contexts: rows.collect(),
            totals,
            ended: profile.ended,
            damage: contexts.damage.as_ref().map(|damage| Damage {
                offset: damage.offset,
                reason: damage.reason.to_string(),
            }),
            lost: profile.lost(),
            bursts: profile.bursts(),
            outside: contexts.outside,
            skipped: SkippedCounts { classes, methods },
            sampled_bytes: sampled_bytes(profile).filter(|_| kind.name == ALLOC),
            event: kind.name,
            unit: kind.unit,
        }
    }

    fn write(&self, profile: &Profile, out: &mut impl Write) -> io::Result<()> {
        self.write_head(out)?;
        for (number, row) in self.contexts.iter().enumerate() {
            row.write(number + 1, &self.unit, out)?;
        }
        let Totals {
            contexts,
            count,
            value,
            ..
        } = self.totals;
        let contexts = plural(contexts, "context");
        let value = sum(value, &self.unit).map_or_else(String::new, |text| text + ", ");
        writeln!(
            out,
            "total: {value}{} in {contexts}",
            plural(count, "event")
        )?;
        self.write_notes(profile, out)
    }

    /// Where there are other kinds than allocations, which is shown.
    fn write_head(&self, out: &mut impl Write) -> io::Result<()> {
        if self.event == ALLOC && self.others.is_empty() {
            return Ok(());
        }
        write!(out, "events: {}", self.event)?;
        let others = self.others.iter();
        let others: Vec<_> = others
            .map(|(name, count)| format!("{name} {}", grouped(*count)))
            .collect();
        if !others.is_empty() {
            write!(out, " (others, for --event: {})", others.join(", "))?;
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
                "note: the JVM was killed or still runs; all it recorded is here"
            )?;
        }
        if let Some(bursts) = &self.bursts {
            writeln!(out, "note: {bursts}")?;
        }
        if let Some(bytes) = self.sampled_bytes {
            let bytes = grouped(bytes);
            writeln!(
                out,
                "note: estimated from samples, one every {bytes} bytes on average"
            )?;
        }
        if self.lost > 0 {
            writeln!(out, "note: {} lost", plural(self.lost, "event"))?;
        }
        if self.outside > 0 {
            let events = plural(self.outside, "event");
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
            .try_for_each(|warning| writeln!(out, "warning: {warning}"))
    }
}

fn bytes(kind: &Kind, value: u64) -> Option<u64> {
    (kind.unit == "bytes").then_some(value)
}

/// A value with its unit; `None`: there is none.
fn sum(value: u64, unit: &str) -> Option<String> {
    match (value, unit) {
        (0, "") => None,
        (value, "") => Some(format!("value {}", grouped(value))),
        (value, "bytes") => Some(plural(value, "byte")),
        (value, unit) => Some(format!("{} {unit}", grouped(value))),
    }
}

fn row(
    profile: &Profile,
    context: &Context,
    kind: &Kind,
    totals: &Totals,
    sorted_by: Value,
) -> Row {
    let whole = match sorted_by {
        Value::Sum => totals.value,
        Value::Count => totals.count,
    };
    let number = |id: &ContextId| profile.number(*id).to_string();
    let frames = profile.trace(context.id).map(|trace| trace.frames);
    Row {
        id: number(&context.id),
        aliases: context.aliases.iter().map(number).collect(),
        class: profile.detail(context).map(str::to_owned),
        count: context.count,
        value: context.value,
        bytes: bytes(kind, context.value),
        nanos: None,
        share: percent(sorted_by.of(context), whole),
        frames: frames.unwrap_or_default(),
        started_by: None,
    }
}

impl Row {
    fn write(&self, number: usize, unit: &str, out: &mut impl Write) -> io::Result<()> {
        let count = grouped(self.count);
        let events = match (&self.class, unit) {
            (Some(class), _) => format!("{count} × {class}"),
            (None, "bytes") => format!("{count} × events without a type"),
            (None, _) => plural(self.count, "event"),
        };
        let nanos = self
            .nanos
            .map_or_else(String::new, |nanos| format!("{} ns  ", grouped(nanos)));
        let value = sum(self.value, unit).map_or_else(String::new, |text| text + "  ") + &nanos;
        writeln!(
            out,
            "#{number} {:.2}%  {value}{events}  {}",
            self.share, self.id
        )?;
        self.frames
            .iter()
            .try_for_each(|frame| writeln!(out, "\tat {frame}"))?;
        if let Some(started_by) = &self.started_by {
            started_by.write(out)?;
        }
        writeln!(out)
    }
}
