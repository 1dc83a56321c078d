//! The life of a thread. Gives it a shadow stack and a state, finds the state of the current thread, and frees both
//! at the thread's end.
#![allow(unsafe_code, reason = "the state that the current thread holds")]

use jvmti_bindings::sys::jni::{jlong, jobject};
use lucce_callgraph::ContextId;
use lucce_jvmti::JniEnvironment;

use crate::core::{VerifySums, thread_fields};
use crate::memory::address_space::{self, stack_size};
use crate::memory::shared_layout::SCHEDULING;
use crate::memory::slots::Slot;
use crate::thread::tags::{OpenTags, TagSet};
use crate::thread::{OwnState, ThreadParts, ThreadState, carrier, counter_access};

/// The state of the current thread, if the agent knows the thread.
pub fn current_state(agent: ThreadParts<'_>, env: JniEnvironment) -> OwnState {
    let Some(thread) = agent.core.jvmti.current_thread() else {
        return OwnState::NONE;
    };
    let state = state_of(agent, env, thread);
    env.delete_local(thread);
    state
}

/// Like [`current_state`]; `thread` is the current thread.
pub fn state_of(agent: ThreadParts<'_>, env: JniEnvironment, thread: jobject) -> OwnState {
    carrier::with_field_holder(agent, env, thread, |thread| read_state(agent, env, thread))
}

/// Reads the state from `thread`: the current thread, or the carrier that it acts as.
fn read_state(agent: ThreadParts<'_>, env: JniEnvironment, thread: jobject) -> OwnState {
    let Some(fields) = agent.core.fields.get() else {
        return OwnState::NONE;
    };
    // SAFETY: `thread` is the current thread, or the carrier that it acts as.
    let known = || unsafe { OwnState::from_field(env.get_long(thread, fields.state.as_raw())) };
    if known().get().is_none() {
        // Threads older than the start get a state at their first event; threads that have ended get none.
        let pointer = Slot::from_pointer(env.get_long(thread, fields.pointer.as_raw()) as usize);
        if agent.core.stacks.find_boot_region(pointer).is_some() {
            enlist_thread(agent, env, thread, pointer);
        }
    }
    known()
}

/// Gives a shadow stack to a thread that has no frames yet.
pub fn begin_thread(agent: ThreadParts<'_>, env: JniEnvironment, thread: jobject) {
    let Some(fields) = thread_fields(agent.core, env, thread) else {
        return;
    };
    if env.get_long(thread, fields.state.as_raw()) == 0
        && let Some(first) = enlist_thread(agent, env, thread, Slot::from_pointer(0))
    {
        env.set_long(thread, fields.pointer.as_raw(), first.pointer() as jlong);
    }
}

/// Begins the current thread, which the VM has just started and which has no frames. The VM may have run Java code
/// before, to make the object of a native thread, which moved the pointer.
pub fn begin_started(agent: ThreadParts<'_>, env: JniEnvironment, thread: jobject) {
    begin_thread(agent, env, thread);
    if let Some(fields) = thread_fields(agent.core, env, thread)
        && let Some(state) = read_state(agent, env, thread).get()
    {
        let first = state.first_slot().pointer();
        env.set_long(thread, fields.pointer.as_raw(), first as jlong);
    }
}

/// Begins the current thread again if all of its frames have ended. The old value of its pointer does not matter.
pub fn begin_anew(agent: ThreadParts<'_>, env: JniEnvironment) {
    let Some(thread) = agent.core.jvmti.current_thread() else {
        return;
    };
    if agent.core.jvmti.frame_location(0).is_none()
        && let Some(fields) = thread_fields(agent.core, env, thread)
        && let Some(state) = state_of(agent, env, thread).get()
    {
        let first = state.first_slot().pointer();
        env.set_long(thread, fields.pointer.as_raw(), first as jlong);
    }
    env.delete_local(thread);
}

/// Begins a thread whose frames so far are all out of scope.
pub fn begin_out_of_scope(agent: ThreadParts<'_>, env: JniEnvironment, thread: jobject) {
    let pointer = thread_fields(agent.core, env, thread).map(|fields| fields.pointer.as_raw());
    if pointer.is_some_and(|pointer| env.get_long(thread, pointer) == 0) {
        begin_thread(agent, env, thread);
    }
}

