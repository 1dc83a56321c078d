//! Access to a thread's counters: takes them at the thread's first event, logs their thread id and origin, and adds
//! counters of the log.

#![allow(unsafe_code, reason = "cells that are kept as long as the agent")]

use std::cell::RefMut;
use std::sync::atomic::Ordering;

use lucce_callgraph::{ContextId, MethodId};
use lucce_tracelog::{
    AllocationCounter, EventCounter, EventTypeId, ThreadEnd, ThreadId, ThreadOrigin, ThreadRecord,
    ThreadTag,
};

use crate::thread::CounterStore;
use crate::thread::ThreadState;
use crate::thread::lifecycle::thread_name;
use crate::thread::tags::TagSet;
use crate::thread::thread_counters::{ThreadCounters, thread_kind};
use lucce_jvmti::JniEnvironment;

/// The current thread's counters. The borrow must end before anything else uses the thread's state.
pub fn current_counters<'s>(
    counters: &CounterStore,
    env: JniEnvironment,
    state: &'s ThreadState,
) -> RefMut<'s, ThreadCounters> {
    let (is_virtual, origin) = (state.is_virtual, state.origin);
    state.thread_counters(|| {
        let name = thread_name(counters, env);
        let tags = state.tags.borrow().current_set();
        match tags == TagSet::NONE {
            true => take_counters(counters, env, name, (is_virtual, origin)),
            false => {
                let kind = thread_kind(&name);
                let named = (tags, &*kind, &*name);
                let lane = take_tagged_counters(counters, env, named, (is_virtual, origin));
                counters.coverage.assign_counters(&lane);
                lane
            }
        }
    })
}

/// Takes counters for the current thread, which has this name and was started in the context `origin`.
pub fn take_counters(
    counters: &CounterStore,
    env: JniEnvironment,
    name: String,
    (is_virtual, origin): (bool, ContextId),
) -> ThreadCounters {
    let mut lane = counters.counter_pool.take_for_thread(name);
    assign_thread(counters, env, &mut lane, (is_virtual, origin));
    counters.coverage.assign_counters(&lane);
    if let (Some(id), false) = (lane.id, lane.shared) {
        // From now on these counters cover several threads.
        mark_shared(counters, &mut lane, id);
    }
    log_origin(counters, &mut lane);
    lane
}

/// Takes counters for events of the current thread under `tags`. `kind`: the kind of its name.
pub fn take_tagged_counters(
    counters: &CounterStore,
    env: JniEnvironment,
    (tags, kind, name): (TagSet, &str, &str),
    (is_virtual, origin): (bool, ContextId),
) -> ThreadCounters {
    let mut lane = counters.counter_pool.take_free(tags, kind);
    let is_known = lane.name == name;
    if !is_known {
        lane.name = name.to_owned();
    }
    assign_thread(counters, env, &mut lane, (is_virtual, origin));
    if let (Some(id), false, false) = (lane.id, lane.shared, is_known) {
        mark_shared(counters, &mut lane, id);
    }
    log_origin(counters, &mut lane);
    lane
}

fn assign_thread(
    counters: &CounterStore,
    env: JniEnvironment,
    lane: &mut ThreadCounters,
    (is_virtual, origin): (bool, ContextId),
) {
    lane.is_virtual = is_virtual;
    lane.env = env.as_raw() as usize;
    // Virtual threads share counters. Their contexts contain the origin: see `tasks`.
    lane.origin = match is_virtual && counters.tracking.is_lazy() {
        true => ContextId::UNKNOWN,
        false => origin,
    };
}

/// Logs that several threads have used these counters.
fn mark_shared(counters: &CounterStore, lane: &mut ThreadCounters, id: ThreadId) {
    lane.shared = true;
    counters.name_thread(id, &lane.kind);
    counters.append_record(ThreadRecord {
        id,
        name: lane.kind.as_str().into(),
        is_virtual: lane.is_virtual,
    });
}

