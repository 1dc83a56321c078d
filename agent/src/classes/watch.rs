//! Methods that cannot have hooks but call.
//!
//! A method of almost 64 KB, or one for which there is no room in its class's constant pool, keeps its code, and
//! so does a class that the agent cannot read though the VM does. Nothing says before its calls where the
//! callee's slot is, and nothing at its entry who called it. So the VM stops at its entry, at each of its calls and
//! where it returns, and the frames are counted (`stack/uninstrumented.rs`). Such methods are rare, and so large that no
//! compiler touches them. When another agent changes the class, the VM forgets where it was to stop: it is told again.
#![allow(unsafe_code, reason = "the state that the current thread holds")]

use std::collections::{HashMap, HashSet};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti_bindings::sys::jni::{jclass, jmethodID, jobject};
use jvmti_bindings::sys::jvmti::JVMTI_EVENT_BREAKPOINT;
use jvmti_bindings::sys::jvmti::JVMTI_EVENT_CLASS_PREPARE;
use lucce_bytecode::{call_places, return_places};
use rustc_hash::FxHashMap;

use crate::book::Loader;
use crate::classes::Classes;
use crate::core::holds;
use crate::memory::counter::count;
use crate::memory::locks::{WatchedMutex, WatchedRwLock};
use crate::memory::slots::Slot;
use crate::stack::add_class;
use crate::stack::uninstrumented::{StopPlace, stop_at};
use crate::thread::OwnState;
use crate::thread::carrier;
use lucce_vm::{Env, Failed, Jvmti};

/// Methods at which the VM stops, in classes that are loaded or about to be.
#[derive(Default)]
pub struct Watch {
    methods: WatchedMutex<WatchedMethods>,
    /// Some class has such methods.
    any: AtomicBool,
    /// Some class could not be read: it is one that the book does not have when the VM has accepted it.
    unread: AtomicBool,
    /// By the VM's ids of methods.
    stops: WatchedRwLock<FxHashMap<usize, MethodStops>>,
}

/// Name and descriptor of methods, by their class. A hidden class has the name that its bytes have.
type WatchedMethods = HashMap<(Loader, String), HashSet<(String, String)>>;

/// Where the VM stops in a method.
#[derive(Debug)]
struct MethodStops {
    loader: Loader,
    /// In ascending order.
    calls: Vec<u16>,
    /// In ascending order.
    returns: Vec<u16>,
}

impl MethodStops {
    fn of_code(code: &[u8], loader: Loader) -> MethodStops {
        MethodStops {
            loader,
            calls: call_places(code),
            returns: return_places(code),
        }
    }

    fn bcis(&self) -> impl Iterator<Item = u16> {
        let all = self.calls.iter().chain(&self.returns).copied();
        std::iter::once(0).chain(all.filter(|bci| *bci != 0))
    }

