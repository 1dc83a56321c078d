//! `events=lock`: entering a monitor that another thread holds, and waiting for one. The value is the
//! time until the thread goes on, in nanoseconds.
//!
//! All that takes time is done while the thread has to wait anyway: before it blocks. What is left
//! for later, when it owns the monitor, is the end of the time and the cell.
#![allow(unsafe_code, reason = "callbacks of the JVM")]

use std::sync::OnceLock;

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jlong, jobject};
use jvmti_bindings::sys::jvmti::jvmtiEnv;
use lucce_callgraph::ContextId;

use crate::agent::Field;
use crate::clock;
use crate::jvm::Env;
use crate::natives::{guard_event, state, state_of};
use crate::thread::ThreadState;
use crate::vm_events::{Found, Kind, found, of_number, verify};
use crate::{arrival, gate, here};

static ENTER: Kind = Kind {
    name: "lock",
    unit: "ns",
    how: "enter",
};
static WAIT: Kind = Kind {
    name: "lock",
    unit: "ns",
    how: "wait",
};

static PARK: Kind = Kind {
    name: "lock",
    unit: "ns",
    how: "park",
};

/// What a thread waits for.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    found: Found,
    since: u64,
}

/// Monitors that a thread waits for: to enter one, or to be notified. The second may end in the first.
#[derive(Default, Debug)]
pub struct Waits {
    enter: Option<Waiting>,
    wait: Option<Waiting>,
}

pub unsafe extern "system" fn contended_enter(
    _: *mut jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
) {
    guard_event(gate::LOCK, |agent| {
        let since = clock::monotonic();
        let env = agent.env(env);
        let Some(state) = state_of(agent, env, thread) else {
            return;
        };
        let arrived = arrival::at_monitor(agent, env, state, thread);
        let location = arrived.location;
        let here = arrived
            .here
            .or_else(|| here::standing_at(agent, env, state, location));
        verify(agent, env, state, (here, location));
        let found = found(agent, env, state, here, (&ENTER, object));
        state.waits.enter = found.map(|found| Waiting { found, since });
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
    guard_event(gate::LOCK, |agent| {
        let since = clock::monotonic();
        let env = agent.env(env);
        let Some(state) = state_of(agent, env, thread) else {
            return;
        };
        let here = here::current(agent, env, state, 0);
        verify(agent, env, state, (here, None));
        let found = found(agent, env, state, here, (&WAIT, object));
        state.waits.wait = found.map(|found| Waiting { found, since });
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

fn ended(env: *mut JNIEnv, thread: jobject, take: fn(&mut ThreadState) -> Option<Waiting>) {
    guard_event(gate::LOCK, |agent| {
        let now = clock::monotonic();
        let state = state_of(agent, agent.env(env), thread);
        if let Some(waiting) = state.and_then(take) {
            waiting.found.count(now.saturating_sub(waiting.since));
        }
    });
}

/// A thread has parked for so many nanoseconds; `thread` is the current one.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_parked0(
    env: *mut JNIEnv,
    _: jclass,
    ts: jlong,
    number: jlong,
    thread: jobject,
    passed: jlong,
) {
    guard_event(gate::LOCK, |agent| {
        let (Some(state), false) = (state(ts), thread.is_null()) else {
            return;
        };
        let env = agent.env(env);
        let blocker = BLOCKER.get_or_init(|| blocker(env, thread)).map(Field::id);
        let blocker = blocker.map_or(std::ptr::null_mut(), |field| env.get_object(thread, field));
        let found = of_number(
            agent,
            env,
            state,
            ContextId(number as u64),
            (&PARK, blocker),
        );
        if let Some(found) = found {
            found.count(u64::try_from(passed).unwrap_or(0));
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
