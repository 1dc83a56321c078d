//! `lucce report`: where the memory was allocated, or where other events happened.

mod chosen;
mod head;
mod listing;
mod sums;
mod tree;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::path::PathBuf;

use lucce_decoder::escape::Text;
use lucce_decoder::{
    ALLOC, Bursts, Context, Contexts, Counted, Coverage, Joined, KindTotal, Known, LEAK, Measure,
    Profile, Value,
};
use regex_lite::Regex;
use serde::Serialize;

use super::classes::Classes;
use super::compare::Told;
use super::human::human;
use super::output::{grouped, json, plural, stdout};
use super::progress::Bar;
use super::tagged::Tagged;
use super::threshold::{Threshold, complain_if_traces_are_large};
use super::window::Part;
use super::{End, Failure, Weigh, about, complain, ending_of_all, kind};
use chosen::{Chosen, Sort, Sorted};
use head::Run;
use listing::Rows;

/// Prints what allocates most, or where other events happened: the contexts with their full stack traces, or
/// sums by type, class, package, method, line, thread or tag, or a tree of calls.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce report run-1234.lucce --top 5 --sort count --class 'java\\.lang\\.String'
  lucce report run-1234.lucce --by method
  lucce report run-1234.lucce --tree --through 'com\\.acme\\.'
  lucce report run-1234.lucce --tree --inverted --min-share 5
  lucce report run-1234.lucce --event lock
  lucce report run-1234.lucce --from 10s --to 12s --thread 'http-.*'
  lucce report run-1234.lucce --include 'com.acme.*' --exclude 'com.acme.util.*'")]
pub struct Args {
    file: PathBuf,
    /// How many contexts, or sums; 0: all
    #[arg(long, default_value_t = 10)]
    top: usize,
    /// What is summed up; with --tree, what its branches are: class, package, method (the default there) or line
    #[arg(long, value_enum)]
    by: Option<Told>,
    /// A tree of calls, from where threads begin; branches below 1% are summed up (--min-share)
    #[arg(long)]
    tree: bool,
    /// The tree from where events happen to who called
    #[arg(long, requires = "tree")]
    inverted: bool,
    /// So many calls of the tree (default 500)
    #[arg(long, value_name = "CALLS", requires = "tree", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,
    /// Else by the sum of values, or by count where events have none
    #[arg(long, value_enum)]
    sort: Option<Weigh>,
    /// Events of this kind; else allocations, or what there is most of
    #[arg(long, value_name = "KIND")]
    event: Option<String>,
    /// Only of types that match
    #[arg(long, value_name = "REGEX")]
    class: Option<Regex>,
    /// Only stacks with a method that matches, as package.Class.method
    #[arg(long, value_name = "REGEX")]
    through: Option<Regex>,
    /// Also threads of pools that wait for work, which are one line otherwise (kinds that count time)
    #[arg(long)]
    idle: bool,
    #[command(flatten)]
    threshold: Threshold,
    #[command(flatten)]
    classes: Classes,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    tagged: Tagged,
    /// Go on in the context that started the thread (agent option events=thread)
    #[arg(long)]
    across_threads: bool,
    /// One JSON object; docs/json.md describes it
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    check(args)?;
    let stream = args.part.stream(&args.file)?;
    let mut profile = args.classes.open(&args.file)?;
    if args.across_threads {
        profile.tell_apart_across_threads();
    }
    let streamed = args.part.apply(&args.file, &mut profile, stream)?;
    args.tagged.apply(&args.file, &mut profile)?;
    let kind = kind_of(args, &profile, streamed)?;
    let of = Of {
        args,
        profile: &profile,
        kind: &kind,
        chosen: Chosen::new(args, &kind),
    };
    let end = match (args.tree, args.by) {
        (true, by) => of.summed(Sums::Tree(by.unwrap_or(Told::Method)))?,
        (false, Some(by)) if by != Told::Context => of.summed(Sums::Table(by))?,
        (false, _) => of.listed()?,
    };
    Ok(end.max(streamed))
}

