//! `events=lock`: entering a monitor that another thread holds, and waiting for one. The value is the
//! time until the thread goes on, in nanoseconds.
//!
//! All that takes time is done while the thread has to wait anyway: before it blocks. What is left
//! for later, when it owns the monitor, is the end of the time and the cell.
#![allow(unsafe_code, reason = "callbacks of the JVM")]

use std::cell::Cell;
use std::sync::OnceLock;

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jlong, jobject};
use jvmti_bindings::sys::jvmti::jvmtiEnv;
use lucce_callgraph::ContextId;

use crate::agent::Field;
use crate::clock;
use crate::jvm::Env;
use crate::natives::{guard, state_of};
use crate::thread::{OwnState, ThreadState};
use crate::vm_events::{Found, Kind, found, found_here, of_number, told, told_by_hook, verify};
use crate::{arrival, gate, here};

pub static ENTER: Kind = Kind::new("lock", "ns", "enter");
pub static WAIT: Kind = Kind::new("lock", "ns", "wait");
static PARK: Kind = Kind::new("lock", "ns", "park");

/// What a thread waits for.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    found: Found,
    since: u64,
}

/// Monitors that a thread waits for: to enter one, or to be notified. The second may end in the first.
#[derive(Default, Debug)]
pub struct Waits {
    enter: Cell<Option<Waiting>>,
    wait: Cell<Option<Waiting>>,
}

pub unsafe extern "system" fn contended_enter(
    _: *mut jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
) {
    let since = clock::nano_time();
    told(gate::LOCK, env, thread, |agent, env, state| {
        let arrived = arrival::at_monitor(agent, env, state, thread);
        let location = arrived.location;
        let here = arrived
            .here
            .or_else(|| here::standing_at(agent, env, state, location));
        verify(agent, env, state, (here, location));
        let found = found(agent, env, state, here, (&ENTER, object));
        let waiting = found.map(|found| Waiting { found, since });
        state.waits.enter.set(waiting);
    });
}

pub unsafe extern "system" fn contended_entered(
    _: *mut jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    _: jobject,
) {
    ended(env, thread, |state| state.waits.enter.take());
}

pub unsafe extern "system" fn wait(
    _: *mut jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    _: jlong,
) {
    let since = clock::nano_time();
    told(gate::LOCK, env, thread, |agent, env, state| {
        let found = found_here(agent, env, state, (&WAIT, object));
        let waiting = found.map(|found| Waiting { found, since });
        state.waits.wait.set(waiting);
    });
}

pub unsafe extern "system" fn waited(
    _: *mut jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    _: jobject,
    _: u8,
) {
    ended(env, thread, |state| state.waits.wait.take());
}

fn ended(env: *mut JNIEnv, thread: jobject, take: fn(&ThreadState) -> Option<Waiting>) {
    let now = clock::nano_time();
    // What has begun is forgotten, even if nothing is counted any more.
    guard((), |agent| {
        let env = agent.env(env);
        let own = state_of(agent, env, thread);
        let Some(state) = own.get().filter(|_| agent.is_live()) else {
            return;
        };
        if let Some(waiting) = take(state)
            && agent.gate.is_open(gate::LOCK)
        {
            let passed = now.saturating_sub(waiting.since);
            waiting.found.count(agent, env, state, passed);
        }
    });
}

/// A thread has parked for so many nanoseconds; `thread` is the current one. Number 0: where nothing is in
/// scope, so the VM is asked which frame in scope it is for.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtEvents_parked0(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    number: jlong,
    thread: jobject,
    passed: jlong,
) {
    told_by_hook(gate::LOCK, env, (own, thread), |agent, env, state| {
        let blocker = BLOCKER.get_or_init(|| blocker(env, thread)).map(Field::id);
        let blocker = blocker.map_or(std::ptr::null_mut(), |field| env.get_object(thread, field));
        let what = (&PARK, blocker);
        let found = match ContextId(number as u64) {
            ContextId::UNKNOWN => found_here(agent, env, state, what),
            number => of_number(agent, env, state, number, what),
        };
        if let Some(found) = found {
            let passed = u64::try_from(passed).unwrap_or(0);
            found.count(agent, env, state, passed);
        }
    });
}

/// What `LockSupport.park` was told that it waits for.
static BLOCKER: OnceLock<Option<Field>> = OnceLock::new();

fn blocker(env: Env, thread: jobject) -> Option<Field> {
    let class = env.class_of(thread);
    let field = env.field(class, c"parkBlocker", c"Ljava/lang/Object;");
    env.forget(class);
    field.map(Field::new)
}
