//! `events=thread` where `Thread.start` is not in scope: the VM knows which frame in scope starts the thread.

use jvmti_bindings::sys::jni::{jlong, jobject};
use lucce_callgraph::ContextId;
use lucce_hooks::Kind;
use lucce_hooks::kinds::THREAD;
use lucce_vm::Env;

use crate::counting::Counting;
use crate::counting::found::{lost_unless_out_of_scope, verified_here};
use crate::events::{EventSource, Told};
use crate::stack::contexts;
use crate::thread::ThreadState;

pub struct Starts;

impl EventSource for Starts {
    fn kind(&self) -> &'static Kind {
        &THREAD
    }

    /// The current thread is about to start another one, the object.
    fn told(&self, counting: &Counting, env: Env, state: &ThreadState, told: Told) {
        if !told.object.is_null() {
            starts(counting, env, state, told.object);
        }
    }
}

fn starts(counting: &Counting, env: Env, state: &ThreadState, child: jobject) {
    let Some(here) = verified_here(counting, env, state) else {
        lost_unless_out_of_scope(counting, env);
        return;
    };
    let number = contexts::event(counting, state, here);
    let event = counting.event_type(THREAD.name, "", "");
    let counted = counting.event(env, state, number, event, 0);
    let origin = counted.map_or(ContextId::UNKNOWN, |()| number);
    if let Some(fields) = counting.fields.get() {
        env.set_long(child, fields.origin.id(), origin.0 as jlong);
    }
}
