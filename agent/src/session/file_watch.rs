//! What becomes of the run's files while the JVM runs: somebody may truncate, remove or move them.
//!
//! A thread of the agent's own looks once a second, and says on standard error what it sees, once. The end and
//! `lucce ctl` look again. A file that was removed is still whole and is written to as long as the JVM
//! runs, so `lucce ctl PID dump FILE` saves it; of one that was truncated nothing is left to save.

use std::path::Path;
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni::JavaVM;

use crate::options::LogLevel;
use crate::registry::file_state::FileState;
use crate::session::Agent;
use crate::session::finish::count_dropped_events;
use lucce_jvmti::flags;
use lucce_tracelog::LogFullCause;

/// What the thread has said already.
#[derive(Default)]
struct ReportedFileStates {
    log: Option<FileState>,
    stream: Option<FileState>,
    calls: Option<FileState>,
}

/// From now on the program goes on when a file is truncated, see `tracelog/src/loss.rs`. Not where the VM would tell
/// the program's users that its handler is not the first any more.
pub fn survive_truncation(vm: *mut JavaVM) {
    if !flags::checks_handlers(vm) {
        lucce_tracelog::install_sigbus_handler();
    }
}

/// The VM is initialised. Without a thread the end and `lucce ctl` tell.
pub fn start_watching(agent: &'static Agent) {
    let _ = agent
        .agent_threads
        .spawn_thread("lucce-files", move || watch_files(agent));
}

fn watch_files(agent: &Agent) {
    const OFTEN: Duration = Duration::from_secs(1);
    let mut said = ReportedFileStates::default();
    while !agent.vm_end.wait_until(Instant::now() + OFTEN) {
        report_full_log(agent);
        report_state(
            agent,
            &mut said.log,
            agent.log.file_state(&agent.options.out),
            &agent.options.out,
        );
        if let Some(streamer) = &agent.streamer {
            report_state(
                agent,
                &mut said.stream,
                streamer.file_state(),
                streamer.path(),
            );
        }
        if let Some(recorder) = &agent.recorder {
            report_state(
                agent,
                &mut said.calls,
                recorder.file_state(),
                recorder.path(),
            );
        }
    }
}

/// Why the log takes no more, if events are lost for that. It is said once, whether the thread asks or the end does.
pub fn report_full_log(agent: &Agent) -> Option<LogFullCause> {
    let why = agent
        .log
        .no_room()
        .filter(|_| count_dropped_events(agent) > 0)?;
    if agent.log.mark_full_reported() {
        agent
            .options
            .print_message(LogLevel::Warn, &why.to_string());
    }
    Some(why)
}

fn report_state(agent: &Agent, said: &mut Option<FileState>, fate: FileState, path: &Path) {
    if said.as_ref() == Some(&fate) {
        return;
    }
    if let Some(what) = fate.describe_loss(path) {
        let (level, then) = match fate {
            FileState::Removed => (
                LogLevel::Error,
                format!(
                    ": `lucce ctl {} dump FILE` saves it as long as the JVM runs",
                    std::process::id()
                ),
            ),
            FileState::Truncated | FileState::Failed => (
                LogLevel::Error,
                ": what it held is lost, and nothing more is recorded there; the program goes on"
                    .into(),
            ),
            FileState::Whole | FileState::Moved(_) => (LogLevel::Info, String::new()),
        };
        agent.report_message(level, &format!("{what}{then}"));
    }
    *said = Some(fate);
}
