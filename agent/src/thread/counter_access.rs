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

use crate::thread::ThreadParts;
use crate::thread::ThreadState;
use crate::thread::names::thread_name;
use crate::thread::tags::TagSet;
use crate::thread::thread_counters::{ThreadCounters, thread_kind};
use lucce_jvmti::JniEnvironment;

/// The current thread's counters. The borrow must end before anything else uses the thread's state.
pub fn current_counters<'s>(
    agent: ThreadParts<'_>,
    env: JniEnvironment,
    state: &'s ThreadState,
) -> RefMut<'s, ThreadCounters> {
    let (is_virtual, origin) = (state.is_virtual, state.origin);
    state.thread_counters(|| {
        let name = thread_name(agent, env);
        let tags = state.tags.borrow().current_set();
        match tags == TagSet::NONE {
            true => take_counters(agent, env, name, (is_virtual, origin)),
            false => {
                let kind = thread_kind(&name);
                let user = CounterUser {
                    tags,
                    kind: &kind,
                    name: &name,
                };
                let counters = take_tagged_counters(agent, env, user, (is_virtual, origin));
                agent.counters.coverage.assign_counters(&counters);
                counters
            }
        }
    })
}

/// Takes counters for the current thread, which has this name and was started in the context `origin`.
pub fn take_counters(
    agent: ThreadParts<'_>,
    env: JniEnvironment,
    name: String,
    (is_virtual, origin): (bool, ContextId),
) -> ThreadCounters {
    let mut counters = agent.counters.counter_pool.take_for_thread(name);
    assign_thread(agent, env, &mut counters, (is_virtual, origin));
    agent.counters.coverage.assign_counters(&counters);
    if let (Some(id), false) = (counters.id, counters.shared) {
        // From now on these counters cover several threads.
        mark_shared(agent, &mut counters, id);
    }
    log_origin(agent, &mut counters);
    counters
}

/// Who uses counters: a thread while it has these tags.
#[derive(Clone, Copy)]
pub struct CounterUser<'n> {
    pub tags: TagSet,
    /// The kind of the thread's name.
    pub kind: &'n str,
    pub name: &'n str,
}

/// Takes counters for events of the current thread under the user's tags.
pub fn take_tagged_counters(
    agent: ThreadParts<'_>,
    env: JniEnvironment,
    user: CounterUser<'_>,
    (is_virtual, origin): (bool, ContextId),
) -> ThreadCounters {
    let mut counters = agent.counters.counter_pool.take_free(user.tags, user.kind);
    let is_known = counters.name == user.name;
    if !is_known {
        counters.name = user.name.to_owned();
    }
    assign_thread(agent, env, &mut counters, (is_virtual, origin));
    if let (Some(id), false, false) = (counters.id, counters.shared, is_known) {
        mark_shared(agent, &mut counters, id);
    }
    log_origin(agent, &mut counters);
    counters
}

fn assign_thread(
    agent: ThreadParts<'_>,
    env: JniEnvironment,
    counters: &mut ThreadCounters,
    (is_virtual, origin): (bool, ContextId),
) {
    counters.is_virtual = is_virtual;
    counters.env = env.as_raw() as usize;
    // Virtual threads share agent. Their contexts contain the origin: see `tasks`.
    counters.origin = match is_virtual && agent.counters.tracking.is_lazy() {
        true => ContextId::UNKNOWN,
        false => origin,
    };
}

/// Logs that several threads have used these counters.
fn mark_shared(agent: ThreadParts<'_>, counters: &mut ThreadCounters, id: ThreadId) {
    counters.shared = true;
    agent.counters.name_thread(id, &counters.kind);
    agent.core.append_record(ThreadRecord {
        id,
        name: counters.kind.as_str().into(),
        is_virtual: counters.is_virtual,
    });
}