/// The kind that is reported. What the run was asked for is known even if there was no such event.
fn kind_of(args: &Args, profile: &Profile, streamed: End) -> Result<KindTotal, Failure> {
    let known = profile.kinds();
    let asked = profile.asked_kinds();
    let without_events = match &args.event {
        Some(event) => Some(event.as_str())
            .filter(|event| known.iter().all(|kind| kind.name != *event))
            .and_then(|event| asked.iter().find(|name| **name == event)),
        None => asked
            .iter()
            .find(|name| ALLOC.is(name))
            .or(asked.first())
            .filter(|_| known.is_empty()),
    };
    match without_events {
        Some(name) => Ok(KindTotal {
            name: (*name).to_owned(),
            ..Known::of(name).counted(0)
        }),
        None => kind(&args.file, profile, args.event.as_deref(), streamed),
    }
}

fn check(args: &Args) -> Result<(), Failure> {
    let has_frames = !matches!(
        args.by,
        Some(Told::Context | Told::Type | Told::Thread | Told::Tag)
    );
    match args.tree && !has_frames {
        true => Err(Failure::Usage(
            "--tree is one of classes, packages, methods or lines (--by)".into(),
        )),
        false => Ok(()),
    }
}

/// What is reported.
struct Of<'r> {
    args: &'r Args,
    profile: &'r Profile,
    kind: &'r KindTotal,
    chosen: Chosen<'r>,
}

/// How sums are shown.
#[derive(Clone, Copy)]
enum Sums {
    Table(Told),
    Tree(Told),
}

impl<'r> Of<'r> {
    /// Contexts one by one.
    fn listed(&self) -> Result<End, Failure> {
        let (args, profile, kind) = (self.args, self.profile, self.kind);
        let events = profile.events_of(&kind.name);
        let (events, idle) = self.chosen.part_idle(profile, events);
        let all = events.ids().len() + idle.ids().len();
        let bar = Bar::new("decoding", all as u64);
        let mut contexts = profile.contexts_of(&events, &|more| bar.tick(more));
        let mut idle = profile.contexts_of(&idle, &|more| bar.tick(more));
        drop(bar);
        contexts.add_left_out(&mut idle);
        let all = contexts.value().saturating_add(idle.value());
        let value = Weigh::of(args.sort, kind, all);
        for list in [&mut contexts.list, &mut idle.list] {
            self.chosen.keep_wanted(profile, list);
        }
        let largest_first = |context: &Context| (Reverse(value.of(context)), context.id);
        contexts.list.sort_by_key(largest_first);
        let totals = Totals::new(kind, &contexts.list);
        let idle = Totals::new(kind, &idle.list);
        let whole = value_of(value, &totals);
        let shown = listing::shown(&contexts.list, args, value, whole);
        let rows = Rows::new(profile, kind, (&totals, value), shown, args.across_threads);
        let number = rows.list.len();
        complain_if_traces_are_large(rows.bytes(args.json), number as u64, false);
        let left = contexts.list.get(number..).unwrap_or_default();
        let body = Body::Contexts {
            contexts: Box::new(rows),
            rest: args.threshold.is_set().then(|| Totals::new(kind, left)),
        };
        self.print(&contexts, (totals, idle), body)
    }

