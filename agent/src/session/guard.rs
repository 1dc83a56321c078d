//! Guards of every function that the VM calls: a panic is counted and answered with a neutral value.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jvmti_bindings::sys::jni::{JNIEnv, jobject};
use lucce_jvmti::JniEnvironment;

use crate::core::agent_use::AgentUseGuard;
use crate::memory::counter::increment_counter;
use crate::session::Agent;
use crate::thread::lifecycle::state_of;
use crate::thread::{OwnState, ThreadState};

thread_local! {
    /// Number of nested functions of the agent on this thread.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs a callback of the VM. A panic is a bug of the agent, not of the program.
pub fn guard_callback<T>(otherwise: T, body: impl FnOnce(&'static Agent) -> T) -> T {
    let _inside = AgentUseGuard::enter();
    let Some(agent) = Agent::get() else {
        return otherwise;
    };
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(|| body(agent)));
    DEPTH.set(DEPTH.get() - 1);
    done.unwrap_or_else(|_| {
        increment_counter(&agent.core.counts.panics);
        otherwise
    })
}

/// Like [`guard_callback`], for an event of a kind that the event mask enables. Events that the agent itself causes are ignored.
pub fn guard_event(kind: u64, body: impl FnOnce(&'static Agent)) {
    guard_callback((), |agent| {
        if DEPTH.get() == 1 && agent.core.is_live() && agent.core.event_mask.is_enabled(kind) {
            body(agent);
        }
    });
}

/// Handles an event of the current thread that the VM reports, if the event mask enables its kind.
pub fn guard_vm_event(
    kind: u64,
    env: *mut JNIEnv,
    thread: jobject,
    body: impl FnOnce(&'static Agent, JniEnvironment, &ThreadState),
) {
    guard_event(kind, |agent| {
        let env = agent.core.jni_env(env);
        if let Some(state) = state_of(agent.thread_parts(), env, thread).get() {
            body(agent, env, state);
        }
    });
}

/// Handles an event on `object` that a hook reports; `own` is the current thread's state.
pub fn guard_hook_event(
    kind: u64,
    env: *mut JNIEnv,
    (own, object): (OwnState, jobject),
    body: impl FnOnce(&'static Agent, JniEnvironment, &ThreadState),
) {
    guard_event(kind, |agent| {
        if let (Some(state), false) = (own.get(), object.is_null()) {
            body(agent, agent.core.jni_env(env), state);
        }
    });
}