    /// What happens at a location: more than one thing at the first instruction.
    fn places(&self, location: i64) -> Vec<StopPlace> {
        let is_one_of = |bcis: &[u16]| {
            let bci = u16::try_from(location);
            bci.is_ok_and(|bci| bcis.binary_search(&bci).is_ok())
        };
        let happens = [
            (location == 0, StopPlace::Entry),
            (is_one_of(&self.calls), StopPlace::Call),
            (is_one_of(&self.returns), StopPlace::Return),
        ];
        let places = happens.into_iter().filter(|(happens, _)| *happens);
        places.map(|(_, place)| place).collect()
    }
}

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
        let mut methods = self.methods();
        let methods = methods.entry((loader, class.into())).or_default();
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

    /// A class with this name comes: one that was to come has been refused, or one that is there gets other code.
    pub fn forget(&self, loader: Loader, class: &str) {
        if self.any.load(Ordering::Relaxed) {
            self.methods().remove(&(loader, class.to_string()));
        }
    }

    /// The VM has unloaded these loaders' classes, of which some were never prepared.
    pub fn forget_all(&self, loaders: &[Loader]) {
        if self.any.load(Ordering::Relaxed) {
            let is_gone = |loader: &Loader| loaders.contains(loader);
            self.methods().retain(|(loader, _), _| !is_gone(loader));
            let mut stops = self.stops.write();
            stops.retain(|_, stops| !is_gone(&stops.loader));
        }
    }

    fn methods(&self) -> MutexGuard<'_, WatchedMethods> {
        self.methods.lock()
    }

    /// The VM has prepared a class.
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
        // Of a hidden class, what stands before its suffix.
        let plain = name.split('.').next().unwrap_or(name);
        let known = self.methods().get(&(id, plain.to_string())).cloned();
        if let Some(methods) = known {
            for method in jvmti.methods(class) {
                if jvmti
                    .method_name(method)
                    .is_some_and(|key| methods.contains(&key))
                {
                    self.stop_in(jvmti, id, method);
                }
            }
        } else if self.unread.load(Ordering::Relaxed) && is_unknown(classes, id, name) {
            count(&classes.counts.classes_skipped);
            classes.skipped(name, None, "its class file cannot be read");
            // Without ids its frames are in no trace, and the VM is still asked.
            let _ = add_class(classes, class, id, name);
            for method in jvmti.methods(class) {
                if let Some((method_name, descriptor)) = jvmti.method_name(method) {
                    let _ = self.add(jvmti, (id, name), (&method_name, &descriptor));
                }
                self.stop_in(jvmti, id, method);
            }
        }
    }

    /// The VM has given a class other code: it stops nowhere in it any more.
    pub fn changed(&self, classes: &Classes, env: Env, class: jclass) {
        if self.any.load(Ordering::Relaxed) {
            self.prepared(classes, env, class);
        }
    }

    fn stop_in(&self, jvmti: Jvmti, loader: Loader, method: jmethodID) {
        let code = jvmti.bytecodes(method);
        let stops = MethodStops::of_code(&code, loader);
        // It does nothing that matters.
        if stops.calls.is_empty() {
            return;
        }
        let bcis: Vec<u16> = stops.bcis().collect();
        let mut known = self.stops.write();
        known.insert(method as usize, stops);
        drop(known);
        for bci in bcis {
            let _ = jvmti.set_breakpoint(method, bci.into());
        }
    }

    fn places(&self, method: jmethodID, location: i64) -> Vec<StopPlace> {
        let stops = self.stops.read();
        let stops = stops.get(&(method as usize));
        stops.map_or_else(Vec::new, |stops| stops.places(location))
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

/// The thread is at this location of a method without hooks.
pub fn reached(classes: &Classes, env: Env, thread: jobject, (method, location): (jmethodID, i64)) {
    let Some(fields) = classes.fields.get() else {
        return;
    };
    carrier::holder(classes, env, thread, |thread| {
        // SAFETY: the thread is the current one, or the carrier that it acts as.
        let own = unsafe { OwnState::of_field(env.get_long(thread, fields.state.id())) };
        let Some(state) = own.get() else { return };
        for place in classes.watch.places(method, location) {
            let pointer = Slot::at(env.get_long(thread, fields.pointer.id()) as usize);
            if let Some(slot) = stop_at(classes, env, state, (pointer, place)) {
                env.set_long(thread, fields.pointer.id(), slot.pointer() as i64);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_instruction_may_be_several_places() {
        // invokestatic 1; return
        let stops = MethodStops::of_code(&[0xb8, 0, 1, 0xb1], Loader::BOOT);
        assert_eq!(stops.bcis().collect::<Vec<_>>(), [0, 3]);
        assert_eq!(stops.places(0), [StopPlace::Entry, StopPlace::Call]);
        assert_eq!(stops.places(3), [StopPlace::Return]);
        for other in [1, 2, 4, -1, 1 << 16] {
            assert_eq!(stops.places(other), [], "{other}");
        }
    }
}
