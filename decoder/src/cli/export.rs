//! `lucce export`: for other tools.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use lucce_decoder::{Collapsed, path_beside};

use super::classes::Classes;
use super::output::{plural, stdout};
use super::progress::Bar;
use super::threshold::{Threshold, complain_if_large};
use super::window::{self, Part};
use super::{End, Failure, Weigh, about, chrome, complain, ending, ending_of_all, kind};

/// Writes all contexts in a format that other tools read.
#[derive(clap::Args)]
#[command(after_help = "Example:
  lucce export run-1234.lucce --format collapsed --leaf-type -o run.collapsed
  lucce export run-1234.lucce --format chrome --event lock -o run.json")]
pub struct Args {
    file: PathBuf,
    #[arg(long, value_enum, default_value_t = Format::Collapsed)]
    format: Format,
    /// Else what the events' unit is, or how many they are if they have none
    #[arg(long, value_enum)]
    value: Option<Weigh>,
    /// Events of this kind; else allocations, or what there is most of
    #[arg(long, value_name = "KIND")]
    event: Option<String>,
    /// The type that was allocated, locked, … as one more frame
    #[arg(long)]
    leaf_type: bool,
    #[command(flatten)]
    threshold: Threshold,
    #[command(flatten)]
    classes: Classes,
    #[command(flatten)]
    part: Part,
    /// Standard output if not given
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// `a.b.C.main;a.b.C.work 24`: root first, for flame graphs
    Collapsed,
    /// The stream's events as a time line, for about:tracing or Perfetto (agent option record=stream)
    Chrome,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    if matches!(args.format, Format::Chrome) {
        return time_line(args);
    }
    let stream = args.part.stream(&args.file)?;
    let mut profile = args.classes.open(&args.file)?;
    let streamed = args.part.apply(&args.file, &mut profile, stream)?;
    let kind = kind(&args.file, &profile, args.event.as_deref(), streamed)?;
    let events = profile.events_of(&kind.name);
    let bar = Bar::new("decoding", 2 * events.ids().len() as u64);
    let tick = |more| bar.tick(more);
    let contexts = profile.contexts_of(&events, &tick);
    let value = Weigh::of(args.value, &kind, &contexts);
    let mut collapsed = Collapsed::new(&profile, &contexts.list, value, args.leaf_type, &tick);
    drop(bar);
    let whole = collapsed.sum();
    collapsed.sum_up(|sum| args.threshold.admits(sum, whole));
    let written = collapsed.written(&profile);
    complain_if_large(written.bytes(), collapsed.len() as u64);
    let bar = Bar::new("writing", collapsed.len() as u64);
    let tick = |more| bar.tick(more);
    match &args.output {
        None => {
            let mut out = stdout();
            written.write(&mut out, &tick)?;
            out.flush()?;
        }
        Some(path) => {
            let failed = |e| Failure::Usage(about(path, e));
            let mut out = BufWriter::new(File::create(path).map_err(failed)?);
            written
                .write(&mut out, &tick)
                .and_then(|()| out.flush())
                .map_err(failed)?;
            let stacks = plural(collapsed.len() as u64, "stack");
            complain(format_args!("wrote {stacks} to {}", path.display()));
        }
    }
    Ok(ending_of_all(&args.file, &contexts, End::Fine).max(streamed))
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
    let write = |out: &mut dyn Write| {
        let mut out = out;
        let written = args.part.times.with(|window| {
            let wanted = (window, args.event.as_deref());
            chrome::write(profile, &stream, wanted, &mut out)
        })?;
        out.flush()?;
        Ok(written)
    };
    let written = match &args.output {
        None => write(&mut stdout())?,
        Some(path) => {
            let failed = |e| Failure::Usage(about(path, e));
            let mut out = BufWriter::new(File::create(path).map_err(failed)?);
            let written = write(&mut out).map_err(failed)?;
            let events = plural(written.events, "event");
            complain(format_args!("wrote {events} to {}", path.display()));
            written
        }
    };
    window::complain_of_rest(&args.file, profile, &stream);
    let end = ending(&path_beside(&args.file), written.damage.as_ref(), end);
    Ok(ending(&args.file, profile.damage.as_ref(), end))
}
