//! The native methods of the helper classes that only the lab's agent has.
#![allow(
    unsafe_code,
    reason = "functions that the JVM calls, with pointers that it was given here"
)]

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jint, jlong};
use lucce_callgraph::{MethodId, SiteId};
use lucce_jvmti::JniEnvironment;

use crate::memory::locks::WatchedMutex;
use crate::memory::slots::Slot;
use crate::session::guard::guard_callback;
use crate::stack::caller_frames::EventPlace;
use crate::stack::{StackParts, vm_entry};
use crate::thread::names::{read_name, thread_name};
use crate::thread::{OwnState, ThreadState};
use crate::tracking::{RecordedFrame, ThreadCallRecord};

/// With `tracking=cct`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtComparison_addChild(
    _: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    node: jlong,
    site: jint,
    callee: jint,
) -> jlong {
    guard_callback(0, |agent| {
        let place = (node as u64, SiteId(site as u32));
        let callee = MethodId(callee as u32);
        let tracking = &agent.counters.tracking;
        let child = own
            .get()
            .and_then(|state| tracking.add_node(&state.tracking, place, callee));
        child.map_or(0, |node| node as jlong)
    })
}

/// With `tracking=paper`: `site` calls a method with slot `slot`, and the graph may change.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtComparison_updateGraph(
    _: *mut JNIEnv,
    _: jclass,
    slot: jlong,
    site: jint,
    callee: jint,
) {
    guard_callback((), |agent| {
        if slot != 0 {
            let (slot, site) = (Slot::from_pointer(slot as usize), SiteId(site as u32));
            agent
                .counters
                .tracking
                .record_entry(&agent.core, slot, site, MethodId(callee as u32));
        }
    });
}

/// With `tracking=paper`: the number of the frame of `method` with slot `slot`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtComparison_resolveNumber(
    _: *mut JNIEnv,
    _: jclass,
    slot: jlong,
    method: jint,
) -> jlong {
    guard_callback(0, |agent| match slot {
        0 => 0,
        _ => {
            let slot = Slot::from_pointer(slot as usize);
            let method = MethodId(method as u32);
            let tracking = &agent.counters.tracking;
            tracking.number_in_slots(&agent.core, slot, method).0 as jlong
        }
    })
}

/// With `calls=on`: records one step of a frame, given by its slot.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtRecording_writeStep(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    what: jint,
    slot: jlong,
    site: jint,
) {
    guard_callback((), |agent| {
        if let Some(state) = own.get() {
            let (agent, env) = (agent.stack_parts(), agent.core.jni_env(env));
            let frame = (Slot::from_pointer(slot as usize), site as u32);
            record_call_step(agent, env, state, what, frame);
        }
    });
}

/// Records one step of the current thread, in the frame with slot `slot`. `what` is the code that the helper class passes.
fn record_call_step(
    agent: StackParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    what: i32,
    (slot, site): (Slot, u32),
) {
    let Some(recorder) = &agent.counters.tracking.recorder else {
        return;
    };
    let recorded = state
        .tracking
        .get_or_start_recording(recorder, || thread_name(agent.thread_parts(), env));
    let first = state.first_slot();
    if recorder.has_unhooked_frames(&recorded, (first, slot)) {
        let event = EventPlace {
            slot,
            method: MethodId(0),
        };
        vm_entry::repair_slots(agent, env, state, slot, event);
    }
    let frame = RecordedFrame { first, slot, site };
    if recorder.record_call_step(&recorded, &agent.core.method_of_site, what, frame) {
        give_ticket(agent, env, &recorded);
    }
}

/// Gives a ticket to a thread that is about to start: the `this` of the innermost frame. Until that thread runs, its
/// field for the recording holds the negated ticket.
fn give_ticket(
    agent: StackParts<'_>,
    env: JniEnvironment,
    parent: &WatchedMutex<ThreadCallRecord>,
) {
    let (Some(recorder), Some(fields)) =
        (&agent.counters.tracking.recorder, agent.core.fields.get())
    else {
        return;
    };
    let (Some(field), Some(thread)) = (fields.ticket, agent.core.jvmti.innermost_this()) else {
        return;
    };
    let is_new = env.get_long(thread, field.as_raw()) == 0
        && env.get_long(thread, fields.state.as_raw()) == 0;
    if is_new {
        let name = read_name(env, thread, *fields);
        let ticket = recorder.record_started_thread(&name, parent);
        env.set_long(thread, field.as_raw(), -(ticket as jlong));
    }
    env.delete_local(thread);
}