    /// Sums of them. Each context is decoded once: its node in the tree says all that is asked for.
    fn summed(&self, sums: Sums) -> Result<End, Failure> {
        let (args, profile, kind) = (self.args, self.profile, self.kind);
        let events = profile.events_of(&kind.name);
        let bar = Bar::new("decoding", events.ids().len() as u64);
        let (joined, left_out) = Joined::of_events(profile, &events, &|more| bar.tick(more));
        drop(bar);
        let all = joined.counted(0, |_| true).map(|row| row.value);
        let value = Weigh::of(args.sort, kind, all.fold(0, u64::saturating_add));
        let sorted = &self.chosen.sorted(&joined);
        let of_sort = |sort: Sort| joined.counted(0, move |row| sorted.sort(row) == sort);
        let totals = Totals::of_rows(kind, of_sort(Sort::Wanted));
        let idle = Totals::of_rows(kind, of_sort(Sort::Idle));
        let summed = Summed {
            joined: &joined,
            sorted,
            value,
            unit: unit_of(value, kind),
            whole: value_of(value, &totals),
        };
        let body = match sums {
            Sums::Table(by) => Body::Sums(sums::Table::new(&summed, args, by)),
            Sums::Tree(by) => Body::Tree(tree::Drawn::new(&summed, args, by)),
        };
        self.print(&left_out, (totals, idle), body)
    }

    /// `contexts`: what was left out, and damage.
    fn print(
        &self,
        contexts: &Contexts,
        (totals, idle): (Totals, Totals),
        body: Body<'_>,
    ) -> Result<End, Failure> {
        let (args, profile, kind) = (self.args, self.profile, self.kind);
        let is_whole = args.part.is_whole() && args.tagged.is_open() && !profile.is_restricted();
        let is_whole = is_whole && ALLOC.is(&kind.name);
        let mut report = Report::new(profile, contexts, kind, (totals, body));
        report.coverage = is_whole.then(|| profile.coverage().ok()).flatten();
        report.idle = (idle.contexts > 0).then_some(idle);
        let is_none = report.totals.count == 0 && report.idle.is_none();
        let mut out = stdout();
        match args.json {
            true => json(&mut out, &report)?,
            false => report.write(profile, &mut out)?,
        }
        out.flush()?;
        if is_none && kind.count > 0 {
            complain_of_patterns(args, kind);
        }
        Ok(ending_of_all(&args.file, contexts, End::Fine))
    }
}

/// The kind has events, and none of them is reported: it may be a pattern that is not what was meant.
fn complain_of_patterns(args: &Args, kind: &KindTotal) {
    let asked = [("--class", &args.class), ("--through", &args.through)];
    let asked = asked.iter().filter_map(|(option, pattern)| {
        let pattern = pattern.as_ref()?.as_str();
        Some(format!("{option} '{pattern}'"))
    });
    let asked: Vec<_> = asked.collect();
    if !asked.is_empty() {
        let asked = asked.join(" and ");
        let message = format_args!("no event of kind {} matches {asked}", kind.name);
        complain(about(&args.file, message));
    }
}

/// Events in a tree, of which sums are made.
struct Summed<'r> {
    joined: &'r Joined,
    sorted: &'r Sorted<'r>,
    value: Value,
    /// What amounts are in.
    unit: &'r str,
    /// All that is wanted.
    whole: u64,
}

impl Summed<'_> {
    fn measure(&self) -> Measure {
        match self.value {
            Value::Sum => Measure::Value,
            Value::Count => Measure::Count,
        }
    }

    fn is_wanted(&self, row: &Counted) -> bool {
        self.sorted.sort(row) == Sort::Wanted
    }
}

/// What amounts are in; counts are in nothing.
fn unit_of(value: Value, kind: &KindTotal) -> &str {
    match value {
        Value::Sum => &kind.unit,
        Value::Count => "",
    }
}

fn value_of(sorted_by: Value, totals: &Totals) -> u64 {
    match sorted_by {
        Value::Sum => totals.value,
        Value::Count => totals.count,
    }
}

#[derive(Serialize)]
struct Report<'r> {
    schema: &'static str,
    version: u32,
    #[serde(flatten)]
    head: Run,
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
    /// What is wrong with the samples of this JVM.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample_bias: Option<&'static str>,
    /// Waits of threads that have nothing to do, which are not among the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    idle: Option<Totals>,
    #[serde(flatten)]
    body: Body<'r>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Body<'r> {
    Contexts {
        contexts: Box<Rows<'r>>,
        /// With a threshold: the sum of what is not listed.
        #[serde(skip_serializing_if = "Option::is_none")]
        rest: Option<Totals>,
    },
    Sums(sums::Table),
    Tree(tree::Drawn),
}

