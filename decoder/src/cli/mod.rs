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
mod human;
mod leaks;
mod list;
mod man;
mod push;
mod record;
mod replay;
mod report;
mod run;
mod serve;
mod started;
mod stats;
mod stream;
mod style;
mod symbols;
mod tagged;
mod target;
mod threshold;
mod top;
mod version;
mod view;
mod window;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use lucce_decoder::escape::Line;
use lucce_decoder::{Contexts, Damage, KindTotal, OpenError, Profile, Source, Value};

use progress::Bar;

/// Calling contexts of Java programs: run them under the agent, read its logs.
#[derive(Parser)]
#[command(
    name = "lucce",
    version,
    long_version = version::long(),
    after_help = "Exit codes:
  0  fine
  1  a finding: a mismatch, a leak, growth beyond what a gate allows, a number that is not known
  2  it could not be done: wrong usage; a file that cannot be read or written; a JVM, an agent or a kind of
     events that is not there, or that refuses; a run that cannot tell what was asked
  3  a damaged or foreign log; what could be read was printed"
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Run(run::Args),
    List(list::Args),
    Record(record::Args),
    Attach(attach::Args),
    Top(top::Args),
    Serve(serve::Args),
    Push(push::Args),
    Ctl(ctl::Args),
    Bench(bench::Args),
    View(view::Args),
    Diff(diff::Args),
    Gate(gate::Args),
    Report(report::Args),
    Decode(decode::Args),
    Annotate(annotate::Args),
    Symbols(symbols::Args),
    Stats(stats::Args),
    Check(check::Args),
    Export(export::Args),
    Fleet(fleet::Args),
    Contexts(contexts::Args),
    Leaks(leaks::Args),
    Replay(replay::Args),
    Stream(stream::Args),
    Man(man::Args),
    Completions(completions::Args),
}

/// How a verb ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Fine = 0,
    Finding = 1,
    Unusable = 2,
    Damaged = 3,
}

/// Why a verb could not do anything.
enum Failure {
    Open(PathBuf, OpenError),
    Output(io::Error),
    Usage(String),
    /// What was asked for is not there; it may be what the damage took, which was told.
    Absent(String, End),
    /// The agent in a process does not do it, or there is none.
    Refused(String, End),
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Failure::Output(e)
    }
}

pub fn main() -> ExitCode {
    let ended = match Cli::parse().verb {
        Verb::Run(args) => run::run(&args),
        Verb::List(args) => list::run(&args),
        Verb::Record(args) => record::run(&args),
        Verb::Attach(args) => attach::run(&args),
        Verb::Top(args) => top::run(&args),
        Verb::Serve(args) => serve::run(&args),
        Verb::Push(args) => push::run(&args),
        Verb::Ctl(args) => ctl::run(&args),
        Verb::Bench(args) => bench::run(&args),
        Verb::View(args) => view::run(&args),
        Verb::Diff(args) => diff::run(&args),
        Verb::Gate(args) => gate::run(&args),
        Verb::Report(args) => report::run(&args),
        Verb::Decode(args) => decode::run(&args),
        Verb::Annotate(args) => annotate::run(&args),
        Verb::Symbols(args) => symbols::run(&args),
        Verb::Stats(args) => stats::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Export(args) => export::run(&args),
        Verb::Fleet(args) => fleet::run(&args),
        Verb::Contexts(args) => contexts::run(&args),
        Verb::Leaks(args) => leaks::run(&args),
        Verb::Replay(args) => replay::run(&args),
        Verb::Stream(args) => stream::run(&args),
        Verb::Man(args) => man::run(&args),
        Verb::Completions(args) => completions::run(&args),
    };
    ExitCode::from(ended.unwrap_or_else(Failure::tell) as u8)
}

impl Failure {
    /// Says it.
    fn tell(self) -> End {
        let (message, end) = match self {
            // The reader of a pipe has seen enough.
            Failure::Output(e) if e.kind() == io::ErrorKind::BrokenPipe => return End::Fine,
            Failure::Output(e) => (format!("cannot write: {e}"), End::Unusable),
            Failure::Usage(message) => (message, End::Unusable),
            Failure::Absent(message, end) | Failure::Refused(message, end) => (message, end),
            Failure::Open(path, e @ OpenError::Io(_)) => (about(&path, e), End::Unusable),
            Failure::Open(path, e) => (about(&path, e), End::Damaged),
        };
        complain(message);
        end
    }
}

fn about(path: &Path, what: impl std::fmt::Display) -> String {
    format!("{}: {what}", path.display())
}

/// One line on standard error: names in it are escaped.
fn complain(message: impl std::fmt::Display) {
    use io::Write;
    // If this fails there is no other stream to say it on.
    let _ = writeln!(io::stderr(), "lucce: {}", Line(&message.to_string()));
}

fn open(path: &Path) -> Result<Profile, Failure> {
    let failed = |e| Failure::Open(path.to_owned(), e);
    let mut source = Source::open(path).map_err(failed)?;
    let bar = Bar::new("reading", source.size());
    source.profile(&|bytes| bar.tick(bytes)).map_err(failed)
}

/// What contexts are compared by.
#[derive(Clone, Copy, ValueEnum)]
enum Weigh {
    /// The sum of the events' values: bytes, nanoseconds, …
    #[value(name = "bytes", aliases = ["ns", "value"])]
    Sum,
    Count,
}

impl Weigh {
    fn value(self) -> Value {
        match self {
            Weigh::Sum => Value::Sum,
            Weigh::Count => Value::Count,
        }
    }

    /// `sum`: of all values of the kind.
    fn of(asked: Option<Weigh>, kind: &KindTotal, sum: u64) -> Value {
        match asked {
            Some(asked) => asked.value(),
            None if kind.unit.is_empty() && sum == 0 => Value::Count,
            None => Value::Sum,
        }
    }
}

/// The kind that is asked for by `--event`, or else the one that is shown first. `end`: what was found damaged
/// before.
fn kind(
    path: &Path,
    profile: &Profile,
    asked: Option<&str>,
    end: End,
) -> Result<KindTotal, Failure> {
    let Some(asked) = asked else {
        return Ok(profile.main_kind());
    };
    let kinds = profile.kinds();
    let known = kinds.iter().find(|kind| kind.name == asked);
    known.cloned().ok_or_else(|| {
        let names: Vec<_> = kinds.iter().map(|kind| kind.name.as_str()).collect();
        let names = match names.is_empty() {
            true => "no events at all".to_owned(),
            false => names.join(", "),
        };
        let end = ending(path, profile.damage.as_ref(), end.max(End::Unusable));
        let message = format_args!("no events of kind {asked:?}; there are {names}");
        Failure::Absent(about(path, message), end)
    })
}

/// Names the damage, if there is any, and says how a verb that shows all contexts ends.
fn ending_of_all(path: &Path, contexts: &Contexts, end: End) -> End {
    let unknown = contexts.unknown.len();
    ending_of(path, unknown, contexts.damage.as_ref(), end)
}

/// `unknown`: how many numbers the log does not explain.
fn ending_of(path: &Path, unknown: usize, damage: Option<&Damage>, end: End) -> End {
    if unknown > 0 {
        let count = output::plural(unknown as u64, "number");
        complain(about(
            path,
            format_args!("left out {count} that the log does not explain"),
        ));
    }
    ending(path, damage, end)
}

/// Names the damage, if there is any, and says how the verb ends.
fn ending(path: &Path, damage: Option<&Damage>, end: End) -> End {
    match damage {
        Some(damage) => {
            complain(about(path, damage));
            End::Damaged
        }
        None => end,
    }
}
