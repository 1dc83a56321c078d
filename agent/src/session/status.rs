//! The agent's state and statistics as JSON, for `lucce ctl PID status`.

use std::path::Path;
use std::sync::atomic::Ordering;

use lucce_control::json::ReplyObject;
use lucce_tracelog::LogFullCause;

use crate::core::{EventStreamer, SampleBudget};
use crate::options::kind_names;
use crate::registry::file_state::FileState;
use crate::session::Agent;
use crate::session::event_totals::{
    ContextNumberScope, EventTotals, count_context_numbers, count_dropped_events,
};
use crate::session::{control_socket, push};

/// The answer to `status`.
pub fn current_status(agent: &Agent) -> String {
    status_json(agent, control_socket::uptime_ms())
}

/// `uptime`: in milliseconds.
fn status_json(agent: &Agent, uptime: u64) -> String {
    let (kinds, counting) = agent.core.event_mask.requested_state();
    let events = EventTotals::count_events(agent).sum_events();
    let numbers = count_context_numbers(agent, ContextNumberScope::All);
    let counts = &agent.core.counts;
    let lost = count_dropped_events(agent);
    // Events that no file contains any more are lost.
    let (events, lost) = match agent.core.log.file_state(&agent.core.options.out) {
        FileState::Truncated | FileState::Failed => (0, lost + events),
        FileState::Whole | FileState::Moved(_) | FileState::Removed => (events, lost),
    };
    let reply = ReplyObject::default()
        .with_text("lucce", env!("CARGO_PKG_VERSION"))
        .with_raw("attached", agent.core.is_attached());
    let budgeted = agent.core.budget.as_ref().map(SampleBudget::interval);
    let reply = match budgeted.or(agent.core.sampling_interval()) {
        Some(bytes) => reply.with_raw("sampled_bytes", bytes),
        None => reply,
    };
    reply
        .with_raw("pid", std::process::id())
        .with_text("run", &agent.core.run.to_string())
        .with_raw("uptime_ms", uptime)
        .with_raw("counting", counting)
        .with_raw("bursts", bursts_json(agent))
        .with_list("events", kind_names(kinds))
        .with_raw("recorded", events)
        .with_raw("numbers", numbers)
        .with_raw("lost", lost)
        .with_raw("threads", count_threads(agent))
        .with_raw("memory", memory_json(agent))
        .with_raw("log", log_json(agent))
        .with_raw("stream", stream_json(agent))
        .with_raw("push", push::push_status(events))
        .with_raw("panics", counts.panics.load(Ordering::Relaxed))
        .into_json()
}

/// The number of threads with a state. In hookless mode: threads that have had events, where threads of one kind may share one.
fn count_threads(agent: &Agent) -> usize {
    match agent.core.hookless.is_some() {
        false => agent.core.threads.len(),
        true => agent.core.counts.next_thread.load(Ordering::Relaxed) as usize,
    }
}

/// Number of bursts, and for how much of which time events were counted; `null`: always.
fn bursts_json(agent: &Agent) -> String {
    agent
        .core
        .event_mask
        .burst_times()
        .map_or("null".into(), |bursts| {
            ReplyObject::default()
                .with_raw("count", bursts.bursts)
                .with_raw("open_ms", bursts.open.as_millis())
                .with_raw("of_ms", bursts.total.as_millis())
                .into_json()
        })
}

/// In bytes.
fn memory_json(agent: &Agent) -> String {
    ReplyObject::default()
        .with_raw("graph", agent.core.encoder.collect_stats().memory_bytes)
        .with_raw("trees", agent.counters.tracking.memory_bytes())
        .into_json()
}

/// `null`: there is no stream. A reader may count its entries.
fn stream_json(agent: &Agent) -> String {
    let of = |streamer: &EventStreamer| {
        file_object(&streamer.file_state(), streamer.path())
            .with_raw("bytes", streamer.written_bytes())
            .with_raw("limit", agent.core.options.stream_limit)
            .with_raw("full", streamer.is_full())
            .into_json()
    };
    agent.core.streamer.as_ref().map_or("null".into(), of)
}

/// The file's present path and state.
fn file_object(file_state: &FileState, path: &Path) -> ReplyObject {
    let path = file_state.current_path(path);
    let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    ReplyObject::default()
        .with_text("file", &file.to_string_lossy())
        .with_text("state", file_state.as_str())
}

fn log_json(agent: &Agent) -> String {
    let file_state = agent.core.log.file_state(&agent.core.options.out);
    let log = file_object(&file_state, &agent.core.options.out)
        .with_raw("bytes", agent.core.log.written_bytes())
        .with_raw("refused", agent.core.log.refused_records());
    // Why the log is full.
    let log = match agent.core.log.no_room() {
        None => log.with_raw("full", "null"),
        Some(LogFullCause::Limit) => log.with_text("full", "limit"),
        Some(LogFullCause::Disk) => log.with_text("full", "disk"),
    };
    log.into_json()
}