/// Gives a thread a state, and a shadow stack unless it has one from before the start. Returns its first slot. `None`: no
/// stack is left. Then the thread never gets one, because its frames use scratch memory, as those of other such threads do.
pub fn enlist_thread(
    agent: ThreadParts<'_>,
    env: JniEnvironment,
    thread: jobject,
    pointer: Slot,
) -> Option<Slot> {
    let fields = thread_fields(agent.core, env, thread)?;
    if address_space::is_of_stackless_thread(pointer) {
        return None;
    }
    let boot = agent.core.stacks.find_boot_region(pointer);
    let Some(region) = boot.or_else(|| agent.core.stacks.take_region(stack_size())) else {
        let stackless = address_space::stackless_pointer().pointer();
        env.set_long(thread, fields.pointer.as_raw(), stackless as jlong);
        return None;
    };
    let is_virtual = env.is_virtual_thread(thread);
    let mut state = ThreadState::new(region, is_virtual, agent.core.verify.begin_thread());
    state.tracking = agent.counters.tracking.begin_thread(env, thread, fields);
    let origin = env.get_long(thread, fields.origin.as_raw());
    // The field of a running thread has another meaning: see `LucceRtTasks.beforeSchedule`.
    state.origin = ContextId(if origin == SCHEDULING { 0 } else { origin } as u64);
    state.alive = agent
        .counters
        .alive_threads
        .add_thread(agent.core, state.origin);
    let tags = env.get_long(thread, fields.tags.as_raw());
    if let Some(number) = u32::try_from(tags).ok().filter(|number| *number != 0) {
        state
            .tags
            .replace(OpenTags::within_set(TagSet::from_number(number)));
        state.publish_tags();
    }
    let first = state.first_slot();
    let own = OwnState::from_state(state);
    if let Some(state) = own.get() {
        agent.core.threads.insert(own.as_field(), state.slots());
    }
    env.set_long(thread, fields.state.as_raw(), own.as_field());
    Some(first)
}

/// Verification counts of all threads: events, and compared events.
pub fn sum_verified(agent: ThreadParts<'_>) -> VerifySums {
    agent.core.threads.read_fields(|fields| {
        // SAFETY: a thread takes its state from the list before it frees it, so it lives. Only atomics of it are read.
        let states: Vec<_> = fields
            .map(|field| unsafe { OwnState::from_field(field) })
            .collect();
        let living = states.iter().filter_map(OwnState::get);
        agent
            .core
            .verify
            .sum_threads(living.map(|state| &state.countdown))
    })
}

/// Ends a thread: frees its shadow stack. Its counters stay in the log.
pub fn end_thread(agent: ThreadParts<'_>, env: JniEnvironment, thread: jobject) {
    let Some(fields) = agent.core.fields.get() else {
        return;
    };
    // SAFETY: the field is that of the thread that ends, which is the current one.
    let own = unsafe { OwnState::from_field(env.get_long(thread, fields.state.as_raw())) };
    if own.get().is_none() {
        return;
    }
    let own_fields = [
        fields.pointer,
        fields.events,
        fields.state,
        fields.origin,
        fields.tags,
    ];
    for field in own_fields.into_iter().chain(fields.ticket) {
        env.set_long(thread, field.as_raw(), 0);
    }
    agent.core.threads.remove(own.as_field(), || {
        if let Some(state) = own.get() {
            agent.core.verify.end_thread(&state.countdown);
        }
    });
    // SAFETY: the thread's field forgot it just now, and this is the last that the thread does.
    let Some(mut state) = (unsafe { own.into_state() }) else {
        return;
    };
    if let Some(alive) = state.alive {
        agent
            .counters
            .alive_threads
            .remove_thread(agent.core, alive);
    }
    if let Some(mut counters) = state.take_counters() {
        counters.place = std::mem::take(&mut state.place);
        counter_access::return_counters(agent, counters);
    }
    if let Some(counters) = state.untagged_counters.take() {
        counter_access::return_counters(agent, *counters);
    }
    agent.counters.tracking.end_thread(&state.tracking);
    agent.core.stacks.return_region(state.region);
}
