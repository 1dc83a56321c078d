//! `lucce ctl`: asks the agent in a running JVM.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use clap::Subcommand;
use lucce_control::{AskError, Command, ask};
use lucce_decoder::Stream;
use lucce_decoder::escape::Text;
use serde_json::Value;

use super::list::named;
use super::output::{grouped, json, stdout};
use super::{End, Failure, complain, holders, open};

/// Controls the agent in a running JVM of this user.
#[derive(clap::Args)]
#[command(after_help = "Example:
  lucce ctl 1234 stop                        count no more events; start counts again
  lucce ctl 1234 dump now.lucce              a copy of the log as it is now
  lucce ctl 1234 set events=none
  lucce ctl 1234 holders lucce:0123456789abcdef:0x1000040000043c
  lucce ctl 1234 status --json")]
pub struct Args {
    /// The JVM: its process id, or its main class or jar
    #[arg(value_name = "PID|NAME")]
    jvm: String,
    #[command(subcommand)]
    what: What,
    /// One JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum What {
    /// Counts events, after stop
    Start,
    /// Counts no more events; contexts are tracked as before
    Stop,
    /// What is counted, how much was, how large the log is
    Status,
    /// Writes the log to the disk, and the stream if there is one; with FILE, copies of them as they are now:
    /// that of the stream is FILE.events
    Dump { file: Option<PathBuf> },
    /// Changes which events are counted, of those that there are hooks for: events=alloc, events=none
    Set {
        #[arg(value_name = "events=LIST")]
        setting: String,
    },
    /// What keeps followed objects alive (agent option events=leak): the shortest paths from roots to some objects of a context
    Holders(holders::Args),
    /// Takes the agent's work out of a JVM that it was attached to
    Detach,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    let pid = named(&args.jvm)?;
    if let What::Holders(asked) = &args.what {
        return holders::run(pid, asked, args.json);
    }
    let command = args.what.command()?;
    let answer = ask(pid, &command)?;
    match args.what {
        What::Status => print(&with_entries(answer), args.json),
        _ => print(&answer, args.json),
    }
}

/// What only the files tell: how many events the stream has, and how many were counted only. Files that
/// this process cannot read are left as they are.
fn with_entries(answer: String) -> String {
    let Ok(mut status) = serde_json::from_str::<Value>(&answer) else {
        return answer;
    };
    let file = |key: &str| status[key]["file"].as_str().map(PathBuf::from);
    let (Some(log), Some(path)) = (file("log"), file("stream")) else {
        return answer;
    };
    let Ok(stream) = Stream::open(path) else {
        return answer;
    };
    let lost = match status["stream"]["full"] == true {
        true => open(&log).ok().map(|log| log.unstreamed(&stream)),
        false => Some(BTreeMap::new()),
    };
    status["stream"]["entries"] = stream.count().into();
    if let Some(lost) = lost {
        status["stream"]["lost"] = lost.values().sum::<u64>().into();
    }
    status.to_string()
}

/// The agent's answer.
pub fn print(answer: &str, as_json: bool) -> Result<End, Failure> {
    let Ok(answer) = serde_json::from_str::<Value>(answer) else {
        complain("the answer is foreign: it is no JSON");
        return Ok(End::Damaged);
    };
    let mut out = stdout();
    if as_json {
        json(&mut out, &answer)?;
    } else {
        show(&mut out, "", &answer)?;
    }
    out.flush()?;
    Ok(End::Fine)
}

/// Where the log of the agent in a process is, as the agent says.
pub fn log_of(pid: u32) -> Result<PathBuf, Failure> {
    let status = ask(pid, &Command::Status)?;
    let status = serde_json::from_str::<Value>(&status).unwrap_or_default();
    log_in(&status).ok_or_else(|| {
        Failure::Usage(format!(
            "the agent in process {pid} does not say where its log is"
        ))
    })
}

/// Where the log is, as the agent's status says.
pub fn log_in(status: &Value) -> Option<PathBuf> {
    status["log"]["file"].as_str().map(PathBuf::from)
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        let end = match error {
            AskError::Malformed(_) => End::Damaged,
            _ => End::Unusable,
        };
        Failure::Refused(error.to_string(), end)
    }
}

impl What {
    fn command(&self) -> Result<Command, Failure> {
        Ok(match self {
            What::Start => Command::Start,
            What::Stop => Command::Stop,
            What::Status => Command::Status,
            What::Dump { file: None } => Command::Dump(None),
            What::Dump { file: Some(file) } => Command::Dump(Some(absolute(file)?)),
            What::Set { setting } => Command::Set(setting.clone()),
            // Asked in two steps.
            What::Holders(_) => Command::Status,
            What::Detach => Command::Detach,
        })
    }
}

/// The JVM has a working directory of its own.
fn absolute(file: &PathBuf) -> Result<String, Failure> {
    let path = std::path::absolute(file)?;
    let text = path.into_os_string().into_string();
    text.map_err(|path| Failure::Usage(format!("{} is no UTF-8", path.display())))
}

/// Rows of keys and values; what lies deeper has both keys.
fn show(out: &mut impl Write, above: &str, value: &Value) -> std::io::Result<()> {
    for (key, value) in value.as_object().into_iter().flatten() {
        let key = Text(&key.replace('_', " ")).to_string();
        let key = format!("{above}{key}");
        if value.is_object() {
            show(out, &format!("{key} "), value)?;
        } else if key == "pid" {
            writeln!(out, "{key:<22} {value}")?;
        } else {
            writeln!(out, "{key:<22} {}", Text(&text(value)))?;
        }
    }
    Ok(())
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(list) if list.is_empty() => "none".to_owned(),
        Value::Array(list) => list.iter().map(text).collect::<Vec<_>>().join(" "),
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), grouped),
        other => other.to_string(),
    }
}
