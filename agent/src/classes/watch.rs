//! Methods that cannot have hooks but call.
//!
//! A method of almost 64 KB, or one for which there is no room in its class's constant pool, keeps its code, and
//! so does a class that the agent cannot read though the VM does. Nothing says before its calls where the
//! callee's slot is. So the VM stops at each of them, and the frames are counted. Such methods are rare, and
//! so large that no compiler touches them.
#![allow(unsafe_code, reason = "the state that the current thread holds")]

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti_bindings::sys::jni::{jclass, jmethodID, jobject};
use jvmti_bindings::sys::jvmti::JVMTI_EVENT_BREAKPOINT;
use jvmti_bindings::sys::jvmti::JVMTI_EVENT_CLASS_PREPARE;
use lucce_bytecode::call_places;

use crate::book::Loader;
use crate::classes::Classes;
use crate::core::holds;
use crate::memory::counter::count;
use crate::memory::locks::WatchedMutex;
use crate::stack::{add_class, upcall};
use crate::thread::OwnState;
use crate::thread::carrier;
use lucce_vm::{Env, Failed, Jvmti};

/// Methods of classes that are about to be loaded.
#[derive(Default)]
pub struct Watch {
    pending: WatchedMutex<Pending>,
    /// Some class is pending.
    any: AtomicBool,
    /// Some class could not be read: it is one that the book does not have when the VM has accepted it.
    unread: AtomicBool,
}

/// Name and descriptor of methods, by their class.
type Pending = HashMap<(Loader, String), HashSet<(String, String)>>;

impl Watch {
    /// # Errors
    /// The VM does not do that for us.
    pub fn add(
        &self,
        jvmti: Jvmti,
        (loader, class): (Loader, &str),
        (name, descriptor): (&str, &str),
    ) -> Result<(), Failed> {
        enable(jvmti)?;
        self.any.store(true, Ordering::Relaxed);
        let mut pending = self.pending.lock();
        let methods = pending.entry((loader, class.into())).or_default();
        methods.insert((name.into(), descriptor.into()));
        Ok(())
    }

    /// A class without a known name could not be read.
    ///
    /// # Errors
    /// The VM does not do that for us.
    pub fn unread(&self, jvmti: Jvmti) -> Result<(), Failed> {
        self.unread.store(true, Ordering::Relaxed);
        enable(jvmti)
    }

    /// A class with this name comes: one that was to come has been refused.
    pub fn forget(&self, loader: Loader, class: &str) {
        if self.any.load(Ordering::Relaxed) {
            let mut pending = self.pending.lock();
            pending.remove(&(loader, class.to_string()));
        }
    }

    /// The VM has unloaded these loaders' classes, of which some were never prepared.
    pub fn forget_all(&self, loaders: &[Loader]) {
        if self.any.load(Ordering::Relaxed) {
            let mut pending = self.pending.lock();
            pending.retain(|(loader, _), _| !loaders.contains(loader));
        }
    }

    pub fn prepared(&self, classes: &Classes, env: Env, class: jclass) {
        let jvmti = classes.jvmti;
        let Some(signature) = jvmti.signature(class) else {
            return;
        };
        let name = signature
            .strip_prefix('L')
            .and_then(|s| s.strip_suffix(';'));
        let (Some(name), Some(loader)) = (name, jvmti.loader(class)) else {
            return;
        };
        let id = classes.loaders.id(jvmti, env, loader);
        env.forget(loader);
        let found = {
            let mut pending = self.pending.lock();
            pending.remove(&(id, name.to_string()))
        };
        if let Some(methods) = found {
            for method in jvmti.methods(class) {
                if jvmti
                    .method_name(method)
                    .is_some_and(|key| methods.contains(&key))
                {
                    stop_at_calls(jvmti, method);
                }
            }
        } else if self.unread.load(Ordering::Relaxed) && is_unknown(classes, id, name) {
            count(&classes.counts.classes_skipped);
            classes.skipped(name, None, "its class file cannot be read");
            // Without ids its frames are in no trace, and the VM is still asked.
            let _ = add_class(classes, class, id, name);
            for method in jvmti.methods(class) {
                stop_at_calls(jvmti, method);
            }
        }
    }
}

/// Both stay on: further events cost nothing that counts.
fn enable(jvmti: Jvmti) -> Result<(), Failed> {
    for event in [JVMTI_EVENT_BREAKPOINT, JVMTI_EVENT_CLASS_PREPARE] {
        jvmti.enable(event)?;
    }
    Ok(())
}

/// Hidden classes, which have a dot in their names, and the agent's own are in no book.
fn is_unknown(classes: &Classes, loader: Loader, name: &str) -> bool {
    !name.contains('.')
        && !name.starts_with("java/lang/LucceRt")
        && holds(classes, loader, name)
        && classes.book().class_named(loader, name).is_none()
}

fn stop_at_calls(jvmti: Jvmti, method: jmethodID) {
    for bci in call_places(&jvmti.bytecodes(method)) {
        let _ = jvmti.set_breakpoint(method, bci.into());
    }
}

/// The thread is about to call from a watched method.
pub fn reached(classes: &Classes, env: Env, thread: jobject) {
    let Some(fields) = classes.fields.get() else {
        return;
    };
    carrier::holder(classes, env, thread, |thread| {
        // SAFETY: the thread is the current one, or the carrier that it acts as.
        let own = unsafe { OwnState::of_field(env.get_long(thread, fields.state.id())) };
        if let Some(state) = own.get()
            && let Some(slot) = upcall::next_slot(classes, env, state)
        {
            env.set_long(thread, fields.pointer.id(), slot.pointer() as i64);
        }
    });
}
