//! `lucce attach`: loads the agent into a running JVM.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use lucce_control::{AttachError, ControlCommand, load_agent, send_command};
use lucce_options::StartMode;

use super::agent_path::agent_path;
use super::list::{query_agent, resolve_pid};
use super::recording_args::{RecordingArgs, options_text};
use super::{CommandError, CommandStatus, ctl, print_diagnostic};

/// Attach the agent to a running JVM, until `lucce ctl JVM detach`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce attach 1234 --out app.lucce          samples allocations, one every 512 KB
  lucce attach com.acme.Shop                 the same, by main class or jar
  lucce attach 1234 --opt alloc=all          counts every allocation; slower
  lucce attach 1234 --events leak            follows objects, for `lucce leaks`
  lucce attach 1234 --events lock            counts waiting for monitors
  lucce ctl 1234 detach                      detaches the agent and closes the log")]
pub struct AttachArgs {
    /// Process id of the JVM, its main class or jar, or the end of one
    #[arg(value_name = "JVM")]
    jvm: String,
    #[command(flatten)]
    recording: RecordingArgs,
    /// Path of the agent in the JVM's file system [default: beside this program]
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &AttachArgs) -> Result<CommandStatus, CommandError> {
    let agent = match &args.agent {
        Some(agent) => std::path::absolute(agent)?,
        None => agent_path()?,
    };
    let pid = resolve_pid(&args.jvm)?;
    ensure_not_attached(pid)?;
    if let Err(end) = attach_agent(pid, &agent, &agent_options(&args.recording)?) {
        return Ok(end);
    }
    let status = send_command(pid, &ControlCommand::Status)?;
    ctl::print_answer(&status, args.json)
}

/// Checks that the process has no agent yet.
///
/// # Errors
/// The agent is already in the process; the message says what to do.
pub fn ensure_not_attached(pid: u32) -> Result<(), CommandError> {
    match query_agent(pid) {
        None => Ok(()),
        Some(agent) => Err(CommandError::Refused(
            already_attached_message(pid, agent.attached),
            CommandStatus::Unusable,
        )),
    }
}

fn already_attached_message(pid: u32, is_attached: bool) -> String {
    let helps = match is_attached {
        true => format!(
            "`lucce ctl {pid} status` says what it counts, and `lucce ctl {pid} detach` takes it out"
        ),
        false => format!(
            "the JVM was started with it, `lucce ctl {pid} status` says what it counts, and `lucce top {pid}` and `lucce serve {pid}` show it"
        ),
    };
    format!("process {pid} has the agent already: {helps}")
}

/// Loads the agent. On failure, prints why and returns the command's exit code.
pub fn attach_agent(pid: u32, agent: &Path, options: &str) -> Result<(), CommandStatus> {
    if let Err(error) = load_agent(pid, agent, options) {
        print_diagnostic(&error);
        return Err(match error {
            AttachError::Foreign(_) => CommandStatus::Damaged,
            _ => CommandStatus::Unusable,
        });
    }
    if jvm_warns(pid) {
        print_diagnostic(
            "the JVM has printed a warning; -XX:+EnableDynamicAgentLoading would have told it that agents may come",
        );
    }
    Ok(())
}

/// The agent's options as `key=value,…`. The log's path is absolute, since the JVM has its own working directory.
pub fn agent_options(recording: &RecordingArgs) -> Result<String, CommandError> {
    let mut options = recording.parse_options(StartMode::Attached)?;
    options.out = std::path::absolute(&options.out)?;
    options_text(&options, StartMode::Attached)
}

/// Whether the JVM warns of the agent: from JDK 21, unless it was started with permission for agents (JEP 451).
fn jvm_warns(pid: u32) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = command.split(|byte| *byte == 0);
    let is_enabled = words.any(|word| word == b"-XX:+EnableDynamicAgentLoading");
    !is_enabled && feature_release(pid).is_some_and(|version| version >= 21)
}

/// The feature release of the JDK that the process runs, from the JDK's file `release`.
fn feature_release(pid: u32) -> Option<u32> {
    let java = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let home = java.ancestors().find(|folder| {
        let name = folder.join("release");
        folder.file_name() != Some(OsStr::new("bin")) && name.is_file()
    })?;
    let text = fs::read_to_string(home.join("release")).ok()?;
    let version = text
        .lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION=\""))?;
    version.split(['.', '"', '-', '+']).next()?.parse().ok()
}

#[cfg(test)]
mod attach_tests {
    use super::*;

    #[test]
    fn the_message_for_an_attached_agent_names_commands() {
        for (is_attached, also) in [(true, "`lucce ctl 7 detach`"), (false, "`lucce top 7`")] {
            let message = already_attached_message(7, is_attached);
            assert!(
                message.starts_with("process 7 has the agent already: "),
                "{message}"
            );
            assert!(
                message.contains("`lucce ctl 7 status`") && message.contains(also),
                "{message}"
            );
        }
    }
}
