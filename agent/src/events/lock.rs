//! `events=lock`: entering a monitor that another thread holds, waiting for a notification, and parking. The value is the time
//! until the thread continues, in nanoseconds.
//!
//! The expensive part happens before the thread blocks, while it has to wait anyway. After it owns the monitor, only the end
//! time and the counter are left.
use std::ptr;
use std::sync::OnceLock;

use jvmti_bindings::sys::jni::jobject;
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_instrument::EventKindInfo;
use lucce_instrument::kinds::{LOCK, LOCK_WAITS};
use lucce_jvmti::{FieldId, JniEnvironment};

use crate::counting::CountingParts;
use crate::counting::counter_lookup::{
    find_counter, find_counter_by_number, find_counter_here, verify_location,
};
use crate::events::{EventSource, HookEvent};
use crate::stack::{current_location, monitor_location};
use crate::thread::ThreadState;
use crate::thread::event_kind::{EventKind, MonitorWait};

/// Events of the VM.
const LOCKS: [ti::jvmtiEvent; 4] = [
    ti::JVMTI_EVENT_MONITOR_CONTENDED_ENTER,
    ti::JVMTI_EVENT_MONITOR_CONTENDED_ENTERED,
    ti::JVMTI_EVENT_MONITOR_WAIT,
    ti::JVMTI_EVENT_MONITOR_WAITED,
];

/// Entering a contended monitor.
pub static ENTER: EventKind = EventKind::new(&LOCK_WAITS, "enter");
/// Waiting for a notification.
pub static WAIT: EventKind = EventKind::new(&LOCK_WAITS, "wait");
static PARK: EventKind = EventKind::new(&LOCK_WAITS, "park");

/// Contended monitors, and waiting for notifications. Parking has hooks of its own.
pub struct LockSource;

impl EventSource for LockSource {
    fn kind(&self) -> &'static EventKindInfo {
        &LOCK
    }

    fn vm_events(&self) -> &'static [ti::jvmtiEvent] {
        &LOCKS
    }

    fn add_capabilities(&self, wanted: &mut ti::jvmtiCapabilities) {
        wanted.set_can_generate_monitor_events(true);
        // Needed to recognize a `monitorenter`.
        wanted.set_can_get_bytecodes(true);
    }

    /// The current thread has parked.
    fn record_hook_event(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: &ThreadState,
        event: HookEvent,
    ) {
        if !event.object.is_null() {
            let place = (event.object, event.number);
            count_parked(agent, env, state, place, event.passed);
        }
    }
}

/// The current thread begins to wait. `place`: the thread, and the monitor's object. `begin`: [`ENTER`] or [`WAIT`], and the
/// time.
pub fn begin_wait(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    place: (jobject, jobject),
    (kind, since): (&'static EventKind, u64),
) {
    match ptr::eq(kind, &ENTER) {
        true => begin_enter(agent, env, state, place, since),
        false => begin_notify_wait(agent, env, state, place.1, since),
    }
}

/// Ends the wait and counts it. It is forgotten even if locks are not counted any more.
pub fn end_wait(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (kind, now): (&'static EventKind, u64),
) {
    let wait = match ptr::eq(kind, &ENTER) {
        true => state.waits.enter.take(),
        false => state.waits.wait.take(),
    };
    if let Some(waiting) = wait
        && agent.core.event_mask.is_enabled(LOCK.mask_bit)
    {
        let passed = now.saturating_sub(waiting.since);
        waiting.counter.count_event(agent, env, state, passed);
    }
}

/// The current thread begins to wait at time `since` for the monitor of `object`.
fn begin_enter(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (thread, object): (jobject, jobject),
    since: u64,
) {
    let arrived = monitor_location::locate_at_monitor(agent.stack_parts(), env, state, thread);
    let location = arrived.location;
    let here = arrived
        .here
        .or_else(|| current_location::locate_at(agent.stack_parts(), env, state, location));
    verify_location(agent, env, state, (here, location));
    let counter = find_counter(agent, env, state, here, (&ENTER, object));
    let waiting = counter.map(|counter| MonitorWait { counter, since });
    state.waits.enter.set(waiting);
}

/// The current thread begins to wait at time `since` for a notification by `object`.
fn begin_notify_wait(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    object: jobject,
    since: u64,
) {
    let counter = find_counter_here(agent, env, state, (&WAIT, object));
    let waiting = counter.map(|counter| MonitorWait { counter, since });
    state.waits.wait.set(waiting);
}

/// Counts `passed` nanoseconds of parking by `thread`, the current one. Number 0: the caller is out of scope, so the agent asks
/// the VM for the calling frame in scope.
fn count_parked(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (thread, number): (jobject, ContextId),
    passed: u64,
) {
    let blocker = BLOCKER
        .get_or_init(|| find_blocker_field(env, thread))
        .map(FieldId::as_raw);
    let blocker = blocker.map_or(std::ptr::null_mut(), |field| env.get_object(thread, field));
    let what = (&PARK, blocker);
    let counter = match number {
        ContextId::UNKNOWN => find_counter_here(agent, env, state, what),
        number => find_counter_by_number(agent, env, state, number, what),
    };
    if let Some(counter) = counter {
        counter.count_event(agent, env, state, passed);
    }
}

/// The field of the object for which `LockSupport.park` waits.
static BLOCKER: OnceLock<Option<FieldId>> = OnceLock::new();

fn find_blocker_field(env: JniEnvironment, thread: jobject) -> Option<FieldId> {
    let class = env.class_of(thread);
    let field = env.field_id(class, c"parkBlocker", c"Ljava/lang/Object;");
    env.delete_local(class);
    field.map(FieldId::new)
}
