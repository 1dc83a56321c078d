//! The native methods of the helper classes that only the lab's agent has.
#![allow(
    unsafe_code,
    reason = "functions that the JVM calls, with pointers that it was given here"
)]

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jint, jlong};
use lucce_callgraph::{MethodId, SiteId};

use crate::memory::slots::Slot;
use crate::session::guard::guard_callback;
use crate::stack::call_recording;
use crate::thread::OwnState;

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
            call_recording::record_step(agent, env, state, what, frame);
        }
    });
}
