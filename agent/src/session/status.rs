//! What the agent does and has done, as JSON: for `lucce ctl PID status`.

use std::path::Path;
use std::sync::atomic::Ordering;

use lucce_control::json::Object;
use lucce_tracelog::NoRoom;

use crate::book::fate::Fate;
use crate::core::Streamer;
use crate::options::names_of;
use crate::session::Agent;
use crate::session::finish::{Counted, Which, lost, numbers};
use crate::session::push;

/// `uptime` in milliseconds.
pub fn json(agent: &Agent, uptime: u64) -> String {
    let (kinds, counting) = agent.gate.state();
    let events = Counted::by(agent).all();
    let numbers = numbers(agent, Which::All);
    let counts = &agent.counts;
    let lost = lost(agent);
    // What lies in no file any more is lost.
    let (events, lost) = match agent.log.fate(&agent.options.out) {
        Fate::Truncated | Fate::Failed => (0, lost + events),
        Fate::Whole | Fate::Moved(_) | Fate::Removed => (events, lost),
    };
    let known = Object::default()
        .text("lucce", env!("CARGO_PKG_VERSION"))
        .raw("attached", agent.came_later());
    let known = match agent.sampled_bytes() {
        Some(bytes) => known.raw("sampled_bytes", bytes),
        None => known,
    };
    known
        .raw("pid", std::process::id())
        .text("run", &agent.run.to_string())
        .raw("uptime_ms", uptime)
        .raw("counting", counting)
        .raw("bursts", bursts(agent))
        .list("events", names_of(kinds))
        .raw("recorded", events)
        .raw("numbers", numbers)
        .raw("lost", lost)
        .raw("threads", threads(agent))
        .raw("memory", memory(agent))
        .raw("log", log(agent))
        .raw("stream", stream(agent))
        .raw("push", push::status(events))
        .raw("panics", counts.panics.load(Ordering::Relaxed))
        .end()
}

/// That have a record now; without hooks: that have had events, those of one kind together.
fn threads(agent: &Agent) -> usize {
    match agent.attached.is_some() {
        false => agent.threads.len(),
        true => agent.counts.next_thread.load(Ordering::Relaxed) as usize,
    }
}

/// How many there were, and for how long of how long events were counted; `null`: always.
fn bursts(agent: &Agent) -> String {
    agent.gate.bursts().map_or("null".into(), |bursts| {
        Object::default()
            .raw("count", bursts.bursts)
            .raw("open_ms", bursts.open.as_millis())
            .raw("of_ms", bursts.total.as_millis())
            .end()
    })
}

/// In bytes.
fn memory(agent: &Agent) -> String {
    Object::default()
        .raw("graph", agent.encoder.stats().memory)
        .raw("trees", agent.comparison.tree_bytes())
        .end()
}

/// `null`: there is none. A reader may count its entries.
fn stream(agent: &Agent) -> String {
    let of = |streamer: &Streamer| {
        file_of(&streamer.fate(), streamer.path())
            .raw("bytes", streamer.bytes())
            .raw("limit", agent.options.record_limit)
            .raw("full", streamer.is_full())
            .end()
    };
    agent.streamer.as_ref().map_or("null".into(), of)
}

/// What the file is called, and what has become of it.
fn file_of(fate: &Fate, path: &Path) -> Object {
    let path = fate.path(path);
    let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Object::default()
        .text("file", &file.to_string_lossy())
        .text("state", fate.word())
}

fn log(agent: &Agent) -> String {
    let fate = agent.log.fate(&agent.options.out);
    let known = file_of(&fate, &agent.options.out)
        .raw("bytes", agent.log.bytes())
        .raw("refused", agent.log.refused());
    // What has no more room for it.
    let known = match agent.log.no_room() {
        None => known.raw("full", "null"),
        Some(NoRoom::Limit) => known.text("full", "limit"),
        Some(NoRoom::Disk) => known.text("full", "disk"),
    };
    known.end()
}
