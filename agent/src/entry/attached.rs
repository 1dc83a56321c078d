//! The doors of an agent that works without hooks.
#![allow(unsafe_code, reason = "an entry point and callbacks of the JVM")]

use std::ffi::{c_char, c_void};

use jvmti_bindings::sys::jni::{JNI_ERR, JNI_OK, JNIEnv, JavaVM, jclass, jint, jmethodID, jobject};
use jvmti_bindings::sys::jvmti as ti;

use crate::entry::callbacks;
use crate::events::lock::{self, Monitors};
use crate::memory::gate;
use crate::options::Level;
use crate::session::attach;
use crate::session::finish::finish;
use crate::session::guard::{guard, guard_event};
use crate::thread::found::EventKind;
use crate::walked::{kept, locks, options, sampled, thrown as exceptions};

/// The VM loads the agent because `lucce attach` says so.
///
/// # Safety
/// Called by the VM with its own pointers.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnAttach(
    vm: *mut JavaVM,
    options: *const c_char,
    _: *mut c_void,
) -> jint {
    // SAFETY: the VM passes a terminated string or null.
    let text = unsafe { callbacks::text(options) };
    let started = std::panic::catch_unwind(|| attach::attach(vm, &text, &doors()));
    match started.unwrap_or_else(|_| Err("the agent failed to start".into())) {
        Ok(()) => JNI_OK,
        Err(message) => {
            options::tell(&text, &message);
            JNI_ERR
        }
    }
}

/// What the VM calls.
pub fn doors() -> ti::jvmtiEventCallbacks {
    let mut callbacks = ti::jvmtiEventCallbacks::default();
    callbacks.SampledObjectAlloc = Some(allocated);
    callbacks.GarbageCollectionFinish = Some(callbacks::garbage_collection_finish);
    callbacks.ResourceExhausted = Some(callbacks::resource_exhausted);
    callbacks.ThreadStart = Some(thread_start);
    callbacks.ThreadEnd = Some(thread_end);
    callbacks.VirtualThreadEnd = Some(virtual_thread_end);
    callbacks.Exception = Some(thrown);
    callbacks.VMInit = Some(vm_init);
    callbacks.VMDeath = Some(vm_death);
    lock::callbacks::<Walked>(&mut callbacks);
    callbacks
}

/// Only of an agent that was there from the start.
unsafe extern "system" fn vm_init(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, _: jobject) {
    guard((), |agent| {
        lucce_tracelog::keep_addresses(0);
        if let Err(message) = attach::go_live(agent, Some(env)) {
            agent.say(Level::Error, &message);
        }
    });
}

unsafe extern "system" fn vm_death(_: *mut ti::jvmtiEnv, env: *mut JNIEnv) {
    guard((), |agent| {
        if agent.is_live() {
            if let Some(leaks) = &agent.leaks {
                leaks.finish(agent, agent.env(env));
            }
            agent.coverage.ends_all(agent, agent.env(env));
            finish(agent);
        }
    });
}

/// For what the VM says that threads allocate.
unsafe extern "system" fn thread_start(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, thread: jobject) {
    guard((), |agent| {
        agent.coverage.begins(agent, agent.env(env), thread);
    });
}

unsafe extern "system" fn thread_end(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, thread: jobject) {
    guard((), |agent| {
        kept::ends(agent.jvmti, thread);
        agent.coverage.ends(agent.env(env));
    });
}

unsafe extern "system" fn virtual_thread_end(
    _: *mut ti::jvmtiEnv,
    _: *mut JNIEnv,
    thread: jobject,
) {
    guard((), |agent| kept::ends(agent.jvmti, thread));
}

unsafe extern "system" fn allocated(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    class: jclass,
    size: i64,
) {
    let size = u64::try_from(size).unwrap_or(0);
    // An event is counted by the outermost guard only, so each has one of its own.
    guard((), |agent| sampled::walk_once(agent, true));
    guard_event(gate::LEAK, |agent| {
        if let Some(leaks) = &agent.leaks {
            leaks.sampled(agent, agent.env(env), object, class, size);
        }
    });
    guard_event(counted(), |agent| {
        sampled::allocated(agent, agent.env(env), thread, (class, size));
    });
    guard((), |agent| sampled::walk_once(agent, false));
}

/// Samples of an agent that came later are what it calls allocations.
fn counted() -> u64 {
    guard(gate::SAMPLES, |agent| match agent.came_later() {
        true => gate::ALLOC,
        false => gate::SAMPLES,
    })
}

unsafe extern "system" fn thrown(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    _: jmethodID,
    _: i64,
    exception: jobject,
    catch_method: jmethodID,
    _: i64,
) {
    guard_event(gate::EXCEPTION, |agent| {
        let is_caught = !catch_method.is_null();
        exceptions::thrown(agent, agent.env(env), (thread, exception), is_caught);
    });
}

struct Walked;

impl Monitors for Walked {
    fn begins(env: *mut JNIEnv, place: (jobject, jobject), kind: &'static EventKind, since: u64) {
        guard_event(gate::LOCK, |agent| {
            locks::begins(agent, agent.env(env), place, kind, since);
        });
    }

    fn ends(env: *mut JNIEnv, thread: jobject, kind: &'static EventKind, now: u64) {
        guard((), |agent| {
            locks::ends(agent, agent.env(env), thread, kind, now);
        });
    }
}
