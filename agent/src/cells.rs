//! Where a thread counts: the lane that it has from its first event on, what the log knows of that lane,
//! and the cells of the log that it gets.

use std::cell::RefMut;
use std::sync::atomic::Ordering;

use lucce_callgraph::{ContextId, MethodId};
use lucce_tracelog::{Cell, EventCell, EventTypeId, Thread, ThreadEnd, ThreadId, ThreadOrigin};

use crate::agent::Agent;
use crate::jvm::Env;
use crate::lane::Lane;
use crate::natives;
use crate::options::Tracking;
use crate::thread::ThreadState;

/// The current thread's lane. What is borrowed must not be kept while anything else uses the thread.
pub fn lane_of<'s>(agent: &Agent, env: Env, state: &'s ThreadState) -> RefMut<'s, Lane> {
    let (is_virtual, origin) = (state.is_virtual, state.origin);
    state.lane(|| {
        let name = natives::thread_name(agent, env);
        take(agent, env, name, (is_virtual, origin))
    })
}

/// A lane for the current thread, of this name, which the context `origin` has started.
pub fn take(
    agent: &Agent,
    env: Env,
    name: String,
    (is_virtual, origin): (bool, ContextId),
) -> Lane {
    let mut lane = agent.lanes.take(name);
    lane.is_virtual = is_virtual;
    lane.env = env.raw() as usize;
    agent.coverage.counts_in(&lane);
    // Virtual threads share one lane; their contexts say it themselves, see `tasks`.
    lane.origin = match is_virtual && agent.options.tracking == Tracking::Lazy {
        true => ContextId::UNKNOWN,
        false => origin,
    };
    if let (Some(id), false) = (lane.id, lane.shared) {
        // From now on what it counts is not one thread's.
        lane.shared = true;
        agent.note(Thread {
            id,
            name: lane.kind.as_str().into(),
            is_virtual,
        });
    }
    tell_origin(agent, &mut lane);
    lane
}

/// Its thread has ended: the next one of its kind goes on with it.
pub fn give(agent: &Agent, lane: Lane) {
    if let (Some(id), false) = (lane.id, lane.shared) {
        agent.note(ThreadEnd { id });
    }
    match agent.options.tracking {
        Tracking::Lazy | Tracking::Paper => agent.lanes.give(lane),
        // Its index holds nodes of the thread's tree, which ends here.
        Tracking::Cct => agent.lanes.end(lane),
    }
}

/// The lane's number in the log, with the name of its first thread.
pub fn id(agent: &Agent, lane: &mut Lane) -> ThreadId {
    if let Some(known) = lane.id {
        return known;
    }
    let id = ThreadId(agent.counts.next_thread.fetch_add(1, Ordering::Relaxed) + 1);
    agent.note(Thread {
        id,
        name: lane.name.as_str().into(),
        is_virtual: lane.is_virtual,
    });
    lane.id = Some(id);
    agent.coverage.counts_in(lane);
    tell_origin(agent, lane);
    id
}

/// The log knows which contexts started the threads of a lane that it knows.
fn tell_origin(agent: &Agent, lane: &mut Lane) {
    if let Some(thread) = lane.id
        && let Some(context) = lane.new_origin()
    {
        agent.note(ThreadOrigin { thread, context });
    }
}

/// What has left the graph leaves the lane's index before that grows. Java code is told where the index is then.
pub fn sweep(agent: &Agent, lane: &mut Lane) {
    lane.sweep(agent.encoder.sweeps(), |numbers| living(agent, numbers));
}

/// The same of samples.
pub fn sweep_samples(agent: &Agent, lane: &mut Lane) {
    lane.sweep_samples(agent.encoder.sweeps(), |numbers| living(agent, numbers));
}

fn living(agent: &Agent, numbers: &[ContextId]) -> Vec<bool> {
    agent.encoder.living(numbers, MethodId::EVENT)
}

/// A new cell for allocations. `None`: the log is full.
pub fn new_cell(agent: &Agent, lane: &mut Lane, number: ContextId) -> Option<&'static Cell> {
    let id = id(agent, lane);
    lane.cell(number, |cells| {
        let counters = agent.log.counters(id, cells).ok()?;
        let cells = counters.forever();
        agent.all_cells().push(counters);
        Some(cells)
    })
}

/// The cell for a context and a type. `None`: the context is unknown, or the log is full.
pub fn event_cell(
    agent: &Agent,
    lane: &mut Lane,
    number: ContextId,
    event: EventTypeId,
) -> Option<&'static EventCell> {
    if number == ContextId::UNKNOWN {
        return None;
    }
    let id = id(agent, lane);
    lane.sweep_types(agent.encoder.sweeps(), |numbers| living(agent, numbers));
    lane.event_cell(number, event, |cells| {
        let counters = agent.log.event_counters(id, cells).ok()?;
        let cells = counters.forever();
        agent.all_event_cells().push(counters);
        Some(cells)
    })
}
