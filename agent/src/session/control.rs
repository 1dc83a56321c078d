//! `lucce ctl`: what is asked over the socket is done here, in a thread of the agent's own that runs no
//! Java code and that the VM knows nothing of.
//!
//! No message can do more harm than that its sender gets an error.

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use lucce_control::{Clients, Command, Conversation, Listener, SocketPlace, sweep};
use lucce_hooks::kinds::ALLOC;

use crate::memory::gate;
use crate::memory::locks::WatchedMutex;
use crate::options::{Ctl, Level, Options, names_of};
use crate::session::Agent;
use crate::session::attach;
use crate::session::dump;
use crate::session::guard::guard;
use crate::session::holders;
use crate::session::leaks;
use crate::session::status;
use crate::thread::coverage;
use lucce_vm::signals;

/// Of the agent that works.
static LISTENER: WatchedMutex<Option<Arc<Listener>>> = WatchedMutex::new(None);
static STARTED: WatchedMutex<Option<Instant>> = WatchedMutex::new(None);

fn lock<T>(mutex: &WatchedMutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// Listens from now on, unless the options say otherwise. A JVM that cannot be controlled runs on.
pub fn start(agent: &'static Agent) {
    *lock(&STARTED) = Some(Instant::now());
    if agent.options.ctl == Ctl::Off {
        return;
    }
    let listening = Listener::bind(&SocketPlace::own()).and_then(|listener| {
        let listener = Arc::new(listener);
        *lock(&LISTENER) = Some(Arc::clone(&listener));
        let thread = std::thread::Builder::new().name("lucce-ctl".into());
        signals::blocked(|| {
            thread.spawn(move || {
                serve(agent, &listener);
                drop(listener);
                attach::leave();
            })
        })
    });
    if let Err(error) = listening {
        let path = SocketPlace::own().socket();
        let text = format!("`lucce ctl` will not work: {}: {error}", path.display());
        agent.say(Level::Info, &text);
        end();
    }
}

/// The VM ends: the socket goes, and the thread.
pub fn end() {
    let listener = lock(&LISTENER).take();
    if let Some(listener) = listener {
        listener.wake();
        listener.remove();
    }
}

/// Commands are done one at a time.
static ANSWERING: WatchedMutex<()> = WatchedMutex::new(());

fn serve(agent: &'static Agent, listener: &Listener) {
    let clients = Clients::default();
    sweep(&SocketPlace::own());
    while agent.is_live() {
        // A client that was not understood has been told so.
        let client = listener.accept();
        if let Ok(client) = client
            && agent.is_live()
        {
            // A client for which there is no thread finds the connection closed.
            let _ = clients.speak(client, |client| guard((), |agent| talk(agent, client)));
        }
    }
}

fn talk(agent: &Agent, client: &Conversation) {
    if let Ok(command) = client.command() {
        let answering = ANSWERING.lock();
        let answer = answer(agent, &command);
        drop(answering);
        let failed = client.reply(answer).is_err();
        agent.say(Level::Debug, &format!("ctl: {command:?}, failed: {failed}"));
    }
}

fn answer(agent: &Agent, command: &Command) -> Result<String, String> {
    match command {
        Command::Start => agent.gate.start(),
        Command::Stop => {
            agent.gate.stop();
            coverage::interrupted(agent, "counting was stopped (lucce ctl stop)");
        }
        Command::Set(setting) => set(agent, setting)?,
        Command::Dump(file) => {
            agent.coverage.read(agent, None);
            return dump::dump(agent, file.as_deref());
        }
        Command::Holders(numbers, walks) => {
            return holders::answer(agent, numbers, walks.as_ref());
        }
        Command::Leaks(request) => return leaks::answer(agent, *request),
        Command::Detach => return attach::detach(agent),
        Command::Status => {}
    }
    Ok(status(agent))
}

pub fn status(agent: &Agent) -> String {
    status::json(agent, uptime())
}

/// Milliseconds since the VM was initialised.
fn uptime() -> u64 {
    let elapsed = lock(&STARTED)
        .as_ref()
        .map(Instant::elapsed)
        .unwrap_or_default();
    elapsed.as_millis() as u64
}

fn set(agent: &Agent, setting: &str) -> Result<(), String> {
    let value = setting
        .strip_prefix("events=")
        .filter(|value| !value.contains(','))
        .ok_or("only events can be set: events=alloc, events=none")?;
    let wanted = Options::parse(&format!("events={value}")).map_err(|e| e.to_string())?;
    if wanted.events.has(&ALLOC) && !agent.options.alloc_hooks() {
        return Err(
            "the classes have no hooks for alloc: start the JVM with events=alloc or with ctl=all"
                .into(),
        );
    }
    if wanted.events.sampled().or(agent.options.events.sampled()) != agent.options.events.sampled()
        || wanted.events.has(&ALLOC) && agent.options.events.sampled().is_some()
    {
        return Err("allocations are counted, or sampled, as they were from the start".into());
    }
    if wanted.events.leak().is_some() && agent.leaks.is_none() {
        return Err("no objects are followed: start the JVM with events=leak".into());
    }
    let wanted = wanted.events.gates();
    let has = agent.options.hooks().gates();
    if let Some(name) = names_of(wanted & !has).first() {
        return Err(match agent.options.walks() {
            true => format!(
                "start the JVM with events={name}, or with ctl=all: with tracking=auto nothing else is prepared"
            ),
            false => {
                format!("start the JVM with events={name}: it cannot begin to tell of them now")
            }
        });
    }
    agent.gate.set(wanted);
    if agent.gate.state().0 & (gate::ALLOC | gate::SAMPLES) == 0 {
        coverage::interrupted(
            agent,
            "allocations were not counted all the time (lucce ctl set)",
        );
    }
    Ok(())
}
