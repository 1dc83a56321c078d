//! The life of a thread: when it gets its shadow stack and its record, how the current one is found, what its end gives
//! back.
#![allow(unsafe_code, reason = "the state that the current thread holds")]

use jvmti_bindings::sys::jni::{jint, jlong, jobject};
use lucce_callgraph::ContextId;
use lucce_vm::Env;

use crate::core::{ThreadFields, VerifySums, thread_fields};
use crate::memory::map::stack_size;
use crate::memory::shared_layout::SCHEDULING;
use crate::memory::slots::Slot;
use crate::thread::{Counters, OwnState, ThreadState, carrier, cells};

/// The current thread's, if the agent knows it.
pub fn current_state(counters: &Counters, env: Env) -> OwnState {
    let Some(thread) = counters.jvmti.current_thread() else {
        return OwnState::NONE;
    };
    let state = state_of(counters, env, thread);
    env.forget(thread);
    state
}

/// As [`current_state`]: `thread` is the current one.
pub fn state_of(counters: &Counters, env: Env, thread: jobject) -> OwnState {
    carrier::holder(counters, env, thread, |thread| held(counters, env, thread))
}

/// `thread`: the current one, or the carrier that it acts as.
fn held(counters: &Counters, env: Env, thread: jobject) -> OwnState {
    let Some(fields) = counters.fields.get() else {
        return OwnState::NONE;
    };
    // SAFETY: as said.
    let known = || unsafe { OwnState::of_field(env.get_long(thread, fields.state.id())) };
    if known().get().is_none() {
        // Threads from before the start get theirs at their first event; those that have ended get none.
        let pointer = Slot::at(env.get_long(thread, fields.pointer.id()) as usize);
        if counters.stacks.of_boot(pointer).is_some() {
            enlist(counters, env, thread, pointer);
        }
    }
    known()
}

/// A thread that has no frames yet gets its shadow stack.
pub fn begin(counters: &Counters, env: Env, thread: jobject) {
    let Some(fields) = thread_fields(counters, env, thread) else {
        return;
    };
    if env.get_long(thread, fields.state.id()) == 0
        && let Some(first) = enlist(counters, env, thread, Slot::at(0))
    {
        env.set_long(thread, fields.pointer.id(), first.pointer() as jlong);
    }
}

/// Begins the current thread, which the VM has just started and which has no frames. What the VM has run before, to make the
/// object of a native thread, has left the pointer behind.
pub fn begin_started(counters: &Counters, env: Env, thread: jobject) {
    begin(counters, env, thread);
    if let Some(fields) = thread_fields(counters, env, thread)
        && let Some(state) = held(counters, env, thread).get()
    {
        let first = state.first_slot().pointer();
        env.set_long(thread, fields.pointer.id(), first as jlong);
    }
}

/// Begins the current thread, if all of its frames have ended. Where its pointer was left does not matter.
pub fn begin_anew(counters: &Counters, env: Env) {
    let Some(thread) = counters.jvmti.current_thread() else {
        return;
    };
    if counters.jvmti.frame(0).is_none()
        && let Some(fields) = thread_fields(counters, env, thread)
        && let Some(state) = state_of(counters, env, thread).get()
    {
        let first = state.first_slot().pointer();
        env.set_long(thread, fields.pointer.id(), first as jlong);
    }
    env.forget(thread);
}

/// Begins a thread all of whose frames so far are out of scope.
pub fn begin_now(counters: &Counters, env: Env, thread: jobject) {
    let pointer = thread_fields(counters, env, thread).map(|fields| fields.pointer.id());
    if pointer.is_some_and(|pointer| env.get_long(thread, pointer) == 0) {
        begin(counters, env, thread);
    }
}

