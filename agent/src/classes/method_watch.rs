//! Methods that call but cannot have hooks.
//!
//! Three cases have no hooks: methods of almost 64 KB, methods whose class has no room in its constant pool, and classes that
//! the VM can read but the agent cannot. No hook before their calls publishes the callee's slot, and no hook at their entry
//! identifies the caller. So the VM stops at their entry, at each of their calls and at their return, and the agent counts the
//! frames (`stack/uninstrumented.rs`). Such methods are rare, and so large that no compiler compiles them. If another agent
//! changes the class, the VM forgets its breakpoints, and they are set again.
#![allow(unsafe_code, reason = "the state that the current thread holds")]

use std::collections::{HashMap, HashSet};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti_bindings::sys::jni::{jclass, jmethodID, jobject};
use jvmti_bindings::sys::jvmti::JVMTI_EVENT_BREAKPOINT;
use jvmti_bindings::sys::jvmti::JVMTI_EVENT_CLASS_PREPARE;
use lucce_bytecode::{call_bcis, return_bcis};
use rustc_hash::FxHashMap;

use crate::classes::ClassParts;
use crate::core::is_in_scope;
use crate::memory::counter::increment_counter;
use crate::memory::locks::{WatchedMutex, WatchedRwLock};
use crate::memory::slots::Slot;
use crate::registry::ClassLoaderId;
use crate::stack::add_class;
use crate::stack::uninstrumented::{StopPlace, handle_stop};
use crate::thread::OwnState;
use crate::thread::carrier;
use lucce_jvmti::{JniEnvironment, JvmError, Jvmti};

/// The methods at which the VM stops, in loaded classes and classes about to be loaded.
#[derive(Default)]
pub struct MethodWatch {
    methods: WatchedMutex<WatchedMethods>,
    /// Some class has such methods.
    has_methods: AtomicBool,
    /// A class could not be read. If the VM accepts it, it is a prepared class that is not in the registry.
    has_unreadable: AtomicBool,
    /// Stops by the VM's method ids.
    stops: WatchedRwLock<FxHashMap<usize, MethodStopPlaces>>,
}

/// Name and descriptor of methods, by their class. A hidden class has the name in its bytes.
type WatchedMethods = HashMap<(ClassLoaderId, String), HashSet<(String, String)>>;

/// The places in a method at which the VM stops.
#[derive(Debug)]
struct MethodStopPlaces {
    loader: ClassLoaderId,
    /// In ascending order.
    calls: Vec<u16>,
    /// In ascending order.
    returns: Vec<u16>,
}

impl MethodStopPlaces {
    fn from_code(code: &[u8], loader: ClassLoaderId) -> MethodStopPlaces {
        MethodStopPlaces {
            loader,
            calls: call_bcis(code),
            returns: return_bcis(code),
        }
    }

    fn bcis(&self) -> impl Iterator<Item = u16> {
        let all = self.calls.iter().chain(&self.returns).copied();
        std::iter::once(0).chain(all.filter(|bci| *bci != 0))
    }

