//! `events=lock`: entering a monitor that another thread holds, waiting for a notification, and parking. The value is the time
//! until the thread continues, in nanoseconds.
//!
//! The expensive part happens before the thread blocks, while it has to wait anyway. After it owns the monitor, only the end
//! time and the counter are left.
use std::ptr;
use std::sync::OnceLock;

use jvmti_bindings::sys::jni::{JNIEnv, jlong, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_instrument::EventKindInfo;
use lucce_instrument::kinds::LOCK;
use lucce_jvmti::{FieldId, JniEnvironment, clock};

use crate::counting::CountingParts;
use crate::counting::counter_lookup::{
    find_counter, find_counter_by_number, find_counter_here, verify_location,
};
use crate::events::{EventCallback, EventSource, HookEvent};
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
pub static ENTER: EventKind = EventKind::new("lock", "ns", "enter");
/// Waiting for a notification.
pub static WAIT: EventKind = EventKind::new("lock", "ns", "wait");
static PARK: EventKind = EventKind::new("lock", "ns", "park");

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

/// Called when a thread begins to wait for a monitor, to enter it or to be notified, and when it continues.
pub trait MonitorCallbacks: 'static {
    /// `place`: the current thread, and the monitor's object. `kind`: [`ENTER`] or [`WAIT`].
    fn begin_wait(
        env: *mut JNIEnv,
        place: (jobject, jobject),
        kind: &'static EventKind,
        since: u64,
    );

    fn end_wait(env: *mut JNIEnv, thread: jobject, kind: &'static EventKind, now: u64);
}

/// Sets the callbacks of monitors.
pub fn add_callbacks<M: MonitorCallbacks>(callbacks: &mut ti::jvmtiEventCallbacks) {
    callbacks.MonitorContendedEnter = Some(contended_enter::<M>);
    callbacks.MonitorContendedEntered = Some(contended_entered::<M>);
    callbacks.MonitorWait = Some(monitor_wait::<M>);
    callbacks.MonitorWaited = Some(monitor_waited::<M>);
}

extern "system" fn contended_enter<M: MonitorCallbacks>(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
) {
    M::begin_wait(env, (thread, object), &ENTER, clock::nano_time());
}

extern "system" fn contended_entered<M: MonitorCallbacks>(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    _: jobject,
) {
    M::end_wait(env, thread, &ENTER, clock::nano_time());
}

extern "system" fn monitor_wait<M: MonitorCallbacks>(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    _: jlong,
) {
    M::begin_wait(env, (thread, object), &WAIT, clock::nano_time());
}

extern "system" fn monitor_waited<M: MonitorCallbacks>(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    _: jobject,
    _: u8,
) {
    M::end_wait(env, thread, &WAIT, clock::nano_time());
}

/// With hooks in classes.
impl<D: EventCallback> MonitorCallbacks for D {
    fn begin_wait(
        env: *mut JNIEnv,
        place: (jobject, jobject),
        kind: &'static EventKind,
        since: u64,
    ) {
        D::handle_event(
            LOCK.mask_bit,
            env,
            place.0,
            |agent, env, state| match ptr::eq(kind, &ENTER) {
                true => begin_enter(agent, env, state, place, since),
                false => begin_notify_wait(agent, env, state, place.1, since),
            },
        );
    }

    fn end_wait(env: *mut JNIEnv, thread: jobject, kind: &'static EventKind, now: u64) {
        D::handle_end(env, thread, |agent, env, state| {
            match ptr::eq(kind, &ENTER) {
                true => end_enter(agent, env, state, now),
                false => end_notify_wait(agent, env, state, now),
            }
        });
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
    let found = find_counter(agent, env, state, here, (&ENTER, object));
    let waiting = found.map(|found| MonitorWait {
        counter: found,
        since,
    });
    state.waits.enter.set(waiting);
}

/// The thread owns the monitor.
fn end_enter(agent: CountingParts<'_>, env: JniEnvironment, state: &ThreadState, now: u64) {
    count_waited(agent, env, state, (state.waits.enter.take(), now));
}

/// The current thread begins to wait at time `since` for a notification by `object`.
fn begin_notify_wait(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    object: jobject,
    since: u64,
) {
    let found = find_counter_here(agent, env, state, (&WAIT, object));
    let waiting = found.map(|found| MonitorWait {
        counter: found,
        since,
    });
    state.waits.wait.set(waiting);
}

/// The wait has ended, by a notification or otherwise.
fn end_notify_wait(agent: CountingParts<'_>, env: JniEnvironment, state: &ThreadState, now: u64) {
    count_waited(agent, env, state, (state.waits.wait.take(), now));
}

/// Counts the wait. It is forgotten even if locks are not counted any more.
fn count_waited(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (waiting, now): (Option<MonitorWait>, u64),
) {
    if let Some(waiting) = waiting
        && agent.core.event_mask.is_enabled(LOCK.mask_bit)
    {
        let passed = now.saturating_sub(waiting.since);
        waiting.counter.count_event(agent, env, state, passed);
    }
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
    let found = match number {
        ContextId::UNKNOWN => find_counter_here(agent, env, state, what),
        number => find_counter_by_number(agent, env, state, number, what),
    };
    if let Some(found) = found {
        found.count_event(agent, env, state, passed);
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
