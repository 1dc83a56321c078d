//! `lucce report`: where the memory was allocated.

use std::cmp::Reverse;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use lucce_decoder::{Context, Contexts, Profile, StackFrame, Value};
use regex_lite::Regex;
use serde::Serialize;

use super::output::{grouped, json, percent, plural, stdout};
use super::progress::Bar;
use super::{End, Failure, ending_of_all, open};

/// Prints the contexts that allocate most: bytes, count, class and the full stack trace.
#[derive(clap::Args)]
#[command(after_help = "Example:
  lucce report run-1234.lucce --top 5 --sort count --class 'java\\.lang\\.String'")]
pub struct Args {
    file: PathBuf,
    /// How many contexts; 0: all
    #[arg(long, default_value_t = 10)]
    top: usize,
    #[arg(long, value_enum, default_value_t = Sort::Bytes)]
    sort: Sort,
    /// Only of types that match
    #[arg(long, value_name = "REGEX")]
    class: Option<Regex>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Sort {
    Bytes,
    Count,
}

impl Sort {
    fn value(self) -> Value {
        match self {
            Sort::Bytes => Value::Bytes,
            Sort::Count => Value::Count,
        }
    }
}

pub fn run(args: &Args) -> Result<End, Failure> {
    let profile = open(&args.file)?;
    let bar = Bar::new("decoding", profile.events.ids().len() as u64);
    let mut contexts = profile.contexts(&|more| bar.tick(more));
    drop(bar);
    select(&profile, &mut contexts, args);
    let report = Report::new(&profile, &contexts, args);
    let mut out = stdout();
    match args.json {
        true => json(&mut out, &report)?,
        false => report.write(&profile, &mut out)?,
    }
    out.flush()?;
    Ok(ending_of_all(&args.file, &contexts, End::Fine))
}

/// Keeps what was asked for, the largest first.
fn select(profile: &Profile, contexts: &mut Contexts, args: &Args) {
    let value = args.sort.value();
    contexts.list.retain(|context| {
        let name = profile.code.allocated(context.site).unwrap_or_default();
        context.count > 0 && args.class.as_ref().is_none_or(|class| class.is_match(name))
    });
    contexts
        .list
        .sort_by_key(|context| (Reverse(value.of(context)), context.id));
}

#[derive(Serialize)]
struct Report {
    totals: Totals,
    /// The JVM ended by itself.
    ended: bool,
    damage: Option<Damage>,
    lost: u64,
    skipped: SkippedCounts,
    contexts: Vec<Row>,
}

#[derive(Serialize)]
struct Totals {
    contexts: u64,
    count: u64,
    bytes: u64,
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
    bytes: u64,
    /// Percent of what was sorted by.
    share: f64,
    frames: Vec<StackFrame>,
}

impl Report {
    fn new(profile: &Profile, contexts: &Contexts, args: &Args) -> Self {
        let totals = Totals {
            contexts: contexts.list.len() as u64,
            count: contexts.count(),
            bytes: contexts.bytes(),
        };
        let (classes, methods) = profile.skipped_counts();
        let top = if args.top == 0 { usize::MAX } else { args.top };
        let rows = contexts
            .list
            .iter()
            .take(top)
            .map(|c| row(profile, c, &totals, args.sort));
        Report {
            contexts: rows.collect(),
            totals,
            ended: profile.ended,
            damage: contexts.damage.as_ref().map(|damage| Damage {
                offset: damage.offset,
                reason: damage.reason.to_string(),
            }),
            lost: profile.lost(),
            skipped: SkippedCounts { classes, methods },
        }
    }

    fn write(&self, profile: &Profile, out: &mut impl Write) -> io::Result<()> {
        for (number, row) in self.contexts.iter().enumerate() {
            row.write(number + 1, out)?;
        }
        let Totals {
            contexts,
            count,
            bytes,
        } = self.totals;
        let contexts = plural(contexts, "context");
        writeln!(
            out,
            "total: {}, {} in {contexts}",
            plural(bytes, "byte"),
            plural(count, "event")
        )?;
        self.write_notes(profile, out)
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
        if self.lost > 0 {
            writeln!(out, "note: {} lost", plural(self.lost, "event"))?;
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

fn row(profile: &Profile, context: &Context, totals: &Totals, sort: Sort) -> Row {
    let whole = match sort {
        Sort::Bytes => totals.bytes,
        Sort::Count => totals.count,
    };
    let frames = profile.trace(context.id).map(|trace| trace.frames);
    Row {
        id: context.id.to_string(),
        aliases: context.aliases.iter().map(ToString::to_string).collect(),
        class: profile.code.allocated(context.site).map(str::to_owned),
        count: context.count,
        bytes: context.bytes,
        share: percent(sort.value().of(context), whole),
        frames: frames.unwrap_or_default(),
    }
}

impl Row {
    fn write(&self, number: usize, out: &mut impl Write) -> io::Result<()> {
        let class = self.class.as_deref().unwrap_or("events without a type");
        let (bytes, count) = (plural(self.bytes, "byte"), grouped(self.count));
        writeln!(
            out,
            "#{number} {:.2}%  {bytes}  {count} × {class}  {}",
            self.share, self.id
        )?;
        self.frames
            .iter()
            .try_for_each(|frame| writeln!(out, "\tat {frame}"))?;
        writeln!(out)
    }
}
