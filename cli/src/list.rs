//! `lucce list`: the JVMs of this user, and which of them have the agent.

use std::fs;
use std::io::Write;

use lucce_control::{ControlCommand, SocketLocation, is_starting, java_command, send_command};
use lucce_decoder::escape::EscapedText;
use lucce_tracelog::mask_arguments;
use serde::Serialize;
use serde_json::Value;

use super::output::{lock_stdout, write_json};
use super::{CommandError, CommandStatus, print_diagnostic, process};

/// List the JVMs of this user, and which of them have the agent.
#[derive(clap::Args)]
#[command(after_help = "Example:
  lucce list")]
pub struct ListArgs {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Show the programs' arguments instead of `*`
    #[arg(long)]
    arguments: bool,
}

/// A JVM of this user.
#[derive(Serialize)]
pub struct JvmProcess {
    pub pid: u32,
    /// Main class or jar, and arguments; `None`: the JVM does not publish them (-XX:-UsePerfData).
    pub command: Option<String>,
    /// Whether the JVM is starting and may not have published its command yet.
    pub starting: bool,
    /// `None`: the JVM has no agent, or no more.
    pub agent: Option<JvmAgentStatus>,
}

#[derive(Serialize)]
pub struct JvmAgentStatus {
    /// Whether the agent was attached to the running JVM.
    pub attached: bool,
    pub counting: bool,
    pub events: Vec<String>,
    pub log: Option<String>,
}

pub fn run(args: &ListArgs) -> Result<CommandStatus, CommandError> {
    let mut out = lock_stdout();
    let jvms = list_jvms();
    if jvms.is_empty() {
        print_diagnostic("no JVM of this user runs");
    }
    for mut jvm in jvms {
        if !args.arguments {
            jvm.command = jvm.command.as_deref().map(mask_arguments);
        }
        match args.json {
            true => write_json(&mut out, &jvm)?,
            false => writeln!(
                out,
                "{:>8}  {:<28}  {}",
                jvm.pid,
                jvm.format_state(),
                EscapedText(jvm.display_command())
            )?,
        }
    }
    out.flush()?;
    Ok(CommandStatus::Fine)
}

/// All JVMs of this user, by process id. Other users' mapped files cannot be read.
pub fn list_jvms() -> Vec<JvmProcess> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut numbers: Vec<_> = numbers.filter(|pid| is_jvm(*pid)).collect();
    numbers.sort_unstable();
    numbers.into_iter().map(JvmProcess::new).collect()
}

/// Finds the process that a name means; lists the JVMs only if the name is not a process id.
pub fn resolve_pid(target: &str) -> Result<u32, CommandError> {
    match target.parse() {
        Ok(pid) => Ok(pid),
        Err(_) => find_pid(target, &list_jvms()),
    }
}

/// Finds the process that a name means.
pub fn find_pid(target: &str, jvms: &[JvmProcess]) -> Result<u32, CommandError> {
    if let Ok(pid) = target.parse() {
        return Ok(pid);
    }
    let called: Vec<_> = jvms.iter().filter(|jvm| jvm.matches_name(target)).collect();
    match called.as_slice() {
        [jvm] => Ok(jvm.pid),
        [] => Err(CommandError::Usage(format!(
            "no JVM of this user runs {target}; `lucce list` shows them"
        ))),
        several => {
            let numbers: Vec<_> = several.iter().map(|jvm| jvm.pid.to_string()).collect();
            let numbers = numbers.join(", ");
            Err(CommandError::Usage(format!(
                "several JVMs run {target}: name one by its process id, {numbers}"
            )))
        }
    }
}

fn is_jvm(pid: u32) -> bool {
    let maps = process::read_maps(pid).unwrap_or_default();
    process::mapped_files(&maps).any(|(_, file)| file.ends_with("/libjvm.so"))
}