/// Gives a thread a record, and a shadow stack unless it has one from before the start; its first
/// slot.
pub fn enlist(counters: &Counters, env: Env, thread: jobject, pointer: Slot) -> Option<Slot> {
    let fields = thread_fields(counters, env, thread)?;
    let boot = counters.stacks.of_boot(pointer);
    let region = boot.or_else(|| counters.stacks.take(stack_size()))?;
    let is_virtual = env.is_virtual_thread(thread);
    let mut state = ThreadState::new(region, is_virtual, counters.verify.begin_thread());
    state.ticket = taken_ticket(env, thread, fields);
    let origin = env.get_long(thread, fields.origin.id());
    // A running thread's field says something else, see `LucceRt.schedules`.
    state.origin = ContextId(if origin == SCHEDULING { 0 } else { origin } as u64);
    let first = state.first_slot();
    let own = OwnState::begin(state);
    if let Some(state) = own.get() {
        counters.threads.add(own.field(), state.slots());
    }
    env.set_long(thread, fields.state.id(), own.field());
    Some(first)
}

/// The current thread's name; empty while its constructor has not set it.
///
/// Not from the tool interface: JDK 21 waits there until no virtual thread is being mounted or unmounted,
/// and so for ever if that is what this thread does.
pub fn thread_name(counters: &Counters, env: Env) -> String {
    let (Some(fields), Some(thread)) = (counters.fields.get(), counters.jvmti.current_thread())
    else {
        return String::new();
    };
    let name = name_of(env, thread, *fields);
    env.forget(thread);
    name
}

pub fn name_of(env: Env, thread: jobject, fields: ThreadFields) -> String {
    let name = env.get_object(thread, fields.name.id());
    if name.is_null() {
        return String::new();
    }
    let text = env.text(name, jint::MAX as usize);
    env.forget(name);
    text
}

/// Of how many events of all threads some were to be compared.
pub fn sum_verified(counters: &Counters) -> VerifySums {
    counters.threads.read_fields(|fields| {
        // SAFETY: a thread takes its state from the list before it frees it, so it lives. Only atomics of it are read.
        let states: Vec<_> = fields
            .map(|field| unsafe { OwnState::of_field(field) })
            .collect();
        let living = states.iter().filter_map(OwnState::get);
        counters.verify.sums(living.map(|state| &state.countdown))
    })
}

/// A thread has ended: its shadow stack is free again. Its cells stay in the log.
pub fn detach(counters: &Counters, env: Env, thread: jobject) {
    let Some(fields) = counters.fields.get() else {
        return;
    };
    // SAFETY: of the thread that ends, which is the current one.
    let own = unsafe { OwnState::of_field(env.get_long(thread, fields.state.id())) };
    if own.get().is_none() {
        return;
    }
    for field in [
        fields.pointer,
        fields.events,
        fields.state,
        fields.ticket,
        fields.origin,
    ] {
        env.set_long(thread, field.id(), 0);
    }
    counters.threads.remove(own.field(), || {
        if let Some(state) = own.get() {
            counters.verify.end_thread(&state.countdown);
        }
    });
    // SAFETY: the thread's field forgot it just now, and this is the last that the thread does.
    let Some(mut state) = (unsafe { own.end() }) else {
        return;
    };
    if let Some(mut lane) = state.take_lane() {
        lane.place = std::mem::take(&mut state.place);
        cells::give(counters, lane);
    }
    if let Some(lane) = state.untagged.take() {
        cells::give(counters, *lane);
    }
    if let (Some(recorder), Some(recorded)) = (&counters.recorder, state.recorded.get()) {
        recorder.left(recorded);
    }
    counters.comparison.ended(&state.compared().tree);
    counters.stacks.give(state.region);
}

fn taken_ticket(env: Env, thread: jobject, fields: ThreadFields) -> usize {
    let held = env.get_long(thread, fields.ticket.id());
    if held >= 0 {
        return 0;
    }
    env.set_long(thread, fields.ticket.id(), 0);
    usize::try_from(-held).unwrap_or(0)
}
