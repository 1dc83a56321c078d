//! `lucce ctl`: sends requests to the agent in a running JVM.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use clap::Subcommand;
use lucce_control::{ControlCommand, ControlError, send_command};
use lucce_decoder::escape::EscapedText;
use lucce_decoder::{EventStream, count_unstreamed_events};
use lucce_options::EventSelection;
use serde_json::Value;

use super::list::resolve_pid;
use super::output::{grouped, lock_stdout, write_json};
use super::{CommandError, CommandStatus, holders, open_profile, print_diagnostic};

/// Control the agent in a running JVM of this user.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce ctl 1234 stop                        counts no more events; start counts again
  lucce ctl 1234 dump now.lucce              copies the log as it is now
  lucce ctl 1234 set events=none
  lucce ctl 1234 mark warm                   report --since warm counts from here on
  lucce ctl 1234 holders lucce:0123456789abcdef:0x1000040000043c
  lucce ctl 1234 status --json")]
pub struct CtlArgs {
    /// Process id of the JVM, its main class or jar, or the end of one
    #[arg(value_name = "JVM")]
    jvm: String,
    #[command(subcommand)]
    what: CtlCommand,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum CtlCommand {
    /// Count events again, after stop
    Start,
    /// Count no more events; contexts are still tracked
    Stop,
    /// Print what is counted, how much, and the log's size
    Status,
    /// Write the log and its stream to the disk, or copy them to FILE and FILE.events
    Dump {
        /// Write copies to this file, and to the file of this name with .events
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Change the counted events, within the kinds that have hooks: events=alloc, events=none
    Set {
        /// Kinds to count, joined by `+` or commas
        #[arg(value_name = "events=LIST")]
        events: String,
    },
    /// Write a mark into the log, for `--since NAME` and `--until NAME`
    Mark {
        /// Name of the mark; the last one of a name counts
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Count anew from here on, unless a command has `--since`
    Reset,
    /// Print the shortest paths from GC roots to followed objects of a context (agent option events=leak)
    Holders(holders::HoldersArgs),
    /// Detach the agent and close the log
    Detach,
}

pub fn run(args: &CtlArgs) -> Result<CommandStatus, CommandError> {
    let pid = resolve_pid(&args.jvm)?;
    if let CtlCommand::Holders(search) = &args.what {
        return holders::run(pid, search, args.json);
    }
    let command = args.what.to_command()?;
    let answer = send_command(pid, &command)?;
    match args.what {
        CtlCommand::Status => print_answer(&add_stream_entries(answer), args.json),
        _ => print_answer(&answer, args.json),
    }
}

/// Adds facts from the files: the number of events in the stream, and of events that were only counted. Skips files that
/// this process cannot read.
fn add_stream_entries(answer: String) -> String {
    let Ok(mut status) = serde_json::from_str::<Value>(&answer) else {
        return answer;
    };
    let file = |key: &str| status[key]["file"].as_str().map(PathBuf::from);
    let (Some(log), Some(path)) = (file("log"), file("stream")) else {
        return answer;
    };
    let Ok(stream) = EventStream::open(path) else {
        return answer;
    };
    let lost = match status["stream"]["full"] == true {
        true => open_profile(&log)
            .ok()
            .map(|log| count_unstreamed_events(&log, &stream)),
        false => Some(BTreeMap::new()),
    };
    status["stream"]["entries"] = stream.event_count().into();
    if let Some(lost) = lost {
        status["stream"]["lost"] = lost.values().sum::<u64>().into();
    }
    status.to_string()
}

fn parse_events_setting(text: &str) -> Result<EventSelection, String> {
    let list = text.strip_prefix("events=");
    let list = list.ok_or("only events can be set: events=alloc, events=none")?;
    EventSelection::parse(list).map_err(|error| error.to_string())
}

/// Prints the agent's answer.
pub fn print_answer(answer: &str, as_json: bool) -> Result<CommandStatus, CommandError> {
    let Ok(answer) = serde_json::from_str::<Value>(answer) else {
        print_diagnostic("the answer is foreign: it is no JSON");
        return Ok(CommandStatus::Damaged);
    };
    let mut out = lock_stdout();
    if as_json {
        write_json(&mut out, &answer)?;
    } else {
        write_rows(&mut out, "", &answer)?;
    }
    out.flush()?;
    Ok(CommandStatus::Fine)
}

impl From<ControlError> for CommandError {
    fn from(error: ControlError) -> Self {
        let end = match error {
            ControlError::Malformed(_) => CommandStatus::Damaged,
            _ => CommandStatus::Unusable,
        };
        CommandError::Refused(error.to_string(), end)
    }
}

impl CtlCommand {
    fn to_command(&self) -> Result<ControlCommand, CommandError> {
        Ok(match self {
            CtlCommand::Start => ControlCommand::Start,
            CtlCommand::Stop => ControlCommand::Stop,
            CtlCommand::Status => ControlCommand::Status,
            CtlCommand::Dump { file: None } => ControlCommand::Dump(None),
            CtlCommand::Dump { file: Some(file) } => {
                ControlCommand::Dump(Some(absolute_path(file)?))
            }
            CtlCommand::Set { events } => {
                let events = parse_events_setting(events).map_err(CommandError::Usage)?;
                ControlCommand::Set(format!("events={}", events.to_text()))
            }
            // `holders` sends two requests; this is the first.
            CtlCommand::Holders(_) => ControlCommand::Status,
            CtlCommand::Mark { name } => ControlCommand::Mark(name.clone()),
            CtlCommand::Reset => ControlCommand::Reset,
            CtlCommand::Detach => ControlCommand::Detach,
        })
    }
}

/// The absolute path, since the JVM has its own working directory.
fn absolute_path(file: &PathBuf) -> Result<String, CommandError> {
    let path = std::path::absolute(file)?;
    let text = path.into_os_string().into_string();
    text.map_err(|path| CommandError::Usage(format!("{} is no UTF-8", path.display())))
}

/// Writes rows of keys and values; nested values have both keys.
fn write_rows(out: &mut impl Write, above: &str, value: &Value) -> std::io::Result<()> {
    let entries = value.as_object().into_iter().flatten();
    for (key, value) in entries.filter(|(_, value)| !value.is_null()) {
        let key = EscapedText(&key.replace('_', " ")).to_string();
        let key = format!("{above}{key}");
        if value.is_object() {
            write_rows(out, &format!("{key} "), value)?;
        } else if key == "pid" {
            writeln!(out, "{key:<22} {value}")?;
        } else {
            writeln!(out, "{key:<22} {}", EscapedText(&value_text(value)))?;
        }
    }
    Ok(())
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(list) if list.is_empty() => "none".to_owned(),
        Value::Array(list) => list.iter().map(value_text).collect::<Vec<_>>().join(" "),
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), grouped),
        other => other.to_string(),
    }
}
