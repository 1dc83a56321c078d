//! `lucce contexts`: which short paths of calls lead to the hot methods.

mod input;

mod answer;
mod paths;

mod charts;
mod figures;
mod tables;

use std::path::PathBuf;

use clap::ValueEnum;
use lucce_decoder::{CallMeasure, EventLeaf};
use lucce_kcontexts::Bursts;

use super::classes::ClassFilterArgs;
use super::{CommandError, CommandStatus};
use input::ContextsInput;

/// Prints the short paths of calls that lead to the hot methods.
///
/// From a log's events or from recorded calls. A k-calling context is a method with its last k
/// callers, however deep the stack is below them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce contexts run-1234.lucce --k 10 --hot 90
  lucce contexts run-1234.lucce --format collapsed --types > inverted.collapsed
  lucce contexts --tables --plot charts run-1234.calls run-1235.calls")]
pub struct ContextsArgs {
    /// Logs or recordings; several with --tables only
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// How many calls a path may have, up to 1000
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1000))]
    k: u32,
    /// Hot are the methods that together make so many percent of all
    #[arg(long, value_name = "PERCENT", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=100))]
    hot: u32,
    /// Only paths that make at least so many percent of their method
    #[arg(long, value_name = "PERCENT", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=100))]
    similar: u32,
    /// How many methods; 0: all that are hot
    #[arg(long, default_value_t = 10)]
    top: usize,
    /// What counts [default: calls of a recording, events of a log]
    #[arg(long, value_enum)]
    value: Option<ValueArg>,
    /// Paths lead to the allocated types instead of the methods that allocate
    #[arg(long)]
    types: bool,
    #[command(flatten)]
    classes: ClassFilterArgs,
    /// Callers by the line that they call from
    #[arg(long)]
    lines: bool,
    #[arg(long, value_enum, default_value_t = ContextsFormat::Table)]
    format: ContextsFormat,
    /// One JSON object
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Instead: how large call graph, calling context tree, k-slab forest and k-calling context
    /// forest of each file are
    #[arg(long)]
    tables: bool,
    /// With --tables: charts as SVG into this folder
    #[arg(long, value_name = "DIR", requires = "tables")]
    plot: Option<PathBuf>,
    /// With --tables: what static bursting hears of recorded calls, in time or in calls (200/2000)
    #[arg(
        long,
        value_name = "LENGTH/INTERVAL",
        default_value = "0.2ms/2ms",
        requires = "tables"
    )]
    burst: Bursts,
    /// With --tables: how many recorded steps are looked at; they take 32 bytes of memory each
    #[arg(
        long,
        value_name = "STEPS",
        default_value_t = 40_000_000,
        requires = "tables"
    )]
    steps: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum ValueArg {
    Calls,
    Events,
    Bytes,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ContextsFormat {
    Table,
    /// `a.b.C.hot;a.b.C.caller 24`: hot method first, for inverted flame graphs
    Collapsed,
}

pub fn run(args: &ContextsArgs) -> Result<CommandStatus, CommandError> {
    match (&args.files[..], args.tables) {
        (files, true) => tables::run(args, files),
        ([file], false) => answer::run(args, &ContextsInput::open(file, &args.classes)?),
        _ => Err(CommandError::Usage("several files are for --tables".into())),
    }
}

impl ContextsArgs {
    /// What counts, and where.
    fn measure_and_leaf(
        &self,
        input: &ContextsInput,
    ) -> Result<(CallMeasure, EventLeaf), CommandError> {
        let count = match (self.value, input.is_recording()) {
            (None | Some(ValueArg::Calls), true) => CallMeasure::Calls,
            (Some(ValueArg::Bytes), true) => {
                return Err(CommandError::Usage("a recording has no bytes".into()));
            }
            (Some(ValueArg::Calls), false) => {
                return Err(CommandError::Usage(
                    "a log has events, calls are in recordings".into(),
                ));
            }
            (Some(ValueArg::Bytes), false) => CallMeasure::Bytes,
            _ => CallMeasure::Events,
        };
        let origin = match self.types {
            true => EventLeaf::Type,
            false => EventLeaf::Method,
        };
        if (count, origin) == (CallMeasure::Calls, EventLeaf::Type) {
            let what = "--types is for events: --value events";
            return Err(CommandError::Usage(what.into()));
        }
        Ok((count, origin))
    }
}