#[derive(Serialize)]
struct Totals {
    contexts: u64,
    count: u64,
    value: u64,
    /// The value, if it is in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

impl Totals {
    fn new(kind: &KindTotal, contexts: &[Context]) -> Self {
        let sum = |of: fn(&Context) -> u64| contexts.iter().map(of).fold(0, u64::saturating_add);
        let mut traces: Vec<_> = contexts.iter().map(|context| context.stack).collect();
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

    fn of_rows<'c>(kind: &KindTotal, rows: impl Iterator<Item = &'c Counted>) -> Self {
        let (mut traces, mut count, mut value) = (HashSet::new(), 0_u64, 0_u64);
        for row in rows {
            traces.insert(row.node);
            count = count.saturating_add(row.count);
            value = value.saturating_add(row.value);
        }
        Totals {
            contexts: traces.len() as u64,
            count,
            value,
            bytes: bytes(kind, value),
        }
    }

    /// `12 bytes, 3 events in 2 contexts`
    fn write(&self, unit: &str, out: &mut impl Write) -> io::Result<()> {
        if self.count == 0 {
            return writeln!(out, "none");
        }
        let value = amount(self.value, unit).map_or_else(String::new, |text| text + ", ");
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

impl<'r> Report<'r> {
    fn new(
        profile: &Profile,
        contexts: &Contexts,
        kind: &KindTotal,
        (totals, body): (Totals, Body<'r>),
    ) -> Self {
        let others = profile.kinds().into_iter();
        let others = others.filter(|other| other.name != kind.name);
        let (classes, methods) = profile.skipped_counts();
        Report {
            schema: "lucce-report",
            version: 1,
            head: Run::new(profile),
            others: others.map(|other| (other.name, other.count)).collect(),
            totals,
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
            sampled_bytes: profile.sampled_bytes().filter(|_| ALLOC.is(&kind.name)),
            sample_bias: profile.sample_bias().filter(|_| ALLOC.is(&kind.name)),
            idle: None,
            event: kind.name.clone(),
            unit: kind.unit.clone(),
            body,
        }
    }

    fn write(&self, profile: &Profile, out: &mut impl Write) -> io::Result<()> {
        self.write_head(out)?;
        match &self.body {
            Body::Contexts { contexts, rest } => {
                contexts.write(&self.unit, out)?;
                if let Some(rest) = rest {
                    write!(out, "rest, not listed: ")?;
                    rest.write(&self.unit, out)?;
                }
            }
            Body::Sums(table) => table.write(out)?,
            Body::Tree(drawn) => drawn.write(out)?,
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
        if LEAK.is(&self.event) && self.totals.count == 0 {
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
            lost => format!("{} lost", plural(lost, "event")),
        };
        let unit = match self.unit.as_str() {
            "" => String::new(),
            unit => format!(" in {}", Text(unit)),
        };
        write!(out, "events: {}{unit}, {lost}", Text(&self.event))?;
        let others = self.others.iter();
        let others: Vec<_> = others
            .map(|(name, count)| format!("{} {}", Text(name), grouped(*count)))
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
            writeln!(out, "note: {}", Text(&bursts.to_string()))?;
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

fn bytes(kind: &KindTotal, value: u64) -> Option<u64> {
    kind.is_bytes().then_some(value)
}

/// A value with its unit, exact where that is not long; `None`: there is none.
fn amount(value: u64, unit: &str) -> Option<String> {
    match (value, unit) {
        (0, "") => None,
        (value, "") => Some(format!("value {}", grouped(value))),
        (value, unit) => Some(human(value as f64, &Text(unit).to_string())),
    }
}