/// Returns the counters of a thread that has ended. The next thread of its kind takes them over.
pub fn return_counters(agent: ThreadParts<'_>, counters: ThreadCounters) {
    if let (Some(id), false) = (counters.id, counters.shared) {
        agent.core.append_record(ThreadEnd { id });
    }
    match agent.counters.tracking.has_own_indices() {
        false => agent.counters.counter_pool.return_counters(counters),
        // Their index is meaningless to another thread.
        true => agent.counters.counter_pool.discard_counters(counters),
    }
}

/// The thread id of these counters in the log, with the name of their first thread. The first call logs it.
pub fn log_thread_id(agent: ThreadParts<'_>, counters: &mut ThreadCounters) -> ThreadId {
    if let Some(known) = counters.id {
        return known;
    }
    let id = ThreadId(
        agent
            .core
            .counts
            .next_thread
            .fetch_add(1, Ordering::Relaxed)
            + 1,
    );
    agent.counters.name_thread(id, &counters.name);
    agent.core.append_record(ThreadRecord {
        id,
        name: counters.name.as_str().into(),
        is_virtual: counters.is_virtual,
    });
    for (key, value) in agent.counters.tags.pairs(counters.tags).iter() {
        agent.core.append_record(ThreadTag {
            thread: id,
            key: (&**key).into(),
            value: (&**value).into(),
        });
    }
    counters.id = Some(id);
    agent.counters.coverage.assign_counters(counters);
    log_origin(agent, counters);
    id
}

/// Logs the context that started the current thread, if these counters' thread id is in the log.
fn log_origin(agent: ThreadParts<'_>, counters: &mut ThreadCounters) {
    if let Some(thread) = counters.id
        && let Some(context) = counters.take_new_origin()
    {
        agent.core.append_record(ThreadOrigin { thread, context });
    }
}

/// Removes contexts that left the graph from the index before it grows. Java code is then given the index's new
/// address.
pub fn sweep_index(agent: ThreadParts<'_>, counters: &mut ThreadCounters) {
    counters.sweep_index(agent.core.encoder.sweep_count(), |numbers| {
        living_numbers(agent, numbers)
    });
}

/// Removes samples' counters whose contexts left the graph, before their table grows.
pub fn sweep_samples(agent: ThreadParts<'_>, counters: &mut ThreadCounters) {
    counters.sweep_samples(agent.core.encoder.sweep_count(), |numbers| {
        living_numbers(agent, numbers)
    });
}

fn living_numbers(agent: ThreadParts<'_>, numbers: &[ContextId]) -> Vec<bool> {
    agent.core.encoder.check_liveness(numbers, MethodId::EVENT)
}

/// A new allocation counter. `None`: the log is full.
pub fn new_counter(
    agent: ThreadParts<'_>,
    counters: &mut ThreadCounters,
    number: ContextId,
) -> Option<&'static AllocationCounter> {
    let id = log_thread_id(agent, counters);
    counters.next_counter(number, |cells| {
        let block = agent.core.log.add_counters(id, cells).ok()?;
        // SAFETY: the block is kept as long as the agent, and per-thread counters are used no longer than that.
        let cells = unsafe { block.as_static() };
        agent.counters.lock_counter_blocks().push(block);
        Some(cells)
    })
}

/// The counter of a context and a type. `None`: the context is unknown, or the log is full.
pub fn event_counter(
    agent: ThreadParts<'_>,
    counters: &mut ThreadCounters,
    number: ContextId,
    event: EventTypeId,
) -> Option<&'static EventCounter> {
    if number == ContextId::UNKNOWN {
        return None;
    }
    let id = log_thread_id(agent, counters);
    counters.sweep_types(agent.core.encoder.sweep_count(), |numbers| {
        living_numbers(agent, numbers)
    });
    counters.event_counter(number, event, |cells| {
        let block = agent.core.log.add_event_counters(id, cells).ok()?;
        // SAFETY: the block is kept as long as the agent, and per-thread counters are used no longer than that.
        let cells = unsafe { block.as_static() };
        agent.counters.lock_event_counter_blocks().push(block);
        Some(cells)
    })
}
