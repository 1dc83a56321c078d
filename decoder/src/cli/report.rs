//! `lucce report`: where the memory was allocated, or where other events happened.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::PathBuf;

use lucce_decoder::escape::Text;
use lucce_decoder::{
    ALLOC, Bursts, Context, ContextId, Contexts, Coverage, IO, IO_TIME, Kind, Listed, Profile,
    Submissions, Trace, Traces, Value,
};
use regex_lite::Regex;
use serde::{Serialize, Serializer};

use super::classes::Classes;
use super::output::{grouped, json, percent, plural, stdout};
use super::progress::Bar;
use super::started::StartedBy;
use super::threshold::{Threshold, complain_if_large};
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
    threshold: Threshold,
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
    let kind = kind(&args.file, &profile, args.event.as_deref(), streamed)?;
    let events = profile.events_of(&kind.name);
    let bar = Bar::new("decoding", events.ids().len() as u64);
    let mut contexts = profile.contexts_of(&events, &|more| bar.tick(more));
    drop(bar);
    let value = Weigh::of(args.sort, &kind, &contexts);
    let is_whole = args.part.is_whole() && !profile.is_restricted() && kind.name == ALLOC;
    let coverage = match is_whole {
        true => profile.coverage(&contexts).ok(),
        false => None,
    };
    select(&profile, &mut contexts, args, value);
    let totals = Totals::new(&kind, &contexts.list);
    let shown = shown(&contexts.list, args, value, value_of(value, &totals));
    let rows = Rows::new(
        &profile,
        &kind,
        (&totals, value),
        shown,
        args.across_threads,
    );
    complain_if_large(rows.bytes(args.json), rows.list.len() as u64);
    let left = contexts.list.get(rows.list.len()..).unwrap_or_default();
    let rest = args.threshold.is_set().then(|| Totals::new(&kind, left));
    let mut report = Report::new(&profile, &contexts, (totals, rest), rows);
    report.coverage = coverage;
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

/// The contexts that are listed: the first so many, as long as each is large enough.
fn shown<'c>(list: &'c [Context], args: &Args, sorted_by: Value, whole: u64) -> &'c [Context] {
    let top = if args.top == 0 { usize::MAX } else { args.top };
    let is_large = |context: &&Context| args.threshold.admits(sorted_by.of(context), whole);
    let number = list.iter().take(top).take_while(is_large).count();
    list.get(..number).unwrap_or_default()
}

fn value_of(sorted_by: Value, totals: &Totals) -> u64 {
    match sorted_by {
        Value::Sum => totals.value,
        Value::Count => totals.count,
    }
}

#[derive(Serialize)]
struct Report<'r> {
    /// Of which run; none: the log is older than runs' ids.
    run: Option<String>,
    event: String,
    /// What `value` is in; empty: a number of the program's own.
    unit: String,
    /// Other kinds of events in the log, and how many.
    others: BTreeMap<String, u64>,
    totals: Totals,
    /// Of allocations, if what the VM says can be compared.
    coverage: Option<Coverage>,
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
    contexts: Rows<'r>,
    /// With a threshold: the sum of what is not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    rest: Option<Totals>,
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

impl Totals {
    fn new(kind: &Kind, contexts: &[Context]) -> Self {
        let sum = |of: fn(&Context) -> u64| contexts.iter().map(of).fold(0, u64::saturating_add);
        let mut traces: Vec<_> = contexts.iter().map(|context| context.id).collect();
        traces.sort_unstable();
        traces.dedup();
        let value = sum(|context| context.value);
        Totals {
            contexts: traces.len() as u64,
            count: sum(|context| context.count),
            value,
            bytes: bytes(kind, value),
        }
    }

    /// `12 bytes, 3 events in 2 contexts`
    fn write(&self, unit: &str, out: &mut impl Write) -> io::Result<()> {
        let value = sum(self.value, unit).map_or_else(String::new, |text| text + ", ");
        let contexts = plural(self.contexts, "context");
        writeln!(out, "{value}{} in {contexts}", plural(self.count, "event"))
    }
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
struct Row<'r> {
    id: String,
    aliases: Vec<String>,
    class: Option<&'r str>,
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
    frames: Listed<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_by: Option<StartedBy>,
}

/// Bytes between two samples, if allocations are estimated from samples.
fn sampled_bytes(profile: &Profile) -> Option<u64> {
    profile.meta.get("sampled.bytes")?.parse().ok()
}