/// Returns the counters of a thread that has ended. The next thread of its kind takes them over.
pub fn return_counters(counters: &CounterStore, lane: ThreadCounters) {
    if let (Some(id), false) = (lane.id, lane.shared) {
        counters.append_record(ThreadEnd { id });
    }
    match counters.tracking.has_own_indices() {
        false => counters.counter_pool.return_counters(lane),
        // Their index is meaningless to another thread.
        true => counters.counter_pool.discard_counters(lane),
    }
}

/// The thread id of these counters in the log, with the name of their first thread. The first call logs it.
pub fn log_thread_id(counters: &CounterStore, lane: &mut ThreadCounters) -> ThreadId {
    if let Some(known) = lane.id {
        return known;
    }
    let id = ThreadId(counters.counts.next_thread.fetch_add(1, Ordering::Relaxed) + 1);
    counters.name_thread(id, &lane.name);
    counters.append_record(ThreadRecord {
        id,
        name: lane.name.as_str().into(),
        is_virtual: lane.is_virtual,
    });
    for (key, value) in counters.tags.pairs(lane.tags).iter() {
        counters.append_record(ThreadTag {
            thread: id,
            key: (&**key).into(),
            value: (&**value).into(),
        });
    }
    lane.id = Some(id);
    counters.coverage.assign_counters(lane);
    log_origin(counters, lane);
    id
}

/// Logs the context that started the current thread, if these counters' thread id is in the log.
fn log_origin(counters: &CounterStore, lane: &mut ThreadCounters) {
    if let Some(thread) = lane.id
        && let Some(context) = lane.take_new_origin()
    {
        counters.append_record(ThreadOrigin { thread, context });
    }
}

/// Removes contexts that left the graph from the index before it grows. Java code is then given the index's new
/// address.
pub fn sweep_index(counters: &CounterStore, lane: &mut ThreadCounters) {
    lane.sweep_index(counters.encoder.sweep_count(), |numbers| {
        living_numbers(counters, numbers)
    });
}

/// Removes samples' counters whose contexts left the graph, before their table grows.
pub fn sweep_samples(counters: &CounterStore, lane: &mut ThreadCounters) {
    lane.sweep_samples(counters.encoder.sweep_count(), |numbers| {
        living_numbers(counters, numbers)
    });
}

fn living_numbers(counters: &CounterStore, numbers: &[ContextId]) -> Vec<bool> {
    counters.encoder.check_liveness(numbers, MethodId::EVENT)
}

/// A new allocation counter. `None`: the log is full.
pub fn new_counter(
    counters: &CounterStore,
    lane: &mut ThreadCounters,
    number: ContextId,
) -> Option<&'static AllocationCounter> {
    let id = log_thread_id(counters, lane);
    lane.next_counter(number, |cells| {
        let block = counters.log.add_counters(id, cells).ok()?;
        // SAFETY: the block is kept as long as the agent, and per-thread counters are used no longer than that.
        let cells = unsafe { block.as_static() };
        counters.lock_counter_blocks().push(block);
        Some(cells)
    })
}

/// The counter of a context and a type. `None`: the context is unknown, or the log is full.
pub fn event_counter(
    counters: &CounterStore,
    lane: &mut ThreadCounters,
    number: ContextId,
    event: EventTypeId,
) -> Option<&'static EventCounter> {
    if number == ContextId::UNKNOWN {
        return None;
    }
    let id = log_thread_id(counters, lane);
    lane.sweep_types(counters.encoder.sweep_count(), |numbers| {
        living_numbers(counters, numbers)
    });
    lane.event_counter(number, event, |cells| {
        let block = counters.log.add_event_counters(id, cells).ok()?;
        // SAFETY: the block is kept as long as the agent, and per-thread counters are used no longer than that.
        let cells = unsafe { block.as_static() };
        counters.lock_event_counter_blocks().push(block);
        Some(cells)
    })
}
