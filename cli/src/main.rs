//! The `lucce` command: its commands, one file for each, and their exit codes.

mod agent_path;
mod agent_status;
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
mod ctl;
mod decode;
mod diff;
mod explain;
mod export;
mod fact_tables;
mod fleet;
mod frame_args;
mod gate;
mod holders;
mod init;
mod lab;
mod leaks;
mod list;
mod man;
mod open;
mod options;
mod otlp;
mod push;
mod record;
mod recording_args;
mod reference;
mod report;
mod run;
mod run_interval;
mod selection;
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

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use lucce_command::exit_codes::{EXIT_CODE_NOTES, exit_codes_help};
use lucce_command::{CommandStatus, is_closed_pipe, print_message};
use lucce_decoder::{ContextList, KindTotal, LogDamage, LogSource, Measure, OpenError, Profile};
use lucce_options::StartMode;

use progress::ProgressMeter;

/// Record calling contexts of Java programs with an agent, and read its logs.
#[derive(Parser)]
#[command(
    name = "lucce",
    version,
    long_version = version::long_version(),
    after_help = exit_codes_help(),
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
    Otlp(otlp::OtlpArgs),
    Push(push::PushArgs),
    Ctl(ctl::CtlArgs),
    Options(options::OptionsArgs),
    Bench(bench::BenchArgs),
    Explain(explain::ExplainArgs),
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
    Lab(lab::LabArgs),
    Leaks(leaks::LeaksArgs),
    Open(open::OpenArgs),
    Init(init::InitArgs),
    Stream(stream::StreamArgs),
    Man(man::ManArgs),
    Completions(completions::CompletionsArgs),
}

/// The headings of `lucce --help`, and the commands below each.
const COMMAND_GROUPS: [(&str, &[&str]); 7] = [
    (
        "Record",
        &["run", "list", "record", "attach", "ctl", "options"],
    ),
    (
        "Look",
        &[
            "explain", "report", "view", "top", "serve", "stream", "decode", "annotate", "symbols",
            "stats", "check", "export", "otlp",
        ],
    ),
    ("Compare", &["diff", "gate", "bench"]),
    ("Leaks", &["leaks", "open"]),
    ("Fleet", &["fleet", "push"]),
    ("Lab", &["lab"]),
    ("Setup", &["init", "man", "completions"]),
];

