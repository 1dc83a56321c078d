//! Callbacks of the VM's events that are counted: monitors, exceptions, objects and samples.
//!
//! With hooks, events are counted at the thread's position in its shadow stack. In hookless mode, the VM walks the stack.
#![allow(unsafe_code, reason = "callbacks of the JVM")]

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jlong, jmethodID, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_instrument::kinds::{
    ALLOC, CLASS, EXCEPTION, HEAP, LEAK, LOCK, OBJECTS, SAMPLES, SURVIVE,
};
use lucce_jvmti::clock;

use crate::counting::open_resources::ResourceNumber;
use crate::events::class::{self, DefinedClass};
use crate::events::{exception, lock, objects, samples};
use crate::hookless::{classes, exceptions, locks, stack_samples};
use crate::session::Agent;
use crate::session::guard::{guard_callback, guard_event, guard_vm_event};
use crate::thread::lifecycle::state_of;
use crate::thread::monitor_waits::WaitKind;

/// Sets the callbacks of events.
pub fn add_callbacks(callbacks: &mut ti::jvmtiEventCallbacks) {
    callbacks.MonitorContendedEnter = Some(contended_enter);
    callbacks.MonitorContendedEntered = Some(contended_entered);
    callbacks.MonitorWait = Some(monitor_wait);
    callbacks.MonitorWaited = Some(monitor_waited);
    callbacks.Exception = Some(exception_thrown);
    callbacks.ClassLoad = Some(class_defined);
    callbacks.VMObjectAlloc = Some(vm_object_alloc);
    callbacks.SampledObjectAlloc = Some(sampled_object_alloc);
    callbacks.ObjectFree = Some(object_free);
}

/// Enabled only for tags of open resources. No function of the VM may be called here.
unsafe extern "system" fn object_free(_: *mut ti::jvmtiEnv, tag: jlong) {
    guard_callback((), |agent| {
        // The log of a recording that has ended keeps what was open.
        if agent.core.is_live() {
            let resources = &agent.counting.open_resources;
            resources.collect_resource(&agent.core, ResourceNumber(tag));
        }
    });
}

unsafe extern "system" fn contended_enter(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
) {
    begin_wait(env, (thread, object), WaitKind::Enter);
}

unsafe extern "system" fn contended_entered(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    _: jobject,
) {
    end_wait(env, thread, WaitKind::Enter);
}

unsafe extern "system" fn monitor_wait(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    _: jlong,
) {
    begin_wait(env, (thread, object), WaitKind::Notify);
}

unsafe extern "system" fn monitor_waited(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    _: jobject,
    _: u8,
) {
    end_wait(env, thread, WaitKind::Notify);
}

/// The current thread begins to wait for a monitor. `place`: the thread, and the monitor's object.
fn begin_wait(env: *mut JNIEnv, place: (jobject, jobject), wait: WaitKind) {
    let since = clock::nano_time();
    guard_event(LOCK.mask_bit, |agent| {
        let (parts, env) = (agent.counting_parts(), agent.core.jni_env(env));
        if agent.core.is_hookless() {
            locks::begin_wait(parts, env, place, wait, since);
        } else if let Some(state) = state_of(agent.thread_parts(), env, place.0).get() {
            lock::begin_wait(parts, env, state, place, (wait, since));
        }
    });
}

/// The wait of the current thread ends, even if locks are not counted any more.
fn end_wait(env: *mut JNIEnv, thread: jobject, wait: WaitKind) {
    let now = clock::nano_time();
    guard_callback((), |agent| {
        let (parts, env) = (agent.counting_parts(), agent.core.jni_env(env));
        if agent.core.is_hookless() {
            locks::end_wait(parts, env, thread, wait, now);
        } else if let Some(state) = state_of(agent.thread_parts(), env, thread)
            .get()
            .filter(|_| agent.core.is_live())
        {
            lock::end_wait(parts, env, state, (wait, now));
        }
    });
}

unsafe extern "system" fn exception_thrown(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    method: jmethodID,
    location: i64,
    exception: jobject,
    catch_method: jmethodID,
    catch_location: i64,
) {
    guard_event(EXCEPTION.mask_bit, |agent| {
        let (parts, env) = (agent.counting_parts(), agent.core.jni_env(env));
        let catch = (!catch_method.is_null()).then_some((catch_method, catch_location));
        if agent.core.is_hookless() {
            exceptions::record_exception(parts, env, (thread, exception), catch);
        } else if let Some(state) = state_of(agent.thread_parts(), env, thread).get() {
            let thrown = (exception, (method, location));
            exception::count_exception(parts, env, state, thrown, catch);
        }
    });
}

