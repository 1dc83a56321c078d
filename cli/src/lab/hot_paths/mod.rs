//! `lucce lab hot-paths`: prints the short call paths to the hot methods.
//!
//! Reading order: `input` (calls of a log or recording), `paths` (hot routines and their k-calling contexts), `answer`
//! (output), `program_tables`, `tables`, `figures` and `charts` (the paper's tables and figures).

mod input;

mod answer;
mod paths;
mod program_tables;

mod charts;
mod figures;
mod tables;

use std::path::PathBuf;

use clap::ValueEnum;
use lucce_callfeed::{CallMeasure, EventLeaf};
use lucce_kcontexts::BurstIntervals;

use crate::classes::ClassFilterArgs;
use crate::{CommandError, CommandStatus};
use input::HotPathsInput;

/// Print short call paths to the hot methods.
///
/// The paths are k-calling contexts: a method with its last k callers, however deep the stack is. They come from a log's events or
/// from recorded calls.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce lab hot-paths run-1234.lucce --k 10 --hot 90
  lucce lab hot-paths run-1234.lucce --format collapsed --types > inverted.collapsed
  lucce lab hot-paths --tables --plot charts run-1234.calls run-1235.calls")]
pub struct HotPathsArgs {
    /// Logs or recordings of calls; several with --tables only
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Maximum number of calls per path, up to 1000
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1000))]
    k: u32,
    /// Percentage of the whole that hot methods make together
    #[arg(long, value_name = "PERCENT", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=100))]
    hot: u32,
    /// Minimum percentage of its method that a path makes
    #[arg(long, value_name = "PERCENT", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=100))]
    similar: u32,
    /// Maximum number of methods; 0: all hot methods
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Sum up this amount [default: calls of a recording, count of a log]
    #[arg(long, value_name = "AMOUNT", value_enum)]
    measure: Option<PathMeasureArg>,
    /// Print paths to allocated types instead of methods
    #[arg(long)]
    types: bool,
    #[command(flatten)]
    classes: ClassFilterArgs,
    /// Distinguish callers by line
    #[arg(long)]
    lines: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = PathsFormat::Table)]
    format: PathsFormat,
    /// Print one JSON object
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Print the sizes of each file's call graph, calling context tree, k-slab forest and k-calling context forest instead
    #[arg(long)]
    tables: bool,
    /// With --tables: also draw charts as SVG in this folder
    #[arg(long, value_name = "FOLDER", requires = "tables")]
    plot: Option<PathBuf>,
    /// With --tables: simulate static bursting with bursts of this length and interval, in time or in calls (200/2000)
    #[arg(
        long,
        value_name = "LENGTH/INTERVAL",
        default_value = "0.2ms/2ms",
        requires = "tables"
    )]
    burst: BurstIntervals,
    /// With --tables: maximum number of recorded steps, each of which takes 32 bytes of memory
    #[arg(
        long,
        value_name = "N",
        default_value_t = 40_000_000,
        requires = "tables"
    )]
    steps: u64,
}

/// What paths are weighed by.
#[derive(Clone, Copy, ValueEnum)]
enum PathMeasureArg {
    /// Number of calls (recordings only)
    Calls,
    /// Number of events
    Count,
    /// Sum of the events' values: bytes, nanoseconds, … (logs only)
    Value,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PathsFormat {
    /// Indented table, callers below each method
    Table,
    /// `a.b.C.hot;a.b.C.caller 24`: hot method first, for inverted flame graphs
    Collapsed,
}

pub fn run(args: &HotPathsArgs) -> Result<CommandStatus, CommandError> {
    match (&args.files[..], args.tables) {
        (files, true) => tables::run(args, files),
        ([file], false) => answer::run(args, &HotPathsInput::open(file, &args.classes)?),
        _ => Err(CommandError::Usage("several files are for --tables".into())),
    }
}

impl HotPathsArgs {
    /// The measure, and the innermost call.
    fn measure_and_leaf(
        &self,
        input: &HotPathsInput,
    ) -> Result<(CallMeasure, EventLeaf), CommandError> {
        let count = match (self.measure, input.is_recording()) {
            (None | Some(PathMeasureArg::Calls), true) => CallMeasure::Calls,
            (Some(PathMeasureArg::Value), true) => {
                return Err(CommandError::Usage("a recording has no values".into()));
            }
            (Some(PathMeasureArg::Calls), false) => {
                return Err(CommandError::Usage(
                    "a log has events, calls are in recordings".into(),
                ));
            }
            (Some(PathMeasureArg::Value), false) => CallMeasure::Value,
            _ => CallMeasure::Events,
        };
        let origin = match self.types {
            true => EventLeaf::Type,
            false => EventLeaf::Method,
        };
        if (count, origin) == (CallMeasure::Calls, EventLeaf::Type) {
            let what = "--types is for events: --measure count";
            return Err(CommandError::Usage(what.into()));
        }
        Ok((count, origin))
    }
}
