//! Contended monitors without hooks, in an attached JVM: entering and waiting.
//!
//! A virtual thread may continue on another native thread than it waited on. So the wait is kept with the virtual thread, and
//! its counter is looked up at the end. JVMTI has no events for parking.

use std::ptr;

use jvmti_bindings::sys::jni::jobject;
use lucce_instrument::kinds::LOCK;
use lucce_jvmti::JniEnvironment;

use crate::counting::CountingParts;
use crate::events::lock::ENTER;
use crate::hookless::stack_samples::{ShownFrame, WalkPosition, with_current};
use crate::hookless::thread_storage;
use crate::hookless::waits::HooklessWait;
use crate::memory::counter::increment_counter;
use crate::stack::monitor_location::find_monitorenter as at_monitor;
use crate::thread::event_kind::EventKind;

/// The current thread begins to wait at time `since` for `object`.
pub fn begin_wait(
    agent: CountingParts<'static>,
    env: JniEnvironment,
    (thread, object): (jobject, jobject),
    kind: &'static EventKind,
    since: u64,
) {
    // In the interpreter, the frame's location is already after the `monitorenter`.
    let location = ptr::eq(kind, &ENTER)
        .then(|| find_monitor_location(agent))
        .flatten();
    let spot = WalkPosition { own: 0, location };
    let number = with_current(agent, |local| local.find_number((env, thread), spot));
    let Some(number) = number.flatten() else {
        increment_counter(&agent.core.counts.events_dropped);
        return;
    };
    // Without a frame it has no context.
    let ShownFrame::Visible(number) = number else {
        return;
    };
    let event = super::find_event_type(agent, env, object, kind);
    let waiting = event.map(|event| HooklessWait {
        number,
        event,
        since,
    });
    let kept = thread_storage::with_storage(agent, thread, |kept| {
        *kept.waits.wait_of_kind(kind) = waiting;
    });
    if waiting.is_none() || kept.is_none() {
        increment_counter(&agent.core.counts.events_dropped);
    }
}

/// Ends the wait and counts it. The wait is forgotten even if nothing is counted any more.
pub fn end_wait(
    agent: CountingParts<'static>,
    env: JniEnvironment,
    thread: jobject,
    kind: &'static EventKind,
    now: u64,
) {
    let taken = thread_storage::with_existing_storage(agent, thread, |kept| {
        kept.waits.wait_of_kind(kind).take()
    });
    let is_counted = agent.core.event_mask.is_enabled(LOCK.mask_bit);
    let Some(waiting) = taken.flatten().filter(|_| is_counted) else {
        return;
    };
    let passed = now.saturating_sub(waiting.since);
    let event = (waiting.number, waiting.event);
    let counted = with_current(agent, |local| local.count_event(env, thread, event, passed));
    if counted.flatten().is_none() {
        increment_counter(&agent.core.counts.events_dropped);
    }
}

fn find_monitor_location(agent: CountingParts<'_>) -> Option<i64> {
    let (method, location) = agent.core.jvmti.frame_location(0)?;
    at_monitor(&agent.core.jvmti.method_bytecodes(method), location)
}
