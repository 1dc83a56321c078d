//! What becomes of the run's files while the JVM runs: somebody may truncate, remove or move them.
//!
//! A thread of the agent's own looks once a second, and says on standard error what it sees, once. The end and
//! `lucce ctl` look again. A file that was removed is still whole and is written to as long as the JVM
//! runs, so `lucce ctl PID dump FILE` saves it; of one that was truncated nothing is left to save.

use std::path::Path;
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni::JavaVM;

use crate::book::fate::Fate;
use crate::options::Level;
use crate::session::Agent;
use crate::session::finish::lost;
use lucce_tracelog::NoRoom;
use lucce_vm::flags;

/// What the thread has said already.
#[derive(Default)]
struct Said {
    log: Option<Fate>,
    stream: Option<Fate>,
    calls: Option<Fate>,
}

/// From now on the program goes on when a file is truncated, see `tracelog/src/loss.rs`. Not where the VM would tell
/// the program's users that its handler is not the first any more.
pub fn survive(vm: *mut JavaVM) {
    if !flags::checks_handlers(vm) {
        lucce_tracelog::survive();
    }
}

/// The VM is initialised. Without a thread the end and `lucce ctl` tell.
pub fn start(agent: &'static Agent) {
    let _ = agent.helpers.start("lucce-files", move || watch(agent));
}

fn watch(agent: &Agent) {
    const OFTEN: Duration = Duration::from_secs(1);
    let mut said = Said::default();
    while !agent.ended.wait(Instant::now() + OFTEN) {
        tell_full(agent);
        tell(
            agent,
            &mut said.log,
            agent.log.fate(&agent.options.out),
            &agent.options.out,
        );
        if let Some(streamer) = &agent.streamer {
            tell(agent, &mut said.stream, streamer.fate(), streamer.path());
        }
        if let Some(recorder) = &agent.recorder {
            tell(agent, &mut said.calls, recorder.fate(), recorder.path());
        }
    }
}

/// Why the log takes no more, if events are lost for that. It is said once, whether the thread asks or the end does.
pub fn tell_full(agent: &Agent) -> Option<NoRoom> {
    let why = agent.log.no_room().filter(|_| lost(agent) > 0)?;
    if agent.log.is_to_be_told() {
        agent.options.say(Level::Warn, &why.to_string());
    }
    Some(why)
}

fn tell(agent: &Agent, said: &mut Option<Fate>, fate: Fate, path: &Path) {
    if said.as_ref() == Some(&fate) {
        return;
    }
    if let Some(what) = fate.told(path) {
        let (level, then) = match fate {
            Fate::Removed => (
                Level::Error,
                format!(
                    ": `lucce ctl {} dump FILE` saves it as long as the JVM runs",
                    std::process::id()
                ),
            ),
            Fate::Truncated | Fate::Failed => (
                Level::Error,
                ": what it held is lost, and nothing more is recorded there; the program goes on"
                    .into(),
            ),
            Fate::Whole | Fate::Moved(_) => (Level::Info, String::new()),
        };
        agent.say(level, &format!("{what}{then}"));
    }
    *said = Some(fate);
}
