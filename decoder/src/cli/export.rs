//! `lucce export`: for other tools.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use lucce_decoder::Collapsed;

use super::classes::Classes;
use super::output::{plural, stdout};
use super::progress::Bar;
use super::{End, Failure, Weigh, about, complain, ending_of_all, kind};

/// Writes all contexts in a format that other tools read.
#[derive(clap::Args)]
#[command(after_help = "Example:
  lucce export run-1234.lucce --format collapsed --leaf-type -o run.collapsed")]
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
    classes: Classes,
    /// Standard output if not given
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// `a.b.C.main;a.b.C.work 24`: root first, for flame graphs
    Collapsed,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    let profile = args.classes.open(&args.file)?;
    let kind = kind(&args.file, &profile, args.event.as_deref())?;
    let events = profile.events_of(&kind.name);
    let bar = Bar::new("decoding", 2 * events.ids().len() as u64);
    let tick = |more| bar.tick(more);
    let contexts = profile.contexts_of(&events, &tick);
    let value = Weigh::of(args.value, &kind, &contexts);
    let Format::Collapsed = args.format;
    let collapsed = Collapsed::new(&profile, &contexts.list, value, args.leaf_type, &tick);
    drop(bar);
    let bar = Bar::new("writing", collapsed.len() as u64);
    let tick = |more| bar.tick(more);
    match &args.output {
        None => {
            let mut out = stdout();
            collapsed.write(&profile, &mut out, &tick)?;
            out.flush()?;
        }
        Some(path) => {
            let failed = |e| Failure::Usage(about(path, e));
            let mut out = BufWriter::new(File::create(path).map_err(failed)?);
            collapsed
                .write(&profile, &mut out, &tick)
                .and_then(|()| out.flush())
                .map_err(failed)?;
            let stacks = plural(collapsed.len() as u64, "stack");
            complain(format_args!("wrote {stacks} to {}", path.display()));
        }
    }
    Ok(ending_of_all(&args.file, &contexts, End::Fine))
}