impl JvmProcess {
    fn new(pid: u32) -> JvmProcess {
        let place = SocketLocation::from_pid(pid).ok();
        JvmProcess {
            pid,
            // Read first: a JVM that has started since then has published its command.
            starting: place.as_ref().is_some_and(is_starting),
            command: place.as_ref().and_then(java_command),
            agent: query_agent(pid),
        }
    }

    fn display_command(&self) -> &str {
        match self.command.as_deref() {
            None if self.starting => "(starting)",
            None => "(starting or ending, or run with -XX:-UsePerfData)",
            Some("") => "(no main class: started by native code)",
            Some(command) => command,
        }
    }

    fn format_state(&self) -> String {
        let Some(agent) = &self.agent else {
            return "no agent".to_owned();
        };
        let how = if agent.attached { "attached" } else { "agent" };
        match agent.counting && !agent.events.is_empty() {
            true => format!("{how}: {}", agent.events.join("+")),
            false => format!("{how}: counts nothing now"),
        }
    }

    /// Whether a name means this JVM: its process id, main class or jar, or the end of one of these.
    pub fn matches_name(&self, name: &str) -> bool {
        let main = self
            .command
            .as_deref()
            .and_then(|text| text.split_whitespace().next());
        main.is_some_and(|main| {
            main.strip_suffix(name)
                .is_some_and(|before| before.is_empty() || before.ends_with(['.', '/', '$']))
        })
    }
}

/// The status of the agent in a process, if there is one and it answers.
pub fn query_agent(pid: u32) -> Option<JvmAgentStatus> {
    let status = send_command(pid, &ControlCommand::Status).ok()?;
    JvmAgentStatus::new(&status)
}

impl JvmAgentStatus {
    fn new(status: &str) -> Option<JvmAgentStatus> {
        let status: Value = serde_json::from_str(status).ok()?;
        let events = status["events"].as_array().into_iter().flatten();
        Some(JvmAgentStatus {
            attached: status["attached"] == true,
            counting: status["counting"] == true,
            events: events
                .filter_map(|name| Some(name.as_str()?.to_owned()))
                .collect(),
            log: status["log"]["file"].as_str().map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod list_tests {
    use super::*;

    #[test]
    fn jvms_are_called_by_their_main_class_or_its_end() {
        let jvm = |command: &str| JvmProcess {
            pid: 1,
            command: Some(command.to_owned()),
            starting: false,
            agent: None,
        };
        let called = |command: &str, name: &str| jvm(command).matches_name(name);
        assert!(called("com.acme.Main --x", "com.acme.Main"));
        assert!(called("com.acme.Main --x", "Main"));
        assert!(called("/opt/app/shop.jar", "shop.jar"));
        assert!(!called("com.acme.Main", "ain"));
        assert!(!called("com.acme.Main Main2", "Main2"));
        assert!(!called("", "Main"));
    }

    #[test]
    fn a_jvm_without_a_command_has_a_reason() {
        let shown = |command: Option<&str>, starting| {
            let jvm = JvmProcess {
                pid: 1,
                command: command.map(str::to_owned),
                starting,
                agent: None,
            };
            jvm.display_command().to_owned()
        };
        assert_eq!(shown(Some("a.Main --x"), true), "a.Main --x");
        assert_eq!(shown(None, true), "(starting)");
        assert!(shown(None, false).contains("-XX:-UsePerfData"));
        assert!(shown(Some(""), false).contains("no main class"));
    }

    #[test]
    fn a_jvm_is_named_by_number_or_name() {
        let jvm = |pid, command: &str| JvmProcess {
            pid,
            command: Some(command.to_owned()),
            starting: false,
            agent: None,
        };
        let jvms = [jvm(7, "a.Main"), jvm(8, "b.Main"), jvm(9, "b.Other x")];
        let pid_of = |name: &str| find_pid(name, &jvms).ok();
        assert_eq!(pid_of("12"), Some(12));
        assert_eq!(pid_of("a.Main"), Some(7));
        assert_eq!(pid_of("Other"), Some(9));
        assert_eq!(pid_of("Main"), None);
        assert_eq!(pid_of("None"), None);
    }
}
