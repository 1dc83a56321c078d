//! One file per verb; how verbs end is the same for all.
//!
//! | exit code | means |
//! |---|---|
//! | 0 | fine |
//! | 1 | a finding: mismatch, leak, growth beyond what a gate allows, or an id that was asked for and is not known |
//! | 2 | it could not be done: wrong usage; a file that cannot be read or written; a JVM, an agent or a kind of events that is not there, or that refuses; runs that cannot tell what was asked (`leaks`, `gate`, `bench`) |
//! | 3 | damaged or foreign log; what could be read was printed |

mod output;
mod process;
mod progress;

mod amounts;
mod annotate;
mod attach;
mod bench;
mod check;
mod chrome;
mod classes;
mod compare;
mod completions;
mod contexts;
mod ctl;
mod decode;
mod diff;
mod export;
mod fleet;
mod gate;
mod holders;
mod leaks;
mod list;
mod man;
mod push;
mod record;
mod replay;
mod report;
mod run;
mod serve;
mod stats;
mod stream;
mod style;
mod symbols;
mod tag_filter;
mod target;
mod thread_start;
mod threshold;
mod time_window;
mod top;
mod version;
mod view;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use lucce_decoder::escape::EscapedLine;
use lucce_decoder::{
    ContextList, KindTotal, LogDamage, LogSource, OpenError, Profile, StackMeasure,
};

use progress::ProgressMeter;

/// Calling contexts of Java programs: run them under the agent, read its logs.
#[derive(Parser)]
#[command(
    name = "lucce",
    version,
    long_version = version::long_version(),
    after_help = "Exit codes:
  0  fine
  1  a finding: a mismatch, a leak, growth beyond what a gate allows, a number that is not known
  2  it could not be done: wrong usage; a file that cannot be read or written; a JVM, an agent or a kind of
     events that is not there, or that refuses; a run that cannot tell what was asked
  3  a damaged or foreign log; what could be read was printed"
)]
struct CliArgs {
    #[command(subcommand)]
    verb: CliCommand,
}

#[derive(Subcommand)]
enum CliCommand {
    Run(run::RunArgs),
    List(list::ListArgs),
    Record(record::RecordArgs),
    Attach(attach::AttachArgs),
    Top(top::TopArgs),
    Serve(serve::ServeArgs),
    Push(push::PushArgs),
    Ctl(ctl::CtlArgs),
    Bench(bench::BenchArgs),
    View(view::ViewArgs),
    Diff(diff::DiffArgs),
    Gate(gate::GateArgs),
    Report(report::ReportArgs),
    Decode(decode::DecodeArgs),
    Annotate(annotate::AnnotateArgs),
    Symbols(symbols::SymbolsArgs),
    Stats(stats::StatsArgs),
    Check(check::CheckArgs),
    Export(export::ExportArgs),
    Fleet(fleet::FleetCommandArgs),
    Contexts(contexts::ContextsArgs),
    Leaks(leaks::LeaksArgs),
    Replay(replay::ReplayArgs),
    Stream(stream::StreamArgs),
    Man(man::ManArgs),
    Completions(completions::CompletionsArgs),
}

/// How a verb ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CommandStatus {
    Fine = 0,
    Finding = 1,
    Unusable = 2,
    Damaged = 3,
}

/// Why a verb could not do anything.
enum CommandError {
    Open(PathBuf, OpenError),
    Output(io::Error),
    Usage(String),
    /// What was asked for is not there; it may be what the damage took, which was told.
    Absent(String, CommandStatus),
    /// The agent in a process does not do it, or there is none.
    Refused(String, CommandStatus),
}

impl From<io::Error> for CommandError {
    fn from(e: io::Error) -> Self {
        CommandError::Output(e)
    }
}

pub fn main() -> ExitCode {
    let ended = match CliArgs::parse().verb {
        CliCommand::Run(args) => run::run(&args),
        CliCommand::List(args) => list::run(&args),
        CliCommand::Record(args) => record::run(&args),
        CliCommand::Attach(args) => attach::run(&args),
        CliCommand::Top(args) => top::run(&args),
        CliCommand::Serve(args) => serve::run(&args),
        CliCommand::Push(args) => push::run(&args),
        CliCommand::Ctl(args) => ctl::run(&args),
        CliCommand::Bench(args) => bench::run(&args),
        CliCommand::View(args) => view::run(&args),
        CliCommand::Diff(args) => diff::run(&args),
        CliCommand::Gate(args) => gate::run(&args),
        CliCommand::Report(args) => report::run(&args),
        CliCommand::Decode(args) => decode::run(&args),
        CliCommand::Annotate(args) => annotate::run(&args),
        CliCommand::Symbols(args) => symbols::run(&args),
        CliCommand::Stats(args) => stats::run(&args),
        CliCommand::Check(args) => check::run(&args),
        CliCommand::Export(args) => export::run(&args),
        CliCommand::Fleet(args) => fleet::run(&args),
        CliCommand::Contexts(args) => contexts::run(&args),
        CliCommand::Leaks(args) => leaks::run(&args),
        CliCommand::Replay(args) => replay::run(&args),
        CliCommand::Stream(args) => stream::run(&args),
        CliCommand::Man(args) => man::run(&args),
        CliCommand::Completions(args) => completions::run(&args),
    };
    ExitCode::from(ended.unwrap_or_else(CommandError::report_to_stderr) as u8)
}