    /// The kinds of stops at a location. The first instruction may be several at once.
    fn places_at(&self, location: i64) -> Vec<StopPlace> {
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

impl MethodWatch {
    /// Watches a method of a class that is about to be loaded.
    ///
    /// # Errors
    /// The VM refuses the events.
    pub fn add_method(
        &self,
        jvmti: Jvmti,
        (loader, class): (ClassLoaderId, &str),
        (name, descriptor): (&str, &str),
    ) -> Result<(), JvmError> {
        enable_events(jvmti)?;
        self.has_methods.store(true, Ordering::Relaxed);
        let mut methods = self.lock_methods();
        let methods = methods.entry((loader, class.into())).or_default();
        methods.insert((name.into(), descriptor.into()));
        Ok(())
    }

    /// Watches for a class that could not be read and whose name is unknown.
    ///
    /// # Errors
    /// The VM refuses the events.
    pub fn watch_unreadable(&self, jvmti: Jvmti) -> Result<(), JvmError> {
        self.has_unreadable.store(true, Ordering::Relaxed);
        enable_events(jvmti)
    }

    /// Forgets a class by its name: an earlier load was rejected, or the class gets other code.
    pub fn forget_class(&self, loader: ClassLoaderId, class: &str) {
        if self.has_methods.load(Ordering::Relaxed) {
            self.lock_methods().remove(&(loader, class.to_string()));
        }
    }

    /// Forgets unloaded loaders' classes, including classes that were never prepared.
    pub fn forget_loaders(&self, loaders: &[ClassLoaderId]) {
        if self.has_methods.load(Ordering::Relaxed) {
            let is_gone = |loader: &ClassLoaderId| loaders.contains(loader);
            self.lock_methods()
                .retain(|(loader, _), _| !is_gone(loader));
            let mut stops = self.stops.write();
            stops.retain(|_, stops| !is_gone(&stops.loader));
        }
    }

    fn lock_methods(&self) -> MutexGuard<'_, WatchedMethods> {
        self.methods.lock()
    }

    /// Sets breakpoints in a class that the VM has prepared.
    pub fn handle_prepared(&self, agent: ClassParts<'_>, env: JniEnvironment, class: jclass) {
        let jvmti = agent.core.jvmti;
        let Some(signature) = jvmti.class_signature(class) else {
            return;
        };
        let name = signature
            .strip_prefix('L')
            .and_then(|s| s.strip_suffix(';'));
        let (Some(name), Some(loader)) = (name, jvmti.class_loader(class)) else {
            return;
        };
        let id = agent.core.loaders.loader_id(jvmti, env, loader);
        env.delete_local(loader);
        // The name of a hidden class without its suffix.
        let plain = name.split('.').next().unwrap_or(name);
        let methods = self.lock_methods().get(&(id, plain.to_string())).cloned();
        if let Some(methods) = methods {
            for method in jvmti.class_methods(class) {
                if jvmti
                    .method_name(method)
                    .is_some_and(|key| methods.contains(&key))
                {
                    self.set_breakpoints(jvmti, id, method);
                }
            }
        } else if self.has_unreadable.load(Ordering::Relaxed) && is_unregistered(agent, id, name) {
            increment_counter(&agent.core.counts.classes_skipped);
            agent
                .core
                .report_skipped(name, None, "its class file cannot be read");
            // Without ids its frames appear in no trace, but the VM still stops.
            let _ = add_class(agent.stack_parts(), class, id, name);
            for method in jvmti.class_methods(class) {
                if let Some((method_name, descriptor)) = jvmti.method_name(method) {
                    let _ = self.add_method(jvmti, (id, name), (&method_name, &descriptor));
                }
                self.set_breakpoints(jvmti, id, method);
            }
        }
    }

    /// Sets the breakpoints again after the VM has given a class other code.
    pub fn handle_changed(&self, agent: ClassParts<'_>, env: JniEnvironment, class: jclass) {
        if self.has_methods.load(Ordering::Relaxed) {
            self.handle_prepared(agent, env, class);
        }
    }

    fn set_breakpoints(&self, jvmti: Jvmti, loader: ClassLoaderId, method: jmethodID) {
        let code = jvmti.method_bytecodes(method);
        let stops = MethodStopPlaces::from_code(&code, loader);
        // A method without calls needs no stops.
        if stops.calls.is_empty() {
            return;
        }
        let bcis: Vec<u16> = stops.bcis().collect();
        let mut all_stops = self.stops.write();
        all_stops.insert(method as usize, stops);
        drop(all_stops);
        for bci in bcis {
            let _ = jvmti.set_breakpoint(method, bci.into());
        }
    }

    fn find_places(&self, method: jmethodID, location: i64) -> Vec<StopPlace> {
        let stops = self.stops.read();
        let stops = stops.get(&(method as usize));
        stops.map_or_else(Vec::new, |stops| stops.places_at(location))
    }
}

/// Both events stay enabled: further ones cost nothing measurable.
fn enable_events(jvmti: Jvmti) -> Result<(), JvmError> {
    for event in [JVMTI_EVENT_BREAKPOINT, JVMTI_EVENT_CLASS_PREPARE] {
        jvmti.enable_event(event)?;
    }
    Ok(())
}

/// Whether the class is in scope and not registered. Hidden classes (a dot in the name) and the agent's own are never registered.
fn is_unregistered(agent: ClassParts<'_>, loader: ClassLoaderId, name: &str) -> bool {
    !name.contains('.')
        && !name.starts_with("java/lang/LucceRt")
        && is_in_scope(agent.core, loader, name)
        && agent.core.registry().find_class(loader, name).is_none()
}

/// Handles a stop of the thread at this location of a method without hooks.
pub fn handle_breakpoint(
    agent: ClassParts<'_>,
    env: JniEnvironment,
    thread: jobject,
    (method, location): (jmethodID, i64),
) {
    let Some(fields) = agent.core.fields.get() else {
        return;
    };
    carrier::with_field_holder(agent.thread_parts(), env, thread, |thread| {
        // SAFETY: the thread is the current one, or the carrier that it acts as.
        let own = unsafe { OwnState::from_field(env.get_long(thread, fields.state.as_raw())) };
        let Some(state) = own.get() else { return };
        for place in agent.classes.method_watch.find_places(method, location) {
            let pointer =
                Slot::from_pointer(env.get_long(thread, fields.pointer.as_raw()) as usize);
            if let Some(slot) = handle_stop(agent.stack_parts(), env, state, (pointer, place)) {
                env.set_long(thread, fields.pointer.as_raw(), slot.pointer() as i64);
            }
        }
    });
}

#[cfg(test)]
mod method_watch_tests {
    use super::*;

    #[test]
    fn the_first_instruction_may_be_several_places() {
        // invokestatic 1; return
        let stops = MethodStopPlaces::from_code(&[0xb8, 0, 1, 0xb1], ClassLoaderId::BOOT);
        assert_eq!(stops.bcis().collect::<Vec<_>>(), [0, 3]);
        assert_eq!(stops.places_at(0), [StopPlace::Entry, StopPlace::Call]);
        assert_eq!(stops.places_at(3), [StopPlace::Return]);
        for other in [1, 2, 4, -1, 1 << 16] {
            assert_eq!(stops.places_at(other), [], "{other}");
        }
    }
}
