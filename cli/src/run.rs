//! `lucce run`: starts Java with the agent that is installed with this program.

use std::convert::Infallible;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{CommandError, CommandStatus};

const AGENT: &str = "liblucce.so";
/// The command that gets the agent as an argument. Other programs pass it on to their JVMs by an environment variable.
const JAVA: &str = "java";
/// The variable that every JVM reads.
const FOR_ALL: &str = "JAVA_TOOL_OPTIONS";

/// Run a program under the agent; the exit code is the program's.
///
/// Commands other than `java` get the agent by JAVA_TOOL_OPTIONS, so each JVM writes its own log;
/// `--opt only=MAIN_CLASS` records some of them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce run --events alloc --out run-%p.lucce -- java -jar app.jar
  lucce run --opt only=com.acme.Server -- bash -c './start.sh --port 8080'")]
pub struct RunArgs {
    #[command(flatten)]
    recording: RecordingArgs,
    /// Command to run, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What the agent records, and where to.
#[derive(clap::Args)]
pub struct RecordingArgs {
    /// Kinds of events to record, joined by `+`: alloc, lock, exception, io, thread, leak, call or none; some take a value
    /// (leak=16k). docs/reference/agent-options.md describes them [default: alloc]
    #[arg(long, value_name = "EVENTS")]
    pub events: Option<String>,
    /// Write the log to this file; %p is the process id, %t the time [default: lucce-%p-%t.lucce]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<OsString>,
    /// Set an option of the agent; repeatable
    #[arg(long = "opt", value_name = "KEY=VALUE", value_parser = key_value)]
    pub opts: Vec<String>,
}

pub fn key_value(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, _)) if !key.is_empty() => Ok(text.to_owned()),
        _ => Err("must be KEY=VALUE".to_owned()),
    }
}

pub fn run(args: &RunArgs) -> Result<CommandStatus, CommandError> {
    let (program, rest) = args
        .command
        .split_first()
        .ok_or_else(|| usage_error("no command"))?;
    let mut agent = OsString::from("-agentpath:");
    agent.push(agent_path()?);
    let is_java = Path::new(program).file_name() == Some(OsStr::new(JAVA));
    agent.push(format_agent_options(args, is_java)?);
    let mut command = Command::new(program);
    match is_java {
        true => command.arg(agent),
        false => command.env(FOR_ALL, extend_tool_options(&agent)?),
    };
    let Err(error) = exec_program(command.args(rest));
    Err(usage_error(format!(
        "cannot start {}: {error}",
        program.display()
    )))
}

/// The variable's old value, followed by the agent. The JVM splits the value at spaces and honors quotes.
fn extend_tool_options(agent: &OsStr) -> Result<OsString, CommandError> {
    let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'');
    let bytes = agent.as_encoded_bytes();
    let quote = match (
        bytes.iter().any(is_quote),
        bytes.iter().any(u8::is_ascii_whitespace),
    ) {
        (true, true) => {
            return Err(usage_error(format!(
                "{FOR_ALL} cannot hold quotes and spaces: {}",
                agent.display()
            )));
        }
        (_, true) => "\"",
        _ => "",
    };
    let mut all = env::var_os(FOR_ALL).unwrap_or_default();
    if !all.is_empty() {
        all.push(" ");
    }
    for part in [OsStr::new(quote), agent, OsStr::new(quote)] {
        all.push(part);
    }
    Ok(all)
}

/// Replaces this process by the program: signals, process id and exit code are its own.
fn exec_program(command: &mut Command) -> Result<Infallible, io::Error> {
    Err(command.exec())
}

/// The agent's options as `=key=value,…`, or nothing. `is_java`: the JVM has this working directory. A JVM that a script
/// starts may have another, so the log's path is then absolute.
fn format_agent_options(args: &RunArgs, is_java: bool) -> Result<OsString, CommandError> {
    let mut all: Vec<OsString> = Vec::new();
    let place = |out: &OsStr| match is_java {
        true => Ok(out.to_owned()),
        false => std::path::absolute(out).map(PathBuf::into_os_string),
    };
    let mut add = |key: &str, value: &OsStr| {
        let mut option = OsString::from(key);
        option.push(value);
        all.push(option);
    };
    let recording = &args.recording;
    recording
        .events
        .iter()
        .for_each(|events| add("events=", events.as_ref()));
    if let Some(out) = &recording.out {
        add("out=", &place(out)?);
    }
    for option in &recording.opts {
        match option.strip_prefix("out=") {
            Some(out) => add("out=", &place(out.as_ref())?),
            None => add("", option.as_ref()),
        }
    }
    if let Some(option) = all
        .iter()
        .find(|option| option.as_encoded_bytes().contains(&b','))
    {
        let option = option.display();
        return Err(usage_error(format!(
            "the agent's options cannot hold a comma: {option}"
        )));
    }
    let joined = all.join(OsStr::new(","));
    let mut options = OsString::from(if joined.is_empty() { "" } else { "=" });
    options.push(joined);
    Ok(options)
}

pub fn agent_path() -> Result<PathBuf, CommandError> {
    let agent = agent_beside()?;
    if agent.is_file() {
        return Ok(agent);
    }
    let agent = agent.display();
    Err(usage_error(format!(
        "{agent} is missing: build it with `cargo build --release`"
    )))
}

/// The path of the agent, if it exists.
pub fn agent_beside() -> Result<PathBuf, CommandError> {
    let program = env::current_exe().and_then(|program| program.canonicalize());
    let program =
        program.map_err(|e| usage_error(format!("cannot find this program's directory: {e}")))?;
    let beside = program.with_file_name(AGENT);
    // The installed layout: the command in `bin`, the agent in `lib`.
    let installed = program.parent().and_then(|bin| bin.parent());
    let installed = installed.map(|root| root.join("lib").join(AGENT));
    match installed.filter(|agent| !beside.is_file() && agent.is_file()) {
        Some(agent) => Ok(agent),
        None => Ok(beside),
    }
}

fn usage_error(message: impl Into<String>) -> CommandError {
    CommandError::Usage(message.into())
}
