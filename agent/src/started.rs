//! `events=thread` where `Thread.start` is not in scope: the VM knows which frame in scope starts the thread.
#![allow(
    unsafe_code,
    reason = "a function that the JVM calls, exported by name"
)]

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jlong, jobject};
use lucce_callgraph::ContextId;

use crate::gate;
use crate::thread::OwnState;
use crate::vm_events::{lost_unless_out_of_scope, told_by_hook, verified_here};

/// The current thread is about to start `child`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtTasks_started0(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    child: jobject,
) {
    told_by_hook(gate::THREAD, env, (own, child), |agent, env, state| {
        let Some(here) = verified_here(agent, env, state) else {
            lost_unless_out_of_scope(agent, env);
            return;
        };
        let number = here.number(agent, state);
        let event = agent.event_type("thread", "", "");
        let counted = agent.event(env, state, number, event, 0);
        let origin = counted.map_or(ContextId::UNKNOWN, |()| number);
        if let Some(fields) = agent.fields.get() {
            env.set_long(child, fields.origin.id(), origin.0 as jlong);
        }
    });
}
