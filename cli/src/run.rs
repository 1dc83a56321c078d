//! `lucce run`: starts Java with the agent that is installed with this program.

use std::convert::Infallible;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use lucce_options::StartMode;
use lucce_options::placeholders::{Placeholder, expand_placeholders};

use super::output::is_lucce_file;
use super::recording_args::{RecordingArgs, options_text};
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
  lucce run --events alloc --out run-%p.lucce java -jar app.jar
  lucce run --opt only=com.acme.Server -- bash -c './start.sh --port 8080'")]
pub struct RunArgs {
    #[command(flatten)]
    recording: RecordingArgs,
    /// Command to run, and its arguments; options of `run` stand before it
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
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
/// starts may have another, so a given path of the log is then absolute.
fn format_agent_options(args: &RunArgs, is_java: bool) -> Result<String, CommandError> {
    let mut options = args.recording.parse_options(StartMode::WithJvm)?;
    if args.recording.names_log() {
        check_log_path(&options.out)?;
        if !is_java {
            options.out = std::path::absolute(&options.out)?;
        }
    }
    let text = options_text(&options, StartMode::WithJvm)?;
    Ok(match text.is_empty() {
        true => text,
        false => format!("={text}"),
    })
}

/// Checks that the agent can create the log: a run without it would be in vain. Placeholders are replaced as the agent
/// does it, with this process's id, which is also the id of a JVM.
fn check_log_path(out: &Path) -> Result<(), CommandError> {
    let refused =
        |path: &Path, why: String| usage_error(format!("cannot write {}: {why}", path.display()));
    let text = out.to_string_lossy();
    let resolve = |placeholder: Placeholder<'_>| match placeholder {
        Placeholder::ProcessId => Ok(std::process::id().to_string()),
        Placeholder::StartTime => Ok("0".to_owned()),
        Placeholder::Variable(name) => {
            env::var(name).map_err(|_| format!("the environment has no {name}"))
        }
    };
    let path = expand_placeholders("out", &text, resolve);
    let path = PathBuf::from(path.map_err(|error| usage_error(error.to_string()))?);
    match path.metadata() {
        Ok(found) if !found.is_file() => return Err(refused(&path, "not an ordinary file".into())),
        // The agent gives the new log a number, or refuses a file that is no log.
        Ok(found) if found.len() > 0 && !is_lucce_file(&path) => {
            let why = "there is a file that is no log; it stays as it is";
            return Err(refused(&path, why.into()));
        }
        _ => {}
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let probe = folder.join(format!(".lucce-{}", std::process::id()));
    match File::create_new(&probe).and_then(|_| fs::remove_file(&probe)) {
        Ok(()) => Ok(()),
        Err(error) => Err(refused(&path, error.to_string())),
    }
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
