//! Watching the run's files: somebody may truncate, remove or move them while the JVM runs.
//!
//! A thread of the agent checks them once a second, and reports each change once on standard error. The end and `lucce ctl` check
//! again. A removed file stays complete and is written as long as the JVM runs, so `lucce ctl PID dump FILE` saves it. The data
//! of a truncated file is lost.

use std::path::Path;
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni::JavaVM;

use crate::options::LogLevel;
use crate::registry::file_state::FileState;
use crate::session::Agent;
use crate::session::event_totals::count_dropped_events;
use lucce_jvmti::flags;
use lucce_tracelog::LogFullCause;

/// States that the thread has reported.
#[derive(Default)]
struct ReportedFileStates {
    log: Option<FileState>,
    stream: Option<FileState>,
    tracking: Option<FileState>,
}

/// Makes the program survive the truncation of a file, see `tracelog/src/page_loss.rs`. Not if the VM checks signal handlers: it
/// would warn the program's users that its handler is not the first any more.
pub fn survive_truncation(vm: *mut JavaVM) {
    if !flags::checks_handlers(vm) {
        lucce_tracelog::install_sigbus_handler();
    }
}

/// Starts the thread once the VM is initialized. Without it, only the end and `lucce ctl` report changes.
pub fn start_watching(agent: &'static Agent) {
    let _ = agent
        .core
        .agent_threads
        .spawn_thread("lucce-files", move || watch_files(agent));
}

fn watch_files(agent: &Agent) {
    const OFTEN: Duration = Duration::from_secs(1);
    let mut reported = ReportedFileStates::default();
    while !agent.core.vm_end.wait_until(Instant::now() + OFTEN) {
        report_full_log(agent);
        report_state(
            agent,
            &mut reported.log,
            agent.core.log.file_state(&agent.core.options.out),
            &agent.core.options.out,
        );
        if let Some(streamer) = &agent.core.streamer {
            report_state(
                agent,
                &mut reported.stream,
                streamer.file_state(),
                streamer.path(),
            );
        }
        if let Some((state, path)) = agent.counters.tracking.file_state() {
            report_state(agent, &mut reported.tracking, state, path);
        }
    }
}

/// Why the log is full, if events were dropped for this reason. The first caller reports it to the user.
pub fn report_full_log(agent: &Agent) -> Option<LogFullCause> {
    let why = agent
        .core
        .log
        .no_room()
        .filter(|_| count_dropped_events(agent) > 0)?;
    if agent.core.log.mark_full_reported() {
        agent
            .core
            .options
            .print_message(LogLevel::Warn, &why.to_string());
    }
    Some(why)
}

fn report_state(
    agent: &Agent,
    reported: &mut Option<FileState>,
    file_state: FileState,
    path: &Path,
) {
    if reported.as_ref() == Some(&file_state) {
        return;
    }
    if let Some(what) = file_state.describe_loss(path) {
        let (level, then) = match file_state {
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
        agent.core.report_message(level, &format!("{what}{then}"));
    }
    *reported = Some(file_state);
}
