//! `lucce export`: for other tools.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use lucce_decoder::{
    Collapsed, Contexts, KindTotal, Profile, Value, Wish, path_beside, write_difference,
};
use lucce_formats::{Event, Written};

use super::classes::Classes;
use super::output::{plural, to_output};
use super::progress::Bar;
use super::tagged::Tagged;
use super::threshold::{Threshold, complain_if_traces_are_large};
use super::window::{self, Part};
use super::{End, Failure, Weigh, about, chrome, complain, ending, ending_of_all, kind};

/// Writes all contexts in a format that other tools read.
#[derive(clap::Args)]
#[command(after_help = "Example:
  lucce export run-1234.lucce --format collapsed --leaf-type -o run.collapsed
  lucce export new.lucce --format collapsed --diff old.lucce -o change.collapsed      # flamegraph.pl change.collapsed
  lucce export run-1234.lucce --format pprof -o run.pb.gz     # go tool pprof -top -sample_index=alloc_space run.pb.gz
  lucce export run-1234.lucce --format chrome --event lock -o run.json")]
pub struct Args {
    file: PathBuf,
    #[arg(long, default_value = COLLAPSED, value_parser = Format::parser())]
    format: Format,
    /// Else what the events' unit is, or how many they are if they have none
    #[arg(long, value_enum)]
    value: Option<Weigh>,
    /// Events of this kind; else all where the format has room for it, or allocations, or what there is most of
    #[arg(long, value_name = "KIND")]
    event: Option<String>,
    /// The type that was allocated, locked, … as one more frame
    #[arg(long)]
    leaf_type: bool,
    /// Also contexts' content ids, which are equal in every run, where the format has labels: 17 bytes each, packed
    #[arg(long)]
    content_ids: bool,
    /// Of `collapsed`: the sums of an older run, too, `stack OLD NEW`, for difference flame graphs
    #[arg(long, value_name = "OLD")]
    diff: Option<PathBuf>,
    #[command(flatten)]
    threshold: Threshold,
    #[command(flatten)]
    classes: Classes,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    tagged: Tagged,
    /// Standard output if not given
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// What is written.
#[derive(Clone, Copy)]
enum Format {
    Collapsed,
    Chrome,
    Other(&'static dyn lucce_formats::Format),
}

const COLLAPSED: &str = "collapsed";
const OWN: [(&str, &str); 2] = [
    (
        COLLAPSED,
        "`a.b.C.main;a.b.C.work 24`: root first, for flame graphs",
    ),
    (
        "chrome",
        "The stream's events as a time line, for about:tracing or Perfetto (agent option record=stream)",
    ),
];

impl Format {
    fn parser() -> impl TypedValueParser<Value = Format> {
        let others = lucce_formats::ALL.iter();
        let others = others.map(|format| (format.name(), format.about()));
        let values = OWN.into_iter().chain(others);
        let values = values.map(|(name, about)| PossibleValue::new(name).help(about));
        PossibleValuesParser::new(values).map(|name| match lucce_formats::named(&name) {
            Some(format) => Format::Other(format),
            None if name == COLLAPSED => Format::Collapsed,
            None => Format::Chrome,
        })
    }
}

pub fn run(args: &Args) -> Result<End, Failure> {
    if args.diff.is_some() && !matches!(args.format, Format::Collapsed) {
        let text = "--diff is of --format collapsed; go tool pprof compares by -diff_base, and so do lucce view and lucce diff";
        return Err(Failure::Usage(text.into()));
    }
    if args.content_ids && !matches!(args.format, Format::Other(_)) {
        let text = "--content-ids are labels, and collapsed and chrome have none";
        return Err(Failure::Usage(text.into()));
    }
    if !args.tagged.is_open() && matches!(args.format, Format::Chrome) {
        let text = "--tag is for sums, and chrome has single events";
        return Err(Failure::Usage(text.into()));
    }
    match args.format {
        Format::Collapsed => match &args.diff {
            Some(old) => difference(args, old),
            None => collapsed(args),
        },
        Format::Chrome => time_line(args),
        Format::Other(format) => other(args, format),
    }
}

/// A file of another tool's.
fn other(args: &Args, format: &dyn lucce_formats::Format) -> Result<End, Failure> {
    if args.output.is_none() && !format.is_text() && io::stdout().is_terminal() {
        let name = format.name();
        let text = format!("--format {name} is no text for a terminal: -o FILE keeps it");
        return Err(Failure::Usage(text));
    }
    let times = has_events(args, format)
        .then(|| window::read(&args.file))
        .transpose()?;
    let part = match times {
        Some(_) => None,
        None => args.part.stream(&args.file)?,
    };
    let mut profile = args.classes.open(&args.file)?;
    let streamed = match &times {
        Some(stream) => window::explained(&args.file, &profile, stream)?,
        None => args.part.apply(&args.file, &mut profile, part)?,
    };
    args.tagged.apply(&args.file, &mut profile)?;
    let asked = args.event.as_deref();
    if let Some(asked) = asked.filter(|asked| !profile.has_followed(asked)) {
        kind(&args.file, &profile, Some(asked), streamed)?;
    }
    if args.content_ids && !format.has_contents() {
        let name = format.name();
        let text = format!("--format {name} has no room for --content-ids");
        return Err(Failure::Usage(text));
    }
    let bar = Bar::new("decoding", profile.events.ids().len() as u64);
    let wish = Wish {
        kind: args.event.as_deref(),
        value: args.value.map(Weigh::value),
        leaf_type: args.leaf_type,
        contents: args.content_ids,
        admits: &|sum, whole| args.threshold.admits(sum, whole),
    };
    let exported = profile.exported(&wish, times.as_ref(), &|more| bar.tick(more));
    drop(bar);
    let bytes = format.bytes_of_stacks(&exported.run);
    let stacks = exported.run.rows.len() as u64;
    complain_if_traces_are_large(bytes, stacks, format.is_packed());
    let left_out = Cell::new(0);
    let write = |out: &mut dyn Write| match &times {
        None => format.write(&exported.run, None, out),
        Some(stream) => args.part.times.with(|window| {
            let events = |tell: &mut dyn FnMut(&Event) -> io::Result<()>| {
                exported.each_event(stream, window, &left_out, tell)
            };
            format.write(&exported.run, Some(&events), out)
        }),
    };
    to_output(args.output.as_deref(), write, |written| match written {
        Written::Stacks(number) => plural(*number, "stack"),
        Written::Events(number) => plural(*number, "event"),
    })?;
    if let Some(stream) = &times {
        window::complain_of_rest(&args.file, &profile, stream);
    }
    if left_out.get() > 0 && args.event.is_none() && !profile.is_restricted() {
        let events = plural(left_out.get(), "event");
        complain(about(
            &args.file,
            format_args!("left out {events} that the log does not explain"),
        ));
    }
    Ok(ending_of_all(&args.file, &exported.left_out, End::Fine).max(streamed))
}

/// Whether single events are written: the format has times, there is a stream, and nothing is summed up.
fn has_events(args: &Args, format: &dyn lucce_formats::Format) -> bool {
    format.has_times()
        && path_beside(&args.file).exists()
        && !args.threshold.is_set()
        && args.tagged.is_open()
}

fn collapsed(args: &Args) -> Result<End, Failure> {
    let side = Side::open(args, &args.file, args.event.as_deref())?;
    let value = Weigh::of(args.value, &side.kind, side.contexts.value());
    let mut collapsed = side.collapsed(value, args.leaf_type);
    let whole = collapsed.sum();
    collapsed.sum_up(|sum| args.threshold.admits(sum, whole));
    let written = collapsed.written(&side.profile);
    let stacks = collapsed.len() as u64;
    complain_if_traces_are_large(written.bytes(), stacks, false);
    let bar = Bar::new("writing", stacks);
    let write = |mut out: &mut dyn Write| written.write(&mut out, &|more| bar.tick(more));
    to_output(args.output.as_deref(), write, |()| plural(stacks, "stack"))?;
    Ok(side.end)
}

/// A run's events of a kind.
struct Side {
    profile: Profile,
    kind: KindTotal,
    contexts: Contexts,
    end: End,
}

impl Side {
    fn open(args: &Args, file: &Path, event: Option<&str>) -> Result<Self, Failure> {
        Side::of(args, file, |profile, end| kind(file, profile, event, end))
    }