/// What is listed, made row by row while it is written: together the traces may be far longer than the log.
struct Rows<'r> {
    profile: &'r Profile,
    traces: Traces<'r>,
    list: Vec<(&'r Context, Trace)>,
    kind: &'r Kind,
    sorted_by: Value,
    whole: u64,
    times: HashMap<(ContextId, Option<String>), u64>,
    /// With `--across-threads`.
    submissions: Option<Submissions>,
}

impl<'r> Rows<'r> {
    fn new(
        profile: &'r Profile,
        kind: &'r Kind,
        (totals, sorted_by): (&Totals, Value),
        contexts: &'r [Context],
        across_threads: bool,
    ) -> Self {
        let mut traces = Traces::new(profile);
        let list = contexts.iter().map(|context| {
            let trace = traces.of(context.id);
            (context, trace.unwrap_or(Trace::EMPTY))
        });
        Rows {
            list: list.collect(),
            profile,
            traces,
            kind,
            sorted_by,
            whole: value_of(sorted_by, totals),
            times: times(profile, &kind.name),
            submissions: across_threads.then(|| profile.submissions()),
        }
    }

    fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        let number = |id: &ContextId| self.profile.number(*id).to_string();
        self.list.iter().map(move |(context, trace)| {
            let class = self.profile.detail(context);
            let started = self.submissions.as_ref();
            let key = (context.id, class.map(str::to_owned));
            Row {
                id: number(&context.id),
                aliases: context.aliases.iter().map(number).collect(),
                class,
                count: context.count,
                value: context.value,
                bytes: bytes(self.kind, context.value),
                nanos: self.times.get(&key).copied(),
                share: percent(self.sorted_by.of(context), self.whole),
                frames: self.traces.listed(*trace, usize::MAX),
                started_by: started.map(|of| StartedBy::new(self.profile, of, context.id)),
            }
        })
    }

    /// About how much will be written, without traces of other threads.
    fn bytes(&self, as_json: bool) -> u64 {
        const ROW: u64 = 100;
        let sums = self.traces.sums(|_, frame| match as_json {
            true => serde_json::to_string(frame).map_or(0, |text| text.len() as u64 + 1),
            false => frame.to_string().len() as u64 + "\tat \n".len() as u64,
        });
        let rows = self
            .list
            .iter()
            .map(|(_, trace)| sums.of(*trace).saturating_add(ROW));
        rows.fold(0, u64::saturating_add)
    }
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'r> Report<'r> {
    fn new(
        profile: &Profile,
        contexts: &Contexts,
        (totals, rest): (Totals, Option<Totals>),
        rows: Rows<'r>,
    ) -> Self {
        let kind = rows.kind;
        let others = profile.kinds().into_iter();
        let others = others.filter(|other| other.name != kind.name);
        let (classes, methods) = profile.skipped_counts();
        Report {
            run: profile.header.run.map(|run| run.to_string()),
            others: others.map(|other| (other.name, other.count)).collect(),
            totals,
            rest,
            coverage: None,
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
            event: kind.name.clone(),
            unit: kind.unit.clone(),
            contexts: rows,
        }
    }

    fn write(&self, profile: &Profile, out: &mut impl Write) -> io::Result<()> {
        self.write_head(out)?;
        for (number, row) in self.contexts.iter().enumerate() {
            row.write(number + 1, &self.unit, out)?;
        }
        if let Some(rest) = &self.rest {
            write!(out, "rest, not listed: ")?;
            rest.write(&self.unit, out)?;
        }
        write!(out, "total: ")?;
        self.totals.write(&self.unit, out)?;
        self.write_notes(profile, out)
    }

    /// Where there are other kinds than allocations, which is shown.
    fn write_head(&self, out: &mut impl Write) -> io::Result<()> {
        if let Some(coverage) = &self.coverage {
            writeln!(out, "counted: {coverage}\n")?;
        }
        if self.event == ALLOC && self.others.is_empty() {
            return Ok(());
        }
        write!(out, "events: {}", Text(&self.event))?;
        let others = self.others.iter();
        let others: Vec<_> = others
            .map(|(name, count)| format!("{} {}", Text(name), grouped(*count)))
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
            writeln!(out, "note: {}", Text(&bursts.to_string()))?;
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
            .try_for_each(|warning| writeln!(out, "warning: {}", Text(warning)))
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
        (value, unit) => Some(format!("{} {}", grouped(value), Text(unit))),
    }
}

impl Row<'_> {
    fn write(&self, number: usize, unit: &str, out: &mut impl Write) -> io::Result<()> {
        let count = grouped(self.count);
        let events = match (self.class, unit) {
            (Some(class), _) => format!("{count} × {}", Text(class)),
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
