//! `events=lock`: entering a monitor that another thread holds, waiting for a notification, and parking. The value is the time
//! until the thread continues, in nanoseconds.
//!
//! The expensive part happens before the thread blocks, while it has to wait anyway. After it owns the monitor, only the end
//! time and the counter are left.
use std::sync::OnceLock;

use jvmti_bindings::sys::jni::jobject;
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_instrument::EventKindInfo;
use lucce_instrument::kinds::{LOCK, LOCK_WAITS};
use lucce_jvmti::{FieldId, JniEnvironment, clock};

use crate::counting::CountingParts;
use crate::counting::counter_lookup::{
    find_counter, find_counter_by_number, find_counter_here, verify_location,
};
use crate::events::{EventSource, HookEvent, lock_holders};
use crate::stack::{current_location, monitor_location};
use crate::thread::ThreadState;
use crate::thread::event_kind::{EventCounterRef, EventKind};
use crate::thread::monitor_waits::{LockSlot, WaitKind};

/// Events of the VM.
const LOCKS: [ti::jvmtiEvent; 4] = [
    ti::JVMTI_EVENT_MONITOR_CONTENDED_ENTER,
    ti::JVMTI_EVENT_MONITOR_CONTENDED_ENTERED,
    ti::JVMTI_EVENT_MONITOR_WAIT,
    ti::JVMTI_EVENT_MONITOR_WAITED,
];

/// Entering a contended monitor.
static ENTER: EventKind = EventKind::new(&LOCK_WAITS, "enter");
/// Waiting for a notification.
static WAIT: EventKind = EventKind::new(&LOCK_WAITS, "wait");
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

/// The event kind of a wait.
pub fn event_kind_of(wait: WaitKind) -> &'static EventKind {
    match wait {
        WaitKind::Enter => &ENTER,
        WaitKind::Notify => &WAIT,
    }
}

/// Whether waits are counted now. Without hooks, too, a wait that ends is forgotten in any case.
pub fn are_waits_counted(agent: CountingParts<'_>) -> bool {
    agent.core.event_mask.is_enabled(LOCK.mask_bit)
}

/// The current thread begins to wait at time `since`. `place`: the thread, and the monitor's object.
pub fn begin_wait(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    place: (jobject, jobject),
    (wait, since): (WaitKind, u64),
) {
    let counter = match wait {
        WaitKind::Enter => find_enter_counter(agent, env, state, place),
        WaitKind::Notify => find_counter_here(agent, env, state, (&WAIT, place.1)),
    };
    if let Some(counter) = counter {
        follow_lock(agent, env, state, (wait, place.1), (counter, since));
    }
    state.waits.begin_wait(wait, counter, since);
}

/// Finds out who holds the lock that the thread waits for, or tells others that the thread gives the lock up.
fn follow_lock(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (wait, lock): (WaitKind, jobject),
    (EventCounterRef(counter), since): (EventCounterRef, u64),
) {
    match wait {
        WaitKind::Enter => {
            let waiting = (counter.id(), counter.event_type());
            let slot = lock_holders::begin_wait(agent, env, (lock, &ENTER), waiting, since);
            state.contended_slot.set(slot);
        }
        WaitKind::Notify => {
            lock_holders::note_given_up(agent, env, state, lock, counter.id());
        }
    }
}

/// Ends the wait and counts it.
pub fn end_wait(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (wait, now): (WaitKind, u64),
) {
    if wait == WaitKind::Enter
        && let Some(slot) = state.contended_slot.take()
    {
        lock_holders::end_wait(env, slot);
    }
    if wait == WaitKind::Notify {
        state.notified_at.set(now);
    }
    if let Some((counter, passed)) = state.waits.end_wait(wait, now)
        && are_waits_counted(agent)
    {
        counter.count_event(agent, env, state, passed);
    }
}

/// The current thread parks in the context `number` until a lock of `java.util.concurrent` has no owner.
pub fn begin_owned_wait(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    lock: jobject,
    number: ContextId,
) -> Option<LockSlot> {
    let since = clock::nano_time();
    let EventCounterRef(counter) =
        find_counter_by_number(agent, env, state, number, (&PARK, lock))?;
    let waiting = (counter.id(), counter.event_type());
    lock_holders::begin_wait(agent, env, (lock, &PARK), waiting, since)
}

/// The counter of the current thread's wait for the monitor of `object`.
fn find_enter_counter(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (thread, object): (jobject, jobject),
) -> Option<EventCounterRef> {
    let arrived = monitor_location::locate_at_monitor(agent.stack_parts(), env, state, thread);
    let location = arrived.location;
    let here = arrived
        .here
        .or_else(|| current_location::locate_at(agent.stack_parts(), env, state, location));
    verify_location(agent, env, state, (here, location));
    find_counter(agent, env, state, here, (&ENTER, object))
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
