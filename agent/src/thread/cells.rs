//! Where a thread counts: the lane that it has from its first event on, what the log knows of that lane,
//! and the cells of the log that it gets.

#![allow(unsafe_code, reason = "cells that are kept as long as the agent")]

use std::cell::RefMut;
use std::sync::atomic::Ordering;

use lucce_callgraph::{ContextId, MethodId};
use lucce_tracelog::{
    Cell, EventCell, EventTypeId, Thread, ThreadEnd, ThreadId, ThreadOrigin, ThreadTag,
};

use crate::thread::Counters;
use crate::thread::ThreadState;
use crate::thread::lane::{Lane, kind};
use crate::thread::life::thread_name;
use crate::thread::tags::TagSet;
use lucce_vm::Env;

/// The current thread's lane. What is borrowed must not be kept while anything else uses the thread.
pub fn lane_of<'s>(counters: &Counters, env: Env, state: &'s ThreadState) -> RefMut<'s, Lane> {
    let (is_virtual, origin) = (state.is_virtual, state.origin);
    state.lane(|| {
        let name = thread_name(counters, env);
        let tags = state.tags.borrow().now();
        match tags == TagSet::NONE {
            true => take(counters, env, name, (is_virtual, origin)),
            false => {
                let kind = kind(&name);
                let named = (tags, &*kind, &*name);
                let lane = take_under(counters, env, named, (is_virtual, origin));
                counters.coverage.counts_in(&lane);
                lane
            }
        }
    })
}

/// A lane for the current thread, of this name, which the context `origin` has started.
pub fn take(
    counters: &Counters,
    env: Env,
    name: String,
    (is_virtual, origin): (bool, ContextId),
) -> Lane {
    let mut lane = counters.lanes.take(name);
    taken(counters, env, &mut lane, (is_virtual, origin));
    counters.coverage.counts_in(&lane);
    if let (Some(id), false) = (lane.id, lane.shared) {
        // From now on what it counts is not one thread's.
        share(counters, &mut lane, id);
    }
    tell_origin(counters, &mut lane);
    lane
}

/// A lane for what the current thread counts under tags. `kind`: that of its name.
pub fn take_under(
    counters: &Counters,
    env: Env,
    (tags, kind, name): (TagSet, &str, &str),
    (is_virtual, origin): (bool, ContextId),
) -> Lane {
    let mut lane = counters.lanes.free(tags, kind);
    let is_known = lane.name == name;
    if !is_known {
        lane.name = name.to_owned();
    }
    taken(counters, env, &mut lane, (is_virtual, origin));
    if let (Some(id), false, false) = (lane.id, lane.shared, is_known) {
        share(counters, &mut lane, id);
    }
    tell_origin(counters, &mut lane);
    lane
}

fn taken(counters: &Counters, env: Env, lane: &mut Lane, (is_virtual, origin): (bool, ContextId)) {
    lane.is_virtual = is_virtual;
    lane.env = env.raw() as usize;
    // Virtual threads share one lane; their contexts say it themselves, see `tasks`.
    lane.origin = match is_virtual && counters.comparison.is_off() {
        true => ContextId::UNKNOWN,
        false => origin,
    };
}

/// Several threads have used it.
fn share(counters: &Counters, lane: &mut Lane, id: ThreadId) {
    lane.shared = true;
    counters.name_thread(id, &lane.kind);
    counters.note(Thread {
        id,
        name: lane.kind.as_str().into(),
        is_virtual: lane.is_virtual,
    });
}

/// Its thread has ended: the next one of its kind goes on with it.
pub fn give(counters: &Counters, lane: Lane) {
    if let (Some(id), false) = (lane.id, lane.shared) {
        counters.note(ThreadEnd { id });
    }
    match counters.comparison.has_own_indices() {
        false => counters.lanes.give(lane),
        // What it holds means nothing to another thread.
        true => counters.lanes.end(lane),
    }
}

/// The lane's number in the log, with the name of its first thread.
pub fn id(counters: &Counters, lane: &mut Lane) -> ThreadId {
    if let Some(known) = lane.id {
        return known;
    }
    let id = ThreadId(counters.counts.next_thread.fetch_add(1, Ordering::Relaxed) + 1);
    counters.name_thread(id, &lane.name);
    counters.note(Thread {
        id,
        name: lane.name.as_str().into(),
        is_virtual: lane.is_virtual,
    });
    for (key, value) in counters.tags.pairs(lane.tags).iter() {
        counters.note(ThreadTag {
            thread: id,
            key: (&**key).into(),
            value: (&**value).into(),
        });
    }
    lane.id = Some(id);
    counters.coverage.counts_in(lane);
    tell_origin(counters, lane);
    id
}

/// The log knows which contexts started the threads of a lane that it knows.
fn tell_origin(counters: &Counters, lane: &mut Lane) {
    if let Some(thread) = lane.id
        && let Some(context) = lane.new_origin()
    {
        counters.note(ThreadOrigin { thread, context });
    }
}

/// What has left the graph leaves the lane's index before that grows. Java code is told where the index is then.
pub fn sweep(counters: &Counters, lane: &mut Lane) {
    lane.sweep(counters.encoder.sweeps(), |numbers| {
        living(counters, numbers)
    });
}

/// Counters of samples whose contexts are gone leave the lane's index before it grows.
pub fn sweep_samples(counters: &Counters, lane: &mut Lane) {
    lane.sweep_samples(counters.encoder.sweeps(), |numbers| {
        living(counters, numbers)
    });
}

fn living(counters: &Counters, numbers: &[ContextId]) -> Vec<bool> {
    counters.encoder.living(numbers, MethodId::EVENT)
}

/// A new cell for allocations. `None`: the log is full.
pub fn new_cell(counters: &Counters, lane: &mut Lane, number: ContextId) -> Option<&'static Cell> {
    let id = id(counters, lane);
    lane.cell(number, |cells| {
        let block = counters.log.counters(id, cells).ok()?;
        // SAFETY: the block is kept as long as the agent, and lanes are used no longer than that.
        let cells = unsafe { block.kept() };
        counters.all_cells().push(block);
        Some(cells)
    })
}

/// The cell for a context and a type. `None`: the context is unknown, or the log is full.
pub fn event_cell(
    counters: &Counters,
    lane: &mut Lane,
    number: ContextId,
    event: EventTypeId,
) -> Option<&'static EventCell> {
    if number == ContextId::UNKNOWN {
        return None;
    }
    let id = id(counters, lane);
    lane.sweep_types(counters.encoder.sweeps(), |numbers| {
        living(counters, numbers)
    });
    lane.event_cell(number, event, |cells| {
        let block = counters.log.event_counters(id, cells).ok()?;
        // SAFETY: the block is kept as long as the agent, and lanes are used no longer than that.
        let cells = unsafe { block.kept() };
        counters.all_event_cells().push(block);
        Some(cells)
    })
}
