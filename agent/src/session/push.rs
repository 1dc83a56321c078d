//! `push=URL`: sends the log to a collector while the program runs. A thread of the agent does this; it runs no Java code, and the
//! VM does not know it.
//!
//! The thread reads the log's file as another process would. It takes no lock of a program's thread, so an absent or slow collector
//! delays no thread. Data that was not sent remains in the log. At the end of the VM there is a last attempt of at most [`LAST`]. A
//! mark file beside the log records the rest. The next JVM that pushes from this folder sends it, or `lucce push` does.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lucce_control::json::ReplyObject;
use lucce_ship::push_mark::{self, PushMark};
use lucce_ship::wire::RunLabels;
use lucce_ship::{
    CollectorError, HttpCollectorClient, HttpEndpoint, LogSender, RetryBackoff, add_jitter,
    is_world_readable, parse_token, read_token_text,
};
use lucce_tracelog::{LogHeader, open_file};

use crate::options::{LogLevel, PushOptions};
use crate::session::Agent;

/// Maximum time that the end of the VM waits for the collector.
const LAST: Duration = Duration::from_secs(2);
/// Pause between two attempts at the end.
const AGAIN: Duration = Duration::from_millis(200);
/// The error if a server claims to have the complete log, which was not sent yet.
const ENDED: &str =
    "it says that it has this run to its end, which was not sent: it takes nothing of it";
const TOKEN: &str = "LUCCE_PUSH_TOKEN";

/// The progress of the present agent.
static PROGRESS: Mutex<Option<Arc<PushProgress>>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The shared state of the push thread and the agent.
struct PushProgress {
    to: String,
    state: Mutex<PushState>,
    changed: Condvar,
}

#[derive(Clone, Default)]
struct PushState {
    /// The log is closed: it is complete.
    ended: bool,
    /// No thread waits for the last attempt any more.
    is_abandoned: bool,
    /// The collector has the complete closed log.
    done: bool,
    events: u64,
    bytes: u64,
    pushes: u64,
    failures: u64,
    /// The last error since the last success.
    fault: Option<String>,
}

/// Starts pushing once the VM is initialized, if the options request it. Without the thread the log is written as usual.
pub fn start_push(agent: &'static Agent) {
    let push = &agent.core.options.push;
    let Some(to) = &agent.core.options.collector else {
        return;
    };
    let pushed = Arc::new(PushProgress {
        to: to.to_string(),
        state: Mutex::default(),
        changed: Condvar::new(),
    });
    *lock(&PROGRESS) = Some(Arc::clone(&pushed));
    let started = new_worker(agent, to, push).and_then(|pushing| {
        let thread = move || pushing.push_until_end(agent, &pushed);
        let started = agent.core.agent_threads.spawn_thread("lucce-push", thread);
        started.map_err(|error| error.to_string())
    });
    if let Err(why) = started {
        *lock(&PROGRESS) = None;
        agent
            .core
            .report_message(LogLevel::Error, &format!("push= does not work: {why}"));
    }
}

fn new_worker(agent: &Agent, to: &HttpEndpoint, push: &PushOptions) -> Result<PushWorker, String> {
    let labels = RunLabels {
        service: push.service.clone(),
        version: push.version.clone(),
        host: push_mark::host_name(),
    };
    if let Some(file) = push.token.as_deref().filter(|file| is_world_readable(file)) {
        let text = format!(
            "push-token=: every user of this machine can read {}; chmod 600 mends that",
            file.display()
        );
        agent.core.report_message(LogLevel::Warn, &text);
    }
    let text = read_token_text(push.token.as_deref(), TOKEN)?;
    let token = text.as_deref().map(parse_token).transpose()?;
    let mark = PushMark::create(&agent.core.options.out, &to.to_string(), &labels);
    if let Err(error) = &mark {
        let log = agent.core.options.out.display();
        let text = format!("push=: {log} has no mark, so no other process will push it: {error}");
        agent.core.report_message(LogLevel::Warn, &text);
    }
    Ok(PushWorker {
        log: agent.core.log.file().map_err(|error| error.to_string())?,
        sender: LogSender::new(agent.core.run, labels),
        collector: HttpCollectorClient::new(to.clone(), token),
        every: push.every,
        mark: mark.ok(),
    })
}

/// The data of the push thread.
struct PushWorker {
    log: File,
    sender: LogSender,
    collector: HttpCollectorClient,
    every: Duration,
    mark: Option<PushMark>,
}

fn file_reader(log: &File) -> impl FnMut(u64, &mut [u8]) -> bool + '_ {
    |at, to| log.read_exact_at(to, at).is_ok()
}

