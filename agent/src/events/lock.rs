//! `events=lock`: entering a monitor that another thread holds, and waiting for one. The value is the
//! time until the thread goes on, in nanoseconds.
//!
//! All that takes time is done while the thread has to wait anyway: before it blocks. What is left
//! for later, when it owns the monitor, is the end of the time and the cell.
use std::sync::OnceLock;

use jvmti_bindings::sys::jni::jobject;
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;

use lucce_vm::{Env, Field};

use crate::counting::Counting;
use crate::counting::found::{found, found_here, of_number, verify};
use crate::events::sources::EventSource;
use crate::memory::gate;
use crate::options::Events;
use crate::stack::{here, monitor};
use crate::thread::ThreadState;
use crate::thread::found::{EventKind, Waiting};

/// What the VM tells of.
pub const LOCKS: [ti::jvmtiEvent; 4] = [
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
    fn name(&self) -> &'static str {
        "lock"
    }

    fn is_wanted(&self, events: &Events) -> bool {
        events.lock
    }

    fn events(&self) -> &'static [ti::jvmtiEvent] {
        &LOCKS
    }

    fn capabilities(&self, wanted: &mut ti::jvmtiCapabilities) {
        wanted.set_can_generate_monitor_events(true);
        // Whether a method stands at a `monitorenter`.
        wanted.set_can_get_bytecodes(true);
    }
}

/// The current thread is about to wait since then for the monitor of `object`.
pub fn enters(
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

/// It has the monitor.
pub fn entered(counting: &Counting, env: Env, state: &ThreadState, now: u64) {
    ended(counting, env, state, (state.waits.enter.take(), now));
}

/// The current thread is about to wait since then to be notified by `object`.
pub fn waits(counting: &Counting, env: Env, state: &ThreadState, object: jobject, since: u64) {
    let found = found_here(counting, env, state, (&WAIT, object));
    let waiting = found.map(|found| Waiting { found, since });
    state.waits.wait.set(waiting);
}

/// It was, or waits no longer.
pub fn waited(counting: &Counting, env: Env, state: &ThreadState, now: u64) {
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
        && counting.gate.is_open(gate::LOCK)
    {
        let passed = now.saturating_sub(waiting.since);
        waiting.found.count(counting, env, state, passed);
    }
}

/// A thread has parked for so many nanoseconds; `thread` is the current one. Number 0: where nothing is in
/// scope, so the VM is asked which frame in scope it is for.
pub fn parked(
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
