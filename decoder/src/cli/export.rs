//! `lucce export`: for other tools.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use lucce_decoder::{Collapsed, Value};

use super::output::{plural, stdout};
use super::progress::Bar;
use super::{End, Failure, about, complain, ending_of_all, open};

/// Writes all contexts in a format that other tools read.
#[derive(clap::Args)]
#[command(after_help = "Example:
  lucce export run-1234.lucce --format collapsed --leaf-type -o run.collapsed")]
pub struct Args {
    file: PathBuf,
    #[arg(long, value_enum, default_value_t = Format::Collapsed)]
    format: Format,
    #[arg(long, value_enum, default_value_t = ValueArg::Bytes)]
    value: ValueArg,
    /// The allocated type as one more frame
    #[arg(long)]
    leaf_type: bool,
    /// Standard output if not given
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// `a.b.C.main;a.b.C.work 24`: root first, for flame graphs
    Collapsed,
}

#[derive(Clone, Copy, ValueEnum)]
enum ValueArg {
    Bytes,
    Count,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    let profile = open(&args.file)?;
    let bar = Bar::new("decoding", 2 * profile.events.ids().len() as u64);
    let tick = |more| bar.tick(more);
    let contexts = profile.contexts(&tick);
    let value = match args.value {
        ValueArg::Bytes => Value::Bytes,
        ValueArg::Count => Value::Count,
    };
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