impl CommandError {
    /// Says it.
    fn report_to_stderr(self) -> CommandStatus {
        let (message, end) = match self {
            // The reader of a pipe has seen enough.
            CommandError::Output(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                return CommandStatus::Fine;
            }
            CommandError::Output(e) => (format!("cannot write: {e}"), CommandStatus::Unusable),
            CommandError::Usage(message) => (message, CommandStatus::Unusable),
            CommandError::Absent(message, end) | CommandError::Refused(message, end) => {
                (message, end)
            }
            CommandError::Open(path, e @ OpenError::Io(_)) => {
                (prefix_path(&path, e), CommandStatus::Unusable)
            }
            CommandError::Open(path, e) => (prefix_path(&path, e), CommandStatus::Damaged),
        };
        print_diagnostic(message);
        end
    }
}

fn prefix_path(path: &Path, what: impl std::fmt::Display) -> String {
    format!("{}: {what}", path.display())
}

/// One line on standard error: names in it are escaped.
fn print_diagnostic(message: impl std::fmt::Display) {
    use io::Write;
    // If this fails there is no other stream to say it on.
    let _ = writeln!(io::stderr(), "lucce: {}", EscapedLine(&message.to_string()));
}

fn open_profile(path: &Path) -> Result<Profile, CommandError> {
    let failed = |e| CommandError::Open(path.to_owned(), e);
    let mut source = LogSource::open(path).map_err(failed)?;
    let bar = ProgressMeter::new("reading", source.log_size());
    source
        .read_profile(&|bytes| bar.tick(bytes))
        .map_err(failed)
}

/// What contexts are compared by.
#[derive(Clone, Copy, ValueEnum)]
enum MeasureArg {
    /// The sum of the events' values: bytes, nanoseconds, …
    #[value(name = "bytes", aliases = ["ns", "value"])]
    Sum,
    Count,
}

impl MeasureArg {
    fn to_measure(self) -> StackMeasure {
        match self {
            MeasureArg::Sum => StackMeasure::Sum,
            MeasureArg::Count => StackMeasure::Count,
        }
    }

    /// `sum`: of all values of the kind.
    fn choose_measure(asked: Option<MeasureArg>, kind: &KindTotal, sum: u64) -> StackMeasure {
        match asked {
            Some(asked) => asked.to_measure(),
            None if kind.unit.is_empty() && sum == 0 => StackMeasure::Count,
            None => StackMeasure::Sum,
        }
    }
}

/// The kind that is asked for by `--event`, or else the one that is shown first. `end`: what was found damaged
/// before.
fn find_kind(
    path: &Path,
    profile: &Profile,
    asked: Option<&str>,
    end: CommandStatus,
) -> Result<KindTotal, CommandError> {
    let Some(asked) = asked else {
        return Ok(profile.main_kind());
    };
    let kinds = profile.counted_kinds();
    let known = kinds.iter().find(|kind| kind.name == asked);
    known.cloned().ok_or_else(|| {
        let names: Vec<_> = kinds.iter().map(|kind| kind.name.as_str()).collect();
        let names = match names.is_empty() {
            true => "no events at all".to_owned(),
            false => names.join(", "),
        };
        let end = report_damage(
            path,
            profile.damage.as_ref(),
            end.max(CommandStatus::Unusable),
        );
        let message = format_args!("no events of kind {asked:?}; there are {names}");
        CommandError::Absent(prefix_path(path, message), end)
    })
}

/// Names the damage, if there is any, and says how a verb that shows all contexts ends.
fn report_contexts_damage(
    path: &Path,
    contexts: &ContextList,
    end: CommandStatus,
) -> CommandStatus {
    let unknown = contexts.unknown.len();
    report_unknown_and_damage(path, unknown, contexts.damage.as_ref(), end)
}

/// `unknown`: how many numbers the log does not explain.
fn report_unknown_and_damage(
    path: &Path,
    unknown: usize,
    damage: Option<&LogDamage>,
    end: CommandStatus,
) -> CommandStatus {
    if unknown > 0 {
        let count = output::format_plural(unknown as u64, "number");
        print_diagnostic(prefix_path(
            path,
            format_args!("left out {count} that the log does not explain"),
        ));
    }
    report_damage(path, damage, end)
}

/// Names the damage, if there is any, and says how the verb ends.
fn report_damage(path: &Path, damage: Option<&LogDamage>, end: CommandStatus) -> CommandStatus {
    match damage {
        Some(damage) => {
            print_diagnostic(prefix_path(path, damage));
            CommandStatus::Damaged
        }
        None => end,
    }
}
