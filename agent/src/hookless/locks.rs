//! Contended monitors without hooks, in an attached JVM: entering and waiting.
//!
//! `thread::monitor_waits` keeps the waits. JVMTI has no events for parking.

use jvmti_bindings::sys::jni::jobject;
use lucce_jvmti::JniEnvironment;

use crate::counting::CountingParts;
use crate::events::lock;
use crate::hookless::stack_samples::{ShownFrame, WalkPosition, with_current};
use crate::hookless::thread_storage;
use crate::memory::counter::increment_counter;
use crate::stack::monitor_location::find_monitorenter as at_monitor;
use crate::thread::monitor_waits::WaitKind;

/// The current thread begins to wait at time `since` for `object`.
pub fn begin_wait(
    agent: CountingParts<'static>,
    env: JniEnvironment,
    (thread, object): (jobject, jobject),
    wait: WaitKind,
    since: u64,
) {
    // In the interpreter, the frame's location is already after the `monitorenter`.
    let location = (wait == WaitKind::Enter)
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
    let event = super::find_event_type(agent, env, object, lock::event_kind_of(wait));
    let counter = event.map(|event| (number, event));
    let kept = thread_storage::with_storage(agent, thread, |kept| {
        kept.waits.begin_wait(wait, counter, since);
    });
    if counter.is_none() || kept.is_none() {
        increment_counter(&agent.core.counts.events_dropped);
    }
}

/// Ends the wait and counts it.
pub fn end_wait(
    agent: CountingParts<'static>,
    env: JniEnvironment,
    thread: jobject,
    wait: WaitKind,
    now: u64,
) {
    let ended =
        thread_storage::with_existing_storage(agent, thread, |kept| kept.waits.end_wait(wait, now));
    let Some((event, passed)) = ended.flatten().filter(|_| lock::are_waits_counted(agent)) else {
        return;
    };
    let counted = with_current(agent, |local| local.count_event(env, thread, event, passed));
    if counted.flatten().is_none() {
        increment_counter(&agent.core.counts.events_dropped);
    }
}

fn find_monitor_location(agent: CountingParts<'_>) -> Option<i64> {
    let (method, location) = agent.core.jvmti.frame_location(0)?;
    at_monitor(&agent.core.jvmti.method_bytecodes(method), location)
}
