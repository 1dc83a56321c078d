//! `push=URL`: the log goes to a collector while the program runs, in a thread of the agent's own that runs no Java code and that the VM
//! knows nothing of.
//!
//! The thread reads the log's file as another process would: it takes no lock that a thread of the program takes, so that a collector which
//! is away or slow keeps no thread waiting. What could not be sent is in the log. At the end of the VM there is a last try, which may take
//! [`LAST`]; what is left then says the mark beside the log, by which the next JVM that pushes from this folder, or `lucce push`, sends it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lucce_control::json::Object;
use lucce_ship::spool::{self, Mark};
use lucce_ship::wire::Labels;
use lucce_ship::{
    Collector, Endpoint, Fault, Pace, Sender, is_open_to_others, jittered, token, token_text,
};
use lucce_tracelog::{Header, open_file};

use crate::options::{Level, Push};
use crate::session::Agent;

/// How long the end of the VM may wait for the collector.
const LAST: Duration = Duration::from_secs(2);
/// Between two tries then.
const AGAIN: Duration = Duration::from_millis(200);
/// Why nothing is sent to a server that claims to have what it cannot have.
const ENDED: &str =
    "it says that it has this run to its end, which was not sent: it takes nothing of it";
const TOKEN: &str = "LUCCE_PUSH_TOKEN";

/// Of the agent that works.
static PUSHED: Mutex<Option<Arc<Pushed>>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the thread has done, and what it must know.
struct Pushed {
    to: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Default)]
struct State {
    /// The log is ended: what it says now is all.
    ended: bool,
    /// No thread waits for the last try any more.
    left: bool,
    /// The collector has all of an ended log.
    done: bool,
    events: u64,
    bytes: u64,
    pushes: u64,
    failures: u64,
    /// Since the last success.
    fault: Option<String>,
}

/// The VM is initialised: the log is pushed from now on, if that was asked for. Without a thread the log is as ever.
pub fn start(agent: &'static Agent) {
    let push = &agent.options.push;
    let Some(to) = &push.to else {
        return;
    };
    let pushed = Arc::new(Pushed {
        to: to.to_string(),
        state: Mutex::default(),
        changed: Condvar::new(),
    });
    *lock(&PUSHED) = Some(Arc::clone(&pushed));
    let started = prepared(agent, to, push).and_then(|pushing| {
        let thread = move || pushing.run(agent, &pushed);
        let started = agent.helpers.start("lucce-push", thread);
        started.map_err(|error| error.to_string())
    });
    if let Err(why) = started {
        *lock(&PUSHED) = None;
        agent.say(Level::Error, &format!("push= does not work: {why}"));
    }
}

fn prepared(agent: &Agent, to: &Endpoint, push: &Push) -> Result<Pushing, String> {
    let labels = Labels {
        service: push.service.clone(),
        version: push.version.clone(),
        host: spool::host(),
    };
    if let Some(file) = push.token.as_deref().filter(|file| is_open_to_others(file)) {
        let text = format!(
            "push-token=: every user of this machine can read {}; chmod 600 mends that",
            file.display()
        );
        agent.say(Level::Warn, &text);
    }
    let text = token_text(push.token.as_deref(), TOKEN)?;
    let token = text.as_deref().map(token).transpose()?;
    let mark = Mark::make(&agent.options.out, &to.to_string(), &labels);
    if let Err(error) = &mark {
        let log = agent.options.out.display();
        let text = format!("push=: {log} has no mark, so no other process will push it: {error}");
        agent.say(Level::Warn, &text);
    }
    Ok(Pushing {
        log: agent.log.file().map_err(|error| error.to_string())?,
        sender: Sender::new(agent.run, labels),
        collector: Collector::new(to.clone(), token),
        every: push.every,
        mark: mark.ok(),
    })
}

/// The thread's own.
struct Pushing {
    log: File,
    sender: Sender,
    collector: Collector,
    every: Duration,
    mark: Option<Mark>,
}

fn reads(log: &File) -> impl FnMut(u64, &mut [u8]) -> bool + '_ {
    |at, to| log.read_exact_at(to, at).is_ok()
}

