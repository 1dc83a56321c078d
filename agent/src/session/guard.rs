//! Every function that the VM calls ends here: a panic is counted and answered with a neutral value.

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
    /// How many of the agent's functions run on this thread, one in the other.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs a callback of the VM: a panic is our bug, not the program's.
pub fn guard_callback<T>(otherwise: T, body: impl FnOnce(&'static Agent) -> T) -> T {
    let _inside = AgentUseGuard::enter();
    let Some(agent) = Agent::get() else {
        return otherwise;
    };
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(|| body(agent)));
    DEPTH.set(DEPTH.get() - 1);
    done.unwrap_or_else(|_| {
        increment_counter(&agent.counts.panics);
        otherwise
    })
}

/// As [`guard_callback`], of an event that the VM tells while it runs the program, if that kind is counted: not of
/// what the agent itself makes the VM do.
pub fn guard_event(kind: u64, body: impl FnOnce(&'static Agent)) {
    guard_callback((), |agent| {
        if DEPTH.get() == 1 && agent.is_live() && agent.event_mask.is_enabled(kind) {
            body(agent);
        }
    });
}

/// The VM tells the current thread of an event of this kind of the gate.
pub fn guard_vm_event(
    kind: u64,
    env: *mut JNIEnv,
    thread: jobject,
    body: impl FnOnce(&'static Agent, JniEnvironment, &ThreadState),
) {
    guard_event(kind, |agent| {
        let env = agent.jni_env(env);
        if let Some(state) = state_of(agent, env, thread).get() {
            body(agent, env, state);
        }
    });
}

/// A hook tells of an event on `object`; `own` is the current thread's state.
pub fn guard_hook_event(
    kind: u64,
    env: *mut JNIEnv,
    (own, object): (OwnState, jobject),
    body: impl FnOnce(&'static Agent, JniEnvironment, &ThreadState),
) {
    guard_event(kind, |agent| {
        if let (Some(state), false) = (own.get(), object.is_null()) {
            body(agent, agent.jni_env(env), state);
        }
    });
}