/// Enabled only with `events=class`.
unsafe extern "system" fn class_defined(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    class: jclass,
) {
    guard_event(CLASS.mask_bit, |agent| {
        let (parts, env) = (agent.counting_parts(), agent.core.jni_env(env));
        let Some(defined) = DefinedClass::read(parts, env, class, class_unloaded) else {
            return;
        };
        if agent.core.is_hookless() {
            classes::record_class(parts, env, thread, &defined);
        } else if let Some(state) = state_of(agent.thread_parts(), env, thread).get() {
            class::count_class(parts, env, state, &defined);
        }
    });
}

/// A class or loader with a tag of `class_unloads` is gone. No function of the VM may be called here.
unsafe extern "system" fn class_unloaded(_: *mut ti::jvmtiEnv, tag: jlong) {
    guard_callback((), |agent| {
        if agent.core.is_live() {
            agent.counting.class_unloads.count_unload(tag);
        }
    });
}

/// Enabled only with hooks, and with `events=alloc=all`.
unsafe extern "system" fn vm_object_alloc(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    _: jclass,
    bytes: i64,
) {
    guard_vm_event(OBJECTS.mask_bit, env, thread, |agent, env, state| {
        let bytes = u64::try_from(bytes).unwrap_or(0);
        objects::count_vm_object(agent.counting_parts(), env, state, object, bytes);
    });
}

/// An object that the VM sampled. Runs in the thread that has made it.
#[derive(Clone, Copy)]
struct SampledAllocation {
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    class: jclass,
    size: u64,
}

/// Enabled only if objects are followed or allocations are sampled.
unsafe extern "system" fn sampled_object_alloc(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    class: jclass,
    size: i64,
) {
    let sample = SampledAllocation {
        env,
        thread,
        object,
        class,
        size: u64::try_from(size).unwrap_or(0),
    };
    // Only the outermost guard counts an event, so each event has a guard of its own.
    match guard_callback(false, |agent| agent.core.is_hookless()) {
        true => record_hookless_sample(sample),
        false => record_sample(sample),
    }
}

fn record_sample(sample: SampledAllocation) {
    guard_callback((), |agent| {
        if agent.core.is_live() {
            follow_object(agent, sample);
        }
    });
    // Only one of both kinds is selected.
    guard_event(SAMPLES.mask_bit | HEAP.mask_bit, |agent| {
        let (parts, env) = (agent.counting_parts(), agent.core.jni_env(sample.env));
        let counted = samples::handle_sample(parts, env, sample.thread, sample.class, sample.size);
        if let (Some(survival), Some(counted)) = (&agent.survival, counted)
            && agent.core.event_mask.is_enabled(SURVIVE.mask_bit)
        {
            survival.follow_sample(parts, env, (sample.thread, sample.object), &counted);
        }
    });
}

fn record_hookless_sample(sample: SampledAllocation) {
    guard_callback((), |agent| {
        stack_samples::note_sample(agent.counting_parts());
        stack_samples::walk_once(agent.counting_parts(), true);
    });
    guard_event(LEAK.mask_bit, |agent| follow_object(agent, sample));
    guard_event(sample_event_kind(), |agent| {
        let (parts, env) = (agent.counting_parts(), agent.core.jni_env(sample.env));
        stack_samples::record_allocation(parts, env, sample.thread, (sample.class, sample.size));
    });
    guard_callback((), |agent| {
        stack_samples::walk_once(agent.counting_parts(), false);
    });
}

/// With `events=leak`.
fn follow_object(agent: &'static Agent, sample: SampledAllocation) {
    if let Some(leaks) = &agent.leaks {
        let (parts, env) = (agent.counting_parts(), agent.core.jni_env(sample.env));
        leaks.on_sample(parts, env, sample.object, sample.class, sample.size);
    }
}

/// The kind of a sample: an attached agent counts samples as allocations.
fn sample_event_kind() -> u64 {
    guard_callback(SAMPLES.mask_bit, |agent| match agent.core.is_attached() {
        true => ALLOC.mask_bit,
        false => SAMPLES.mask_bit,
    })
}
