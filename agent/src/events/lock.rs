//! `events=lock`: entering a monitor that another thread holds, and waiting for one. The value is the
//! time until the thread goes on, in nanoseconds.
//!
//! All that takes time is done while the thread has to wait anyway: before it blocks. What is left
//! for later, when it owns the monitor, is the end of the time and the cell.
use std::ptr;
use std::sync::OnceLock;

use jvmti_bindings::sys::jni::{JNIEnv, jlong, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_hooks::Kind;
use lucce_hooks::kinds::LOCK;
use lucce_vm::{Env, Field, clock};

use crate::counting::Counting;
use crate::counting::found::{found, found_here, of_number, verify};
use crate::events::{Door, EventSource, Told};
use crate::stack::{here, monitor};
use crate::thread::ThreadState;
use crate::thread::found::{EventKind, Waiting};

/// What the VM tells of.
const LOCKS: [ti::jvmtiEvent; 4] = [
    ti::JVMTI_EVENT_MONITOR_CONTENDED_ENTER,
    ti::JVMTI_EVENT_MONITOR_CONTENDED_ENTERED,
    ti::JVMTI_EVENT_MONITOR_WAIT,
    ti::JVMTI_EVENT_MONITOR_WAITED,
];

pub static ENTER: EventKind = EventKind::new("lock", "ns", "enter");
pub static WAIT: EventKind = EventKind::new("lock", "ns", "wait");
static PARK: EventKind = EventKind::new("lock", "ns", "park");

/// Contended monitors, and waiting for them. Parking has hooks of its own.
pub struct Locks;

impl EventSource for Locks {
    fn kind(&self) -> &'static Kind {
        &LOCK
    }

    fn events(&self) -> &'static [ti::jvmtiEvent] {
        &LOCKS
    }

    fn capabilities(&self, wanted: &mut ti::jvmtiCapabilities) {
        wanted.set_can_generate_monitor_events(true);
        // Whether a method stands at a `monitorenter`.
        wanted.set_can_get_bytecodes(true);
    }

    /// A thread, the current one, has parked.
    fn told(&self, counting: &Counting, env: Env, state: &ThreadState, told: Told) {
        if !told.object.is_null() {
            let place = (told.object, told.number);
            parked(counting, env, state, place, told.passed);
        }
    }
}

/// What is done when a thread waits for a monitor, to enter it or to be notified, and when it goes on.
pub trait Monitors: 'static {
    /// `place`: the current thread, and the monitor's object. `kind`: [`ENTER`] or [`WAIT`].
    fn begins(env: *mut JNIEnv, place: (jobject, jobject), kind: &'static EventKind, since: u64);

    fn ends(env: *mut JNIEnv, thread: jobject, kind: &'static EventKind, now: u64);
}

/// Puts what the VM calls into its place.
pub fn callbacks<M: Monitors>(callbacks: &mut ti::jvmtiEventCallbacks) {
    callbacks.MonitorContendedEnter = Some(contended_enter::<M>);
    callbacks.MonitorContendedEntered = Some(contended_entered::<M>);
    callbacks.MonitorWait = Some(monitor_wait::<M>);
    callbacks.MonitorWaited = Some(monitor_waited::<M>);
}

extern "system" fn contended_enter<M: Monitors>(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
) {
    M::begins(env, (thread, object), &ENTER, clock::nano_time());
}

extern "system" fn contended_entered<M: Monitors>(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    _: jobject,
) {
    M::ends(env, thread, &ENTER, clock::nano_time());
}

extern "system" fn monitor_wait<M: Monitors>(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    _: jlong,
) {
    M::begins(env, (thread, object), &WAIT, clock::nano_time());
}

extern "system" fn monitor_waited<M: Monitors>(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    _: jobject,
    _: u8,
) {
    M::ends(env, thread, &WAIT, clock::nano_time());
}

/// Where classes have hooks.
impl<D: Door> Monitors for D {
    fn begins(env: *mut JNIEnv, place: (jobject, jobject), kind: &'static EventKind, since: u64) {
        D::told(
            LOCK.gate,
            env,
            place.0,
            |counting, env, state| match ptr::eq(kind, &ENTER) {
                true => enters(counting, env, state, place, since),
                false => waits(counting, env, state, place.1, since),
            },
        );
    }

    fn ends(env: *mut JNIEnv, thread: jobject, kind: &'static EventKind, now: u64) {
        D::over(env, thread, |counting, env, state| {
            match ptr::eq(kind, &ENTER) {
                true => entered(counting, env, state, now),
                false => waited(counting, env, state, now),
            }
        });
    }
}

/// The current thread is about to wait since then for the monitor of `object`.
fn enters(
    counting: &Counting,
    env: Env,
    state: &ThreadState,
    (thread, object): (jobject, jobject),
    since: u64,
) {
    let arrived = monitor::at_monitor(counting, env, state, thread);
    let location = arrived.location;
    let here = arrived
        .here
        .or_else(|| here::standing_at(counting, env, state, location));
    verify(counting, env, state, (here, location));
    let found = found(counting, env, state, here, (&ENTER, object));
    let waiting = found.map(|found| Waiting { found, since });
    state.waits.enter.set(waiting);
}

/// The thread has the monitor.
fn entered(counting: &Counting, env: Env, state: &ThreadState, now: u64) {
    ended(counting, env, state, (state.waits.enter.take(), now));
}

/// The current thread is about to wait since then to be notified by `object`.
fn waits(counting: &Counting, env: Env, state: &ThreadState, object: jobject, since: u64) {
    let found = found_here(counting, env, state, (&WAIT, object));
    let waiting = found.map(|found| Waiting { found, since });
    state.waits.wait.set(waiting);
}

/// It was, or waits no longer.
fn waited(counting: &Counting, env: Env, state: &ThreadState, now: u64) {
    ended(counting, env, state, (state.waits.wait.take(), now));
}

/// What has begun is forgotten, even if nothing is counted any more.
fn ended(
    counting: &Counting,
    env: Env,
    state: &ThreadState,
    (waiting, now): (Option<Waiting>, u64),
) {
    if let Some(waiting) = waiting
        && counting.gate.is_open(LOCK.gate)
    {
        let passed = now.saturating_sub(waiting.since);
        waiting.found.count(counting, env, state, passed);
    }
}

/// A thread has parked for so many nanoseconds; `thread` is the current one. Number 0: where nothing is in
/// scope, so the VM is asked which frame in scope it is for.
fn parked(
    counting: &Counting,
    env: Env,
    state: &ThreadState,
    (thread, number): (jobject, ContextId),
    passed: u64,
) {
    let blocker = BLOCKER.get_or_init(|| blocker(env, thread)).map(Field::id);
    let blocker = blocker.map_or(std::ptr::null_mut(), |field| env.get_object(thread, field));
    let what = (&PARK, blocker);
    let found = match number {
        ContextId::UNKNOWN => found_here(counting, env, state, what),
        number => of_number(counting, env, state, number, what),
    };
    if let Some(found) = found {
        found.count(counting, env, state, passed);
    }
}

/// What `LockSupport.park` was told that it waits for.
static BLOCKER: OnceLock<Option<Field>> = OnceLock::new();

fn blocker(env: Env, thread: jobject) -> Option<Field> {
    let class = env.class_of(thread);
    let field = env.field(class, c"parkBlocker", c"Ljava/lang/Object;");
    env.forget(class);
    field.map(Field::new)
}