/// The definition of the command line: its help lists the commands under headings.
fn command() -> Command {
    let command = RECORDING_COMMANDS
        .iter()
        .fold(CliArgs::command(), |command, (name, mode)| {
            command.mut_subcommand(name, |own| add_option_list(own, *mode))
        });
    let command = EXIT_CODE_NOTES.iter().fold(command, |command, note| {
        command.mut_subcommand(note.command, |own| {
            append_help(own, &format!("Exit codes: {}", note.note))
        })
    });
    let groups = format_command_groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// The commands that start the agent, and how.
const RECORDING_COMMANDS: [(&str, StartMode); 3] = [
    ("run", StartMode::WithJvm),
    ("attach", StartMode::Attached),
    ("record", StartMode::Attached),
];

/// Adds the options of the agent to the long help of a command.
fn add_option_list(command: Command, mode: StartMode) -> Command {
    let list = lucce_options::reference::option_list(Some(mode));
    let examples = help_end(&command);
    command.after_long_help(format!(
        "{examples}\n\nOptions of the agent, for --opt KEY=VALUE (`lucce options NAME` says more):\n\n{list}"
    ))
}

/// Adds a paragraph to the end of the short and the long help.
fn append_help(command: Command, paragraph: &str) -> Command {
    let short = format!("{}\n\n{paragraph}", help_end(&command));
    let long = command.get_after_long_help().map(ToString::to_string);
    let long = long.map(|long| format!("{}\n\n{paragraph}", long.trim_end()));
    let command = command.after_help(short);
    match long {
        Some(long) => command.after_long_help(long),
        None => command,
    }
}

/// The text below a command's options.
fn help_end(command: &Command) -> String {
    let end = command.get_after_help();
    end.map(ToString::to_string).unwrap_or_default()
}

/// Each heading, and its commands with their summaries.
fn format_command_groups(command: &Command) -> String {
    let longest = COMMAND_GROUPS.iter().flat_map(|(_, names)| *names);
    let width = longest.map(|name| name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (heading, names) in COMMAND_GROUPS {
        text.push_str(&format!("\n{heading}:\n"));
        for name in names {
            let about = command
                .find_subcommand(name)
                .and_then(|command| command.get_about());
            let about = about.map_or_else(String::new, ToString::to_string);
            text.push_str(&format!("  {name:width$}  {about}\n"));
        }
    }
    text
}

/// The error of a command that could not do anything.
enum CommandError {
    Open(PathBuf, OpenError),
    Output(io::Error),
    Usage(String),
    /// The requested data is absent; it may be in the damaged part, which was reported.
    Absent(String, CommandStatus),
    /// The agent refuses, or there is none.
    Refused(String, CommandStatus),
}

impl From<io::Error> for CommandError {
    fn from(e: io::Error) -> Self {
        CommandError::Output(e)
    }
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    let args = CliArgs::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let ended = match args.verb {
        CliCommand::Run(args) => run::run(&args),
        CliCommand::List(args) => list::run(&args),
        CliCommand::Record(args) => record::run(&args),
        CliCommand::Attach(args) => attach::run(&args),
        CliCommand::Top(args) => top::run(&args),
        CliCommand::Serve(args) => serve::run(&args),
        CliCommand::Otlp(args) => otlp::run(&args),
        CliCommand::Push(args) => push::run(&args),
        CliCommand::Ctl(args) => ctl::run(&args),
        CliCommand::Options(args) => options::run(&args),
        CliCommand::Bench(args) => bench::run(&args),
        CliCommand::Explain(args) => explain::run(&args),
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
        CliCommand::Lab(args) => lab::run(&args),
        CliCommand::Leaks(args) => leaks::run(&args),
        CliCommand::Open(args) => open::run(&args),
        CliCommand::Init(args) => init::run(&args),
        CliCommand::Stream(args) => stream::run(&args),
        CliCommand::Man(args) => man::run(&args),
        CliCommand::Completions(args) => completions::run(&args),
    };
    ended.unwrap_or_else(CommandError::report_to_stderr).into()
}

impl CommandError {
    /// Prints the error.
    fn report_to_stderr(self) -> CommandStatus {
        let (message, end) = match self {
            // The reader of the pipe has closed it.
            CommandError::Output(e) if is_closed_pipe(&e) => {
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

/// Prints one line on standard error; names in it are escaped.
fn print_diagnostic(message: impl std::fmt::Display) {
    print_message("lucce", message);
}

fn open_profile(path: &Path) -> Result<Profile, CommandError> {
    let failed = |e| CommandError::Open(path.to_owned(), e);
    let mut source = LogSource::open(path).map_err(failed)?;
    let bar = ProgressMeter::new("reading", source.log_size());
    source
        .read_profile(&|bytes| bar.tick(bytes))
        .map_err(failed)
}

/// What rows are sorted by.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortArg {
    /// Sum of the events' values: bytes, nanoseconds, …
    Value,
    /// Number of events
    Count,
    /// Amount including callees (--by class, package, method or line)
    Total,
    /// Bytes that reached the heap (agent option events=alloc+heap; `report` only)
    Heap,
    /// Bytes that reached the old generation (agent option events=alloc+survive; `report` only)
    Survive,
}

impl SortArg {
    /// Refuses `total` where rows have no callees.
    fn check_total(sort: Option<SortArg>, has_callees: bool) -> Result<(), CommandError> {
        match sort == Some(SortArg::Total) && !has_callees {
            true => Err(CommandError::Usage(
                "--sort total needs rows that include callees: those of `report`, `diff` and `top` by class, package, method or line"
                    .into(),
            )),
            false => Ok(()),
        }
    }

    /// Refuses `heap` and `survive` where the log has no such samples, or rows have no column for them. `has_column`,
    /// `has_survival`: whether they have.
    fn check_heap(
        sort: Option<SortArg>,
        has_column: bool,
        has_survival: bool,
    ) -> Result<(), CommandError> {
        let (key, kind) = match sort {
            Some(SortArg::Heap) if !has_column => ("heap", "heap"),
            Some(SortArg::Survive) if !has_column || !has_survival => ("survive", "survive"),
            _ => return Ok(()),
        };
        Err(CommandError::Usage(format!(
            "--sort {key} needs allocations of a run with events=alloc+{kind}, in `report` without --tree and --stream"
        )))
    }

    /// The named amount; `None`: the kind's own.
    fn to_measure(self) -> Option<Measure> {
        match self {
            SortArg::Value => Some(Measure::Value),
            SortArg::Count => Some(Measure::Count),
            SortArg::Total | SortArg::Heap | SortArg::Survive => None,
        }
    }
}

/// Finds the kind of `--event`, else the kind that is shown first. `end`: the result of earlier damage.
fn find_kind(
    path: &Path,
    profile: &Profile,
    name: Option<&str>,
    end: CommandStatus,
) -> Result<KindTotal, CommandError> {
    let Some(name) = name else {
        return Ok(profile.main_kind());
    };
    let kinds = profile.counted_kinds();
    let kind = kinds.iter().find(|kind| kind.name == name);
    kind.cloned().ok_or_else(|| {
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
        let message = format_args!("no events of kind {name:?}; there are {names}");
        CommandError::Absent(prefix_path(path, message), end)
    })
}

/// Reports damage, if any, and returns the result of a command that shows all contexts.
fn report_contexts_damage(
    path: &Path,
    contexts: &ContextList,
    end: CommandStatus,
) -> CommandStatus {
    let unknown = contexts.unknown.len();
    report_unknown_and_damage(path, unknown, contexts.damage.as_ref(), end)
}

/// Reports unknown context ids and damage. `unknown`: number of context ids that the log does not explain.
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

/// Reports damage, if any, and returns the command's result.
fn report_damage(path: &Path, damage: Option<&LogDamage>, end: CommandStatus) -> CommandStatus {
    match damage {
        Some(damage) => {
            print_diagnostic(prefix_path(path, damage));
            CommandStatus::Damaged
        }
        None => end,
    }
}

#[cfg(test)]
mod cli_tests {
    use super::*;

    #[test]
    fn each_command_has_one_heading() {
        let mut listed: Vec<&str> = COMMAND_GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        listed.sort_unstable();
        let command = CliArgs::command();
        let mut commands: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        commands.sort_unstable();
        assert_eq!(listed, commands);
        let help = super::command().render_help().to_string();
        for (heading, _) in COMMAND_GROUPS {
            assert!(
                help.contains(&format!("\n{heading}:\n  ")),
                "{heading}: {help}"
            );
        }
    }

    /// Calls `check` with each argument of the command and of all commands below it.
    fn for_each_argument(command: &Command, check: &mut impl FnMut(&Command, &clap::Arg)) {
        command.get_arguments().for_each(|arg| check(command, arg));
        command
            .get_subcommands()
            .for_each(|own| for_each_argument(own, check));
    }

    #[test]
    fn each_argument_has_a_help_text_and_a_value_name() {
        let mut wrong = Vec::new();
        for_each_argument(&CliArgs::command(), &mut |command, arg| {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let name = arg.get_id().as_str();
            let values = arg.get_value_names().unwrap_or_default();
            let takes_values = arg.get_action().takes_values();
            if help.len() < 8 || help.ends_with('.') || !help.starts_with(char::is_uppercase) {
                wrong.push(format!("{} {name}: help {help:?}", command.get_name()));
            }
            if takes_values && (values.is_empty() || values.iter().any(|value| value.contains('_')))
            {
                wrong.push(format!(
                    "{} {name}: value names {values:?}",
                    command.get_name()
                ));
            }
        });
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