impl PushWorker {
    fn push_until_end(mut self, agent: &Agent, pushed: &PushProgress) {
        let mut pace = RetryBackoff::default();
        // Jitter: JVMs that were started together do not push together.
        let mut pause = add_jitter(self.every);
        let mut has_looked = false;
        loop {
            let before = pushed.wait_for_push(pause);
            if before.is_abandoned {
                return;
            }
            let round = self
                .sender
                .send_changes(&mut file_reader(&self.log), &mut self.collector);
            let round = match round {
                Ok(round) if round.ended && !self.sender.has_sent_end() => {
                    Err(CollectorError::new(ENDED))
                }
                round => round,
            };
            match round {
                Ok(round) => {
                    pushed.record_success(agent, (round.events, round.bytes), before.ended);
                    if before.ended || round.ended {
                        if let Some(mark) = self.mark.take() {
                            mark.remove_mark();
                        }
                        return;
                    }
                    pace.reset_delay();
                    pause = add_jitter(self.every);
                    if !has_looked {
                        has_looked = true;
                        self.push_other_logs(agent, pushed);
                    }
                }
                Err(fault) => {
                    pushed.record_failure(agent, &fault.why, before.ended);
                    pause = match before.ended {
                        true => AGAIN,
                        false => pace.next_delay(fault.retry_after),
                    };
                }
            }
        }
    }

    /// Sends logs of JVMs that were killed, or whose collector was absent at their end.
    fn push_other_logs(&mut self, agent: &Agent, pushed: &PushProgress) {
        let folder = agent.core.options.out.parent();
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        for log in push_mark::list_marked_logs(folder.unwrap_or(Path::new("."))).unwrap_or_default()
        {
            if lock(&pushed.state).ended {
                return;
            }
            let Some(mark) = PushMark::claim_mark(&log).filter(|mark| mark.to == pushed.to) else {
                continue;
            };
            let Ok(file) = open_file(&log) else {
                continue;
            };
            let Some(run) = LogHeader::read_from(&file)
                .ok()
                .and_then(|header| header.run)
            else {
                continue;
            };
            let mut sender = LogSender::new(run, mark.labels.clone());
            match sender.send_changes(&mut file_reader(&file), &mut self.collector) {
                Ok(_) => mark.remove_mark(),
                // The mark stays for the next JVM.
                Err(_) => return,
            }
            let text = format!("pushed {}, which another JVM has left", log.display());
            agent.core.report_message(LogLevel::Info, &text);
        }
    }
}

impl PushProgress {
    /// Waits for `pause`, or until the log is closed.
    fn wait_for_push(&self, pause: Duration) -> PushState {
        let state = lock(&self.state);
        let until = match state.ended {
            true => pause.min(AGAIN),
            false => pause,
        };
        let was_ended = state.ended && state.fault.is_some();
        let waits = |state: &mut PushState| !state.is_abandoned && (was_ended || !state.ended);
        let waited = self.changed.wait_timeout_while(state, until, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    fn record_success(&self, agent: &Agent, (events, bytes): (u64, u64), ended: bool) {
        let mut state = lock(&self.state);
        state.events = events;
        state.bytes += bytes;
        state.pushes += u64::from(bytes > 0);
        state.done = ended;
        let fault = state.fault.take();
        drop(state);
        self.changed.notify_all();
        if fault.is_some() {
            agent
                .core
                .options
                .print_message(LogLevel::Info, &format!("push: {} answers again", self.to));
        }
    }

    /// Reports each cause once, until the next success.
    fn record_failure(&self, agent: &Agent, why: &str, ended: bool) {
        let mut state = lock(&self.state);
        state.failures += 1;
        let is_known = state.fault.as_deref() == Some(why);
        state.fault = Some(why.to_owned());
        drop(state);
        if !is_known && !ended {
            let text = format!(
                "push: {}: {why}; the log keeps what is to be pushed",
                self.to
            );
            agent.core.report_message(LogLevel::Warn, &text);
        }
    }
}

/// Waits for the last push after the log was closed, for at most `LAST`.
pub fn finish_push(agent: &Agent) {
    let Some(pushed) = lock(&PROGRESS).take() else {
        return;
    };
    let until = Instant::now() + LAST;
    let mut state = lock(&pushed.state);
    state.ended = true;
    pushed.changed.notify_all();
    while !state.done && Instant::now() < until {
        let left = until.saturating_duration_since(Instant::now());
        let waited = pushed.changed.wait_timeout(state, left);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    state.is_abandoned = true;
    let last = state.clone();
    drop(state);
    pushed.changed.notify_all();
    let to = &pushed.to;
    if last.done {
        let text = format!("pushed to {to}: {} events", last.events);
        return agent.core.options.print_message(LogLevel::Info, &text);
    }
    let why = last.fault.unwrap_or("no answer in time".into());
    let file_state = agent.core.log.file_state(&agent.core.options.out);
    let log = file_state.current_path(&agent.core.options.out).display();
    let text = format!(
        "push: {to}: {why}; not all is pushed, but it is in {log}: lucce push --collector {to} {log}"
    );
    agent.core.options.print_message(LogLevel::Warn, &text);
}

/// For `lucce ctl PID status`; `null`: nothing is pushed. `recorded`: number of events so far.
pub fn push_status(recorded: u64) -> String {
    let Some(pushed) = lock(&PROGRESS).clone() else {
        return "null".into();
    };
    let state = lock(&pushed.state).clone();
    let object = ReplyObject::default()
        .with_text("to", &pushed.to)
        .with_raw("events", state.events)
        .with_raw("outstanding", recorded.saturating_sub(state.events))
        .with_raw("pushes", state.pushes)
        .with_raw("bytes", state.bytes)
        .with_raw("failures", state.failures);
    match &state.fault {
        Some(fault) => object.with_text("fault", fault),
        None => object.with_raw("fault", "null"),
    }
    .into_json()
}
