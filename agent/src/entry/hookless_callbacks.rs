//! Callbacks of the VM for an agent without hooks.
#![allow(unsafe_code, reason = "an entry point and callbacks of the JVM")]

use std::ffi::{c_char, c_void};

use jvmti_bindings::sys::jni::{JNI_ERR, JNI_OK, JNIEnv, JavaVM, jclass, jint, jmethodID, jobject};
use jvmti_bindings::sys::jvmti as ti;

use crate::entry::callbacks;
use crate::events::lock::{self, MonitorCallbacks};
use crate::hookless::{exceptions, locks, stack_samples, thread_storage};
use crate::memory::event_mask;
use crate::options::LogLevel;
use crate::session::attach;
use crate::session::finish::finish_recording;
use crate::session::guard::{guard_callback, guard_event};
use crate::thread::event_kind::EventKind;

/// Loaded by the VM on request of `lucce attach`.
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
    let text = unsafe { callbacks::string_from_c(options) };
    let started = std::panic::catch_unwind(|| attach::attach_agent(vm, &text, &callback_table()));
    match started.unwrap_or_else(|_| Err("the agent failed to start".into())) {
        Ok(()) => JNI_OK,
        Err(message) => {
            attach::write_refusal(&text, &message);
            JNI_ERR
        }
    }
}

/// The callbacks of an agent without hooks.
pub fn callback_table() -> ti::jvmtiEventCallbacks {
    let mut callbacks = ti::jvmtiEventCallbacks::default();
    callbacks.SampledObjectAlloc = Some(sampled_object_alloc);
    callbacks.GarbageCollectionFinish = Some(callbacks::garbage_collection_finish);
    callbacks.ResourceExhausted = Some(callbacks::resource_exhausted);
    callbacks.ThreadStart = Some(thread_start);
    callbacks.ThreadEnd = Some(thread_end);
    callbacks.VirtualThreadEnd = Some(virtual_thread_end);
    callbacks.Exception = Some(exception_thrown);
    callbacks.VMInit = Some(vm_init);
    callbacks.VMDeath = Some(vm_death);
    lock::add_callbacks::<HooklessMonitors>(&mut callbacks);
    callbacks
}

/// Called only if the agent was loaded at the start of the JVM.
unsafe extern "system" fn vm_init(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, _: jobject) {
    guard_callback((), |agent| {
        lucce_tracelog::keep_addresses(0);
        if let Err(message) = attach::start_events(agent, Some(env)) {
            agent.report_message(LogLevel::Error, &message);
        }
    });
}

unsafe extern "system" fn vm_death(_: *mut ti::jvmtiEnv, env: *mut JNIEnv) {
    guard_callback((), |agent| {
        if agent.is_live() {
            if let Some(leaks) = &agent.leaks {
                leaks.finish_sampling(agent, agent.jni_env(env));
            }
            agent.coverage.end_all_threads(agent, agent.jni_env(env));
            finish_recording(agent);
        }
    });
}

/// Follows the VM's allocation counts of the thread.
unsafe extern "system" fn thread_start(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, thread: jobject) {
    guard_callback((), |agent| {
        agent
            .coverage
            .begin_thread(agent, agent.jni_env(env), thread);
    });
}

unsafe extern "system" fn thread_end(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, thread: jobject) {
    guard_callback((), |agent| {
        thread_storage::end_thread(agent.jvmti, thread);
        agent.coverage.end_thread(agent.jni_env(env));
    });
}

unsafe extern "system" fn virtual_thread_end(
    _: *mut ti::jvmtiEnv,
    _: *mut JNIEnv,
    thread: jobject,
) {
    guard_callback((), |agent| thread_storage::end_thread(agent.jvmti, thread));
}

unsafe extern "system" fn sampled_object_alloc(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    class: jclass,
    size: i64,
) {
    let size = u64::try_from(size).unwrap_or(0);
    // Only the outermost guard counts an event, so each event has a guard of its own.
    guard_callback((), |agent| stack_samples::walk_once(agent, true));
    guard_event(event_mask::LEAK, |agent| {
        if let Some(leaks) = &agent.leaks {
            leaks.on_sample(agent, agent.jni_env(env), object, class, size);
        }
    });
    guard_event(sample_event_kind(), |agent| {
        stack_samples::record_allocation(agent, agent.jni_env(env), thread, (class, size));
    });
    guard_callback((), |agent| stack_samples::walk_once(agent, false));
}

/// The kind of a sample: an attached agent counts samples as allocations.
fn sample_event_kind() -> u64 {
    guard_callback(event_mask::SAMPLES, |agent| match agent.is_attached() {
        true => event_mask::ALLOC,
        false => event_mask::SAMPLES,
    })
}

unsafe extern "system" fn exception_thrown(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    _: jmethodID,
    _: i64,
    exception: jobject,
    catch_method: jmethodID,
    _: i64,
) {
    guard_event(event_mask::EXCEPTION, |agent| {
        let is_caught = !catch_method.is_null();
        exceptions::record_exception(agent, agent.jni_env(env), (thread, exception), is_caught);
    });
}

struct HooklessMonitors;

impl MonitorCallbacks for HooklessMonitors {
    fn begin_wait(
        env: *mut JNIEnv,
        place: (jobject, jobject),
        kind: &'static EventKind,
        since: u64,
    ) {
        guard_event(event_mask::LOCK, |agent| {
            locks::begin_wait(agent, agent.jni_env(env), place, kind, since);
        });
    }

    fn end_wait(env: *mut JNIEnv, thread: jobject, kind: &'static EventKind, now: u64) {
        guard_callback((), |agent| {
            locks::end_wait(agent, agent.jni_env(env), thread, kind, now);
        });
    }
}