    /// A run without an event of the kind has none.
    fn of(
        args: &Args,
        file: &Path,
        kind: impl Fn(&Profile, End) -> Result<KindTotal, Failure>,
    ) -> Result<Self, Failure> {
        let stream = args.part.stream(file)?;
        let mut profile = args.classes.open(file)?;
        let streamed = args.part.apply(file, &mut profile, stream)?;
        args.tagged.apply(file, &mut profile)?;
        let kind = kind(&profile, streamed)?;
        let events = profile.events_of(&kind.name);
        let bar = Bar::new("decoding", events.ids().len() as u64);
        let contexts = profile.contexts_of(&events, &|more| bar.tick(more));
        let end = ending_of_all(file, &contexts, End::Fine).max(streamed);
        Ok(Side {
            profile,
            kind,
            contexts,
            end,
        })
    }

    fn collapsed(&self, value: Value, leaf_type: bool) -> Collapsed {
        let list = &self.contexts.list;
        let bar = Bar::new("summing up", list.len() as u64);
        let tick = |more| bar.tick(more);
        Collapsed::new(&self.profile, list, value, leaf_type, &tick)
    }
}

/// Stacks of two runs.
fn difference(args: &Args, old: &Path) -> Result<End, Failure> {
    let new = Side::open(args, &args.file, args.event.as_deref())?;
    let old = Side::of(args, old, |_, _| Ok(new.kind.clone()))?;
    let value = Weigh::of(args.value, &new.kind, new.contexts.value());
    let of_both = [&old, &new].map(|side| side.collapsed(value, args.leaf_type));
    let [of_old, of_new] = &of_both;
    let whole = of_old.sum().max(of_new.sum());
    let written = (of_old.written(&old.profile), of_new.written(&new.profile));
    let bytes = written.0.bytes().saturating_add(written.1.bytes());
    complain_if_traces_are_large(bytes, (of_old.len() + of_new.len()) as u64, false);
    let admits = |sum| args.threshold.admits(sum, whole);
    let write = |out: &mut dyn Write| write_difference((&written.0, &written.1), admits, out);
    to_output(args.output.as_deref(), write, |lines| {
        plural(*lines, "stack")
    })?;
    Ok(old.end.max(new.end))
}

fn time_line(args: &Args) -> Result<End, Failure> {
    if args.value.is_some() || args.leaf_type || args.threshold.is_set() {
        let text = "--value, --leaf-type, --min-share and --min-bytes sum up, and --format chrome shows each event, with its value and type";
        return Err(Failure::Usage(text.into()));
    }
    args.part.times.check()?;
    let stream = window::read(&args.file)?;
    let profile = &args.classes.open(&args.file)?;
    let end = window::explained(&args.file, profile, &stream)?;
    kind(&args.file, profile, args.event.as_deref(), end)?;
    let write = |mut out: &mut dyn Write| {
        args.part.times.with(|window| {
            let wanted = (window, args.event.as_deref());
            chrome::write(profile, &stream, wanted, &mut out)
        })
    };
    let written = to_output(args.output.as_deref(), write, |written| {
        plural(written.events, "event")
    })?;
    window::complain_of_rest(&args.file, profile, &stream);
    let end = ending(&path_beside(&args.file), written.damage.as_ref(), end);
    Ok(ending(&args.file, profile.damage.as_ref(), end))
}
