//! Methods that cannot have hooks but call.
//!
//! A method of almost 64 KB, or of a class whose constant pool is full, keeps its code. Nothing says
//! before its calls where the callee's slot is. So the VM stops at each of them, and the frames are
//! counted. Such methods are rare, and so large that no compiler touches them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jvmti_bindings::sys::jni::{jclass, jobject};
use jvmti_bindings::sys::jvmti::JVMTI_EVENT_BREAKPOINT;
use jvmti_bindings::sys::jvmti::JVMTI_EVENT_CLASS_PREPARE;

use crate::acting;
use crate::agent::Agent;
use crate::book::Loader;
use crate::jvm::{Env, Failed, Jvmti};
use crate::natives::state;
use crate::upcall;

/// A method to watch, with the bcis of its calls.
pub struct Watched {
    pub name: String,
    pub descriptor: String,
    pub calls: Vec<u16>,
}

/// Methods of classes that are about to be loaded.
#[derive(Default)]
pub struct Watch(Mutex<Pending>);

type Pending = HashMap<(Loader, String), Vec<Watched>>;

impl Watch {
    /// # Errors
    /// The VM does not do that for us.
    pub fn add(
        &self,
        jvmti: Jvmti,
        loader: Loader,
        class: &str,
        method: Watched,
    ) -> Result<(), Failed> {
        // Both stay on: further events cost nothing that counts.
        for event in [JVMTI_EVENT_BREAKPOINT, JVMTI_EVENT_CLASS_PREPARE] {
            jvmti.enable(event)?;
        }
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pending
            .entry((loader, class.into()))
            .or_default()
            .push(method);
        Ok(())
    }

    pub fn prepared(&self, agent: &Agent, env: Env, class: jclass) {
        let jvmti = agent.jvmti;
        let Some(signature) = jvmti.signature(class) else {
            return;
        };
        let name = signature.trim_start_matches('L').trim_end_matches(';');
        let Some(loader) = jvmti.loader(class) else {
            return;
        };
        let id = agent.loaders.id(jvmti, env, loader);
        env.forget(loader);
        let found = {
            let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            pending.remove(&(id, name.to_string()))
        };
        let Some(watched) = found else {
            return;
        };
        for method in jvmti.methods(class) {
            let Some((name, descriptor)) = jvmti.method_name(method) else {
                continue;
            };
            let same = |w: &&Watched| w.name == name && w.descriptor == descriptor;
            for bci in watched.iter().find(same).iter().flat_map(|w| &w.calls) {
                let _ = jvmti.set_breakpoint(method, (*bci).into());
            }
        }
    }
}

/// The thread is about to call from a watched method.
pub fn reached(agent: &Agent, env: Env, thread: jobject) {
    let Some(fields) = agent.fields.get() else {
        return;
    };
    acting::holder(agent, env, thread, |thread| {
        if let Some(state) = state(env.get_long(thread, fields.state.id()))
            && let Some(slot) = upcall::next_slot(agent, env, state)
        {
            env.set_long(thread, fields.pointer.id(), slot as i64);
        }
    });
}
