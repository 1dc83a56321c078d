//! With `record=calls`: what a frame tells the recording, by its slot.

use std::sync::Arc;

use jvmti_bindings::sys::jni::jlong;
use lucce_vm::Env;

use crate::book::calls::{Recorded, Recorder, What};
use crate::memory::locks::WatchedMutex;
use crate::memory::slots::Slot;
use crate::stack::{Stack, upcall};
use crate::thread::ThreadState;
use crate::thread::life::{name_of, thread_name};

/// `what`: as the helper class has it.
pub fn told(stack: &Stack, env: Env, state: &ThreadState, (what, slot, site): (i32, Slot, u32)) {
    let Some(recorder) = &stack.recorder else {
        return;
    };
    let recorded = recorded(stack, recorder, env, state);
    if recorder.meets_bare(&recorded, (state.first_slot(), slot)) {
        upcall::repair(stack, env, state, slot, slot);
    }
    match What::of(what) {
        Some(What::Entered) => {
            let place = (state.first_slot(), slot, site);
            recorder.entered(&recorded, &stack.method_of_site, place);
        }
        Some(what @ (What::Call | What::Event)) => {
            let place = (state.first_slot(), slot, site);
            let methods = &stack.method_of_site;
            recorder.at(&recorded, methods, place, what == What::Event);
            if recorder.starts(methods.get(site)) {
                give_ticket(stack, recorder, env, &recorded);
            }
        }
        Some(What::Returned) => recorder.returned(&recorded, slot),
        Some(What::Thrown) => recorder.ended(&recorded, slot),
        None => {}
    }
}

/// The thread's part of the recording.
fn recorded(
    stack: &Stack,
    recorder: &Recorder,
    env: Env,
    state: &ThreadState,
) -> Arc<WatchedMutex<Recorded>> {
    let recorded = state.recorded.get_or_init(|| {
        let started = recorder.claim(state.ticket);
        started.unwrap_or_else(|| recorder.thread(&thread_name(stack, env)))
    });
    Arc::clone(recorded)
}

/// The innermost `this` is a thread that is about to start. Until it runs, its field for the recording
/// holds the ticket, negative.
fn give_ticket(stack: &Stack, recorder: &Recorder, env: Env, parent: &WatchedMutex<Recorded>) {
    let (Some(fields), Some(thread)) = (stack.fields.get(), stack.jvmti.innermost_this()) else {
        return;
    };
    let is_new = env.get_long(thread, fields.ticket.id()) == 0
        && env.get_long(thread, fields.state.id()) == 0;
    if is_new {
        let name = name_of(env, thread, *fields);
        let ticket = recorder.start(&name, parent);
        env.set_long(thread, fields.ticket.id(), -(ticket as jlong));
    }
    env.forget(thread);
}