impl Pushing {
    fn run(mut self, agent: &Agent, pushed: &Pushed) {
        let mut pace = Pace::default();
        // JVMs that were started together do not push together.
        let mut pause = jittered(self.every);
        let mut has_looked = false;
        loop {
            let before = pushed.wait(pause);
            if before.left {
                return;
            }
            let round = self
                .sender
                .round(&mut reads(&self.log), &mut self.collector);
            let round = match round {
                Ok(round) if round.ended && !self.sender.has_sent_end() => Err(Fault::new(ENDED)),
                round => round,
            };
            match round {
                Ok(round) => {
                    pushed.well(agent, (round.events, round.bytes), before.ended);
                    if before.ended || round.ended {
                        if let Some(mark) = self.mark.take() {
                            mark.done();
                        }
                        return;
                    }
                    pace.well();
                    pause = jittered(self.every);
                    if !has_looked {
                        has_looked = true;
                        self.others(agent, pushed);
                    }
                }
                Err(fault) => {
                    pushed.in_vain(agent, &fault.why, before.ended);
                    pause = match before.ended {
                        true => AGAIN,
                        false => pace.in_vain(fault.asked),
                    };
                }
            }
        }
    }

    /// Logs of JVMs that were killed, or whose collector was away at their end.
    fn others(&mut self, agent: &Agent, pushed: &Pushed) {
        let folder = agent.options.out.parent();
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        for log in spool::marked(folder.unwrap_or(Path::new("."))).unwrap_or_default() {
            if lock(&pushed.state).ended {
                return;
            }
            let Some(mark) = Mark::take(&log).filter(|mark| mark.to == pushed.to) else {
                continue;
            };
            let Ok(file) = open_file(&log) else {
                continue;
            };
            let Some(run) = Header::of(&file).ok().and_then(|header| header.run) else {
                continue;
            };
            let mut sender = Sender::new(run, mark.labels.clone());
            match sender.round(&mut reads(&file), &mut self.collector) {
                Ok(_) => mark.done(),
                // It stays for the next JVM.
                Err(_) => return,
            }
            let text = format!("pushed {}, which another JVM has left", log.display());
            agent.say(Level::Info, &text);
        }
    }
}

impl Pushed {
    /// For so long, or until the log is ended.
    fn wait(&self, pause: Duration) -> State {
        let state = lock(&self.state);
        let until = match state.ended {
            true => pause.min(AGAIN),
            false => pause,
        };
        let was_ended = state.ended && state.fault.is_some();
        let waits = |state: &mut State| !state.left && (was_ended || !state.ended);
        let waited = self.changed.wait_timeout_while(state, until, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    fn well(&self, agent: &Agent, (events, bytes): (u64, u64), ended: bool) {
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
                .options
                .say(Level::Info, &format!("push: {} answers again", self.to));
        }
    }

    /// Tells each cause once, until it goes well again.
    fn in_vain(&self, agent: &Agent, why: &str, ended: bool) {
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
            agent.say(Level::Warn, &text);
        }
    }
}

/// The log is ended. Waits for the last push, but not for long.
pub fn finish(agent: &Agent) {
    let Some(pushed) = lock(&PUSHED).take() else {
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
    state.left = true;
    let last = state.clone();
    drop(state);
    pushed.changed.notify_all();
    let to = &pushed.to;
    if last.done {
        let text = format!("pushed to {to}: {} events", last.events);
        return agent.options.say(Level::Info, &text);
    }
    let why = last.fault.unwrap_or("no answer in time".into());
    let fate = agent.log.fate(&agent.options.out);
    let log = fate.path(&agent.options.out).display();
    let text = format!(
        "push: {to}: {why}; not all is pushed, but it is in {log}: lucce push --collector {to} {log}"
    );
    agent.options.say(Level::Warn, &text);
}

/// For `lucce ctl PID status`; `null`: nothing is pushed. `recorded`: events so far.
pub fn status(recorded: u64) -> String {
    let Some(pushed) = lock(&PUSHED).clone() else {
        return "null".into();
    };
    let state = lock(&pushed.state).clone();
    let object = Object::default()
        .text("to", &pushed.to)
        .raw("events", state.events)
        .raw("outstanding", recorded.saturating_sub(state.events))
        .raw("pushes", state.pushes)
        .raw("bytes", state.bytes)
        .raw("failures", state.failures);
    match &state.fault {
        Some(fault) => object.text("fault", fault),
        None => object.raw("fault", "null"),
    }
    .end()
}
