//! `events=thread` if `Thread.start` is out of scope: the agent asks the VM for the frame in scope that starts the thread.

use jvmti_bindings::sys::jni::{jlong, jobject};
use lucce_callgraph::ContextId;
use lucce_instrument::EventKindInfo;
use lucce_instrument::kinds::THREAD;
use lucce_jvmti::JniEnvironment;

use crate::counting::CountingParts;
use crate::counting::counter_lookup::{count_dropped_in_scope, verified_location};
use crate::events::{EventSource, HookEvent};
use crate::stack::contexts;
use crate::thread::ThreadState;

/// Starts of threads that hooks report.
pub struct ThreadStartSource;

impl EventSource for ThreadStartSource {
    fn kind(&self) -> &'static EventKindInfo {
        &THREAD
    }

    /// The current thread is about to start another one, the object.
    fn record_hook_event(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: &ThreadState,
        event: HookEvent,
    ) {
        if !event.object.is_null() {
            record_thread_start(agent, env, state, event.object);
        }
    }
}

fn record_thread_start(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    child: jobject,
) {
    let Some(here) = verified_location(agent, env, state) else {
        count_dropped_in_scope(agent, env);
        return;
    };
    let number = contexts::event_number(agent.stack_parts(), state, here);
    let event = agent.find_or_add_event_type(THREAD.name, "", "");
    let counted = agent.count_event(env, state, number, event, 0);
    let origin = counted.map_or(ContextId::UNKNOWN, |()| number);
    if let Some(fields) = agent.core.fields.get() {
        env.set_long(child, fields.origin.as_raw(), origin.0 as jlong);
    }
}
