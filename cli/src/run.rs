//! `lucce run`: starts Java with the agent that is installed with this program.

use std::convert::Infallible;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::thread;
use std::time::Duration;

use lucce_control::stop_signal;
use lucce_options::placeholders::{Placeholder, expand_placeholders};
use lucce_options::{RecordingOptions, StartMode};

use super::agent_path::agent_path;
use super::output::is_lucce_file;
use super::recording_args::{RecordingArgs, options_text};
use super::{CommandError, CommandStatus, explain};

/// The command that gets the agent as an argument. Other programs pass it on to their JVMs by an environment variable.
const JAVA: &str = "java";
/// The variable that every JVM reads.
const FOR_ALL: &str = "JAVA_TOOL_OPTIONS";
/// Time between two checks of a program that is explained when it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The exit code of a program that a signal ended is this and the signal's number, as in shells.
const FIRST_SIGNAL_CODE: i32 = 128;

/// Run a program under the agent; the exit code is the program's.
///
/// Commands other than `java` get the agent by JAVA_TOOL_OPTIONS, so each JVM writes its own log;
/// `--opt only=MAIN_CLASS` records some of them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce run --events alloc --out run-%p.lucce java -jar app.jar
  lucce run --explain java -jar app.jar
  lucce run --opt only=com.acme.Server -- bash -c './start.sh --port 8080'")]
pub struct RunArgs {
    #[command(flatten)]
    recording: RecordingArgs,
    /// Run `lucce explain` at the end; without --events, record all kinds for it
    #[arg(long)]
    explain: bool,
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
    let options = parse_agent_options(args, is_java)?;
    agent.push(format_agent_options(&options)?);
    let mut command = Command::new(program);
    match is_java {
        true => command.arg(agent),
        false => command.env(FOR_ALL, extend_tool_options(&agent)?),
    };
    command.args(rest);
    if args.explain {
        return run_and_explain(&mut command, &options.out);
    }
    let Err(error) = exec_program(&mut command);
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

/// Starts the program, waits for its end, explains its log, and ends with the program's exit code.
fn run_and_explain(command: &mut Command, log: &Path) -> Result<CommandStatus, CommandError> {
    // The program gets the signals of the terminal, too; this process goes on to explain its log.
    stop_signal::handle_stop_signals()?;
    let child = command.spawn();
    let mut child = child.map_err(|error| {
        let program = command.get_program();
        usage_error(format!("cannot start {}: {error}", program.display()))
    })?;
    let mut is_stopped = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if stop_signal::is_stop_requested() && !is_stopped {
            is_stopped = true;
            // A signal to this process alone is meant for the program. Whether it can be sent, its end shows.
            let _ = Command::new("kill").arg(child.id().to_string()).status();
        }
        thread::sleep(POLL_INTERVAL);
    };
    explain::explain_ended_run(log)?;
    process::exit(
        status
            .code()
            .unwrap_or_else(|| FIRST_SIGNAL_CODE + status.signal().unwrap_or_default()),
    )
}

/// The options of the agent. `is_java`: the JVM has this working directory. A JVM that a script starts may have another, so
/// a given path of the log is then absolute.
fn parse_agent_options(args: &RunArgs, is_java: bool) -> Result<RecordingOptions, CommandError> {
    if args.explain {
        return parse_explain_options(args, is_java);
    }
    let mut options = args.recording.parse_options(StartMode::WithJvm)?;
    if args.recording.names_log() {
        check_log_path(&options.out)?;
        if !is_java {
            options.out = std::path::absolute(&options.out)?;
        }
    }
    Ok(options)
}

/// The options for `--explain`: all kinds, unless some are named, and a log whose name is known.
fn parse_explain_options(args: &RunArgs, is_java: bool) -> Result<RecordingOptions, CommandError> {
    if !is_java {
        return Err(usage_error(
            "--explain needs java as the command: other programs may start several JVMs, each with its own log",
        ));
    }
    let recording = args.recording.with_default_events(explain::RUN_EVENTS);
    let mut options = recording.parse_options(StartMode::WithJvm)?;
    if args.recording.names_log() {
        check_log_path(&options.out)?;
    } else {
        options.out = PathBuf::from(format!("lucce-explain-{}.lucce", process::id()));
    }
    match options.out.to_string_lossy().contains('%') {
        true => Err(usage_error(
            "--explain reads the log when the program has ended: name it without %p and %t",
        )),
        false => Ok(options),
    }
}

/// The agent's options as `=key=value,…`, or nothing.
fn format_agent_options(options: &RecordingOptions) -> Result<String, CommandError> {
    let text = options_text(options, StartMode::WithJvm)?;
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

fn usage_error(message: impl Into<String>) -> CommandError {
    CommandError::Usage(message.into())
}
