//! With `calls=on`: passes what the hooks report to the recording, by the frame's slot.

use std::sync::Arc;

use jvmti_bindings::sys::jni::jlong;
use lucce_jvmti::JniEnvironment;

use crate::memory::locks::WatchedMutex;
use crate::memory::slots::Slot;
use crate::registry::call_recorder::{
    CallRecorder, FrameNotification, RecordedFrame, ThreadCallRecord,
};
use crate::stack::{StackParts, vm_entry};
use crate::thread::ThreadState;
use crate::thread::names::{read_name, thread_name};

/// Records one step of the current thread, in the frame with slot `slot`. `what` is the code that the helper class
/// passes: see [`FrameNotification`].
pub fn record_step(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    what: i32,
    (slot, site): (Slot, u32),
) {
    let Some(recorder) = &agent.counters.tracking.recorder else {
        return;
    };
    let recorded = thread_recording(agent, recorder, env, state);
    if recorder.has_unhooked_frames(&recorded, (state.first_slot(), slot)) {
        vm_entry::repair_slots(agent, env, state, slot, slot);
    }
    let frame = RecordedFrame {
        first: state.first_slot(),
        slot,
        site,
    };
    match FrameNotification::from_code(what) {
        Some(FrameNotification::Entered) => {
            recorder.record_entry(&recorded, &agent.core.method_of_site, frame);
        }
        Some(what @ (FrameNotification::Call | FrameNotification::Event)) => {
            let methods = &agent.core.method_of_site;
            recorder.record_site(&recorded, methods, frame, what == FrameNotification::Event);
            if recorder.is_thread_start(methods.get(site)) {
                give_ticket(agent, recorder, env, &recorded);
            }
        }
        Some(FrameNotification::Returned) => recorder.record_return(&recorded, slot),
        Some(FrameNotification::Thrown) => recorder.record_unwind(&recorded, slot),
        None => {}
    }
}

/// The current thread's part of the recording.
fn thread_recording(
    agent: StackParts<'_>,
    recorder: &CallRecorder,
    env: JniEnvironment,
    state: &ThreadState,
) -> Arc<WatchedMutex<ThreadCallRecord>> {
    let recorded = state.tracking.recording.get_or_init(|| {
        let started = recorder.claim_started_thread(state.tracking.ticket);
        started.unwrap_or_else(|| recorder.record_thread(&thread_name(agent.thread_parts(), env)))
    });
    Arc::clone(recorded)
}

/// Gives a ticket to a thread that is about to start: the `this` of the innermost frame. Until that thread runs, its
/// field for the recording holds the negated ticket.
fn give_ticket(
    agent: StackParts<'_>,
    recorder: &CallRecorder,
    env: JniEnvironment,
    parent: &WatchedMutex<ThreadCallRecord>,
) {
    let (Some(fields), Some(thread)) = (agent.core.fields.get(), agent.core.jvmti.innermost_this())
    else {
        return;
    };
    let is_new = env.get_long(thread, fields.ticket.as_raw()) == 0
        && env.get_long(thread, fields.state.as_raw()) == 0;
    if is_new {
        let name = read_name(env, thread, *fields);
        let ticket = recorder.record_started_thread(&name, parent);
        env.set_long(thread, fields.ticket.as_raw(), -(ticket as jlong));
    }
    env.delete_local(thread);
}
