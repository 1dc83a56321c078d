//! Callbacks of the VM about itself, its threads and classes, with hooks and in hookless mode.
//!
//! Read `handle_vm_init` first, then `class_file_load_hook`. Callbacks of events are in `event_callbacks`.
#![allow(unsafe_code, reason = "callbacks of the JVM")]

use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jint, jmethodID, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_bytecode::mutf8;
use lucce_instrument::kinds::{ALLOC_SIZES, HEAP, HUMONGOUS_BYTES, SAMPLES};
use lucce_jvmti::{JniEnvironment, flags};

use crate::classes::java_agents::ArrivingClass;
use crate::classes::load::ClassArrival;
use crate::classes::rewriting::RewriteOutcome;
use crate::classes::{java_agents, load, method_watch, unloading};
use crate::core::record_code_source;
use crate::entry::{
    event_callbacks, jni_allocations, jni_brackets, library_calls, native_methods, tool_calls,
};
use crate::events::{class, samples};
use crate::hookless::{stack_samples, thread_storage};
use crate::leaks::{self, survival};
use crate::options::LogLevel;
use crate::session::Agent;
use crate::session::finish::finish_recording;
use crate::session::guard::guard_callback;
use crate::session::live::CallInterceptors;
use crate::session::{
    attach, burst, control, delay, file_watch, helper_class, holders_request, live, malloc_trim,
    method_hooks, push,
};
use crate::thread::lifecycle;

const ENTRY_POINTS: CallInterceptors = CallInterceptors {
    bracket: jni_brackets::install_brackets,
    objects: jni_allocations::install_allocation_functions,
    tool_calls: tool_calls::install_tool_functions,
};

/// The text of the agent's options.
///
/// # Safety
/// `options` is null or a terminated string.
pub unsafe fn string_from_c(options: *const c_char) -> String {
    match options.is_null() {
        true => String::new(),
        // SAFETY: the caller passes a terminated string, or null, which is excluded here.
        false => unsafe { CStr::from_ptr(options) }
            .to_string_lossy()
            .into_owned(),
    }
}

/// The callbacks of the agent. The VM calls those whose events are enabled.
pub fn callback_table() -> ti::jvmtiEventCallbacks {
    let mut callbacks = ti::jvmtiEventCallbacks::default();
    callbacks.VMStart = Some(vm_start);
    callbacks.VMInit = Some(vm_init);
    callbacks.VMDeath = Some(vm_death);
    callbacks.ThreadStart = Some(thread_start);
    callbacks.ThreadEnd = Some(thread_end);
    callbacks.VirtualThreadEnd = Some(virtual_thread_end);
    callbacks.ClassPrepare = Some(class_prepare);
    callbacks.Breakpoint = Some(breakpoint);
    callbacks.ClassFileLoadHook = Some(class_file_load_hook);
    callbacks.GarbageCollectionFinish = Some(garbage_collection_finish);
    callbacks.ResourceExhausted = Some(resource_exhausted);
    callbacks.NativeMethodBind = Some(native_methods::native_method_bind);
    event_callbacks::add_callbacks(&mut callbacks);
    callbacks
}

unsafe extern "system" fn vm_start(_: *mut ti::jvmtiEnv, env: *mut JNIEnv) {
    guard_callback((), |agent| {
        if helper_class::define_boot_variant(agent, agent.core.jni_env(env)).is_none() {
            agent.core.report_message(
                LogLevel::Error,
                "the helper class could not be defined; nothing is recorded",
            );
        }
    });
}

unsafe extern "system" fn vm_init(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, _: jobject) {
    guard_callback((), |agent| match agent.core.is_hookless() {
        true => start_hookless_events(agent, env),
        false => handle_vm_init(agent, agent.core.jni_env(env)),
    });
}

/// An attached agent has started its events by itself.
fn start_hookless_events(agent: &'static Agent, env: *mut JNIEnv) {
    lucce_tracelog::keep_addresses(0);
    match attach::start_events(agent, Some(env)) {
        Ok(()) => {
            control::start_listener(agent);
            library_calls::start_recording(agent, agent.core.jni_env(env));
        }
        Err(message) => agent.core.report_message(LogLevel::Error, &message),
    }
}

/// Makes hooks live when the VM is initialised. Called by VMInit, or earlier by the first Java agent on the command
/// line.
pub fn handle_vm_init(agent: &'static Agent, env: JniEnvironment) {
    static KNOWN: AtomicBool = AtomicBool::new(false);
    // Relaxed: both calls come from the same thread.
    if KNOWN.swap(true, Ordering::Relaxed) {
        return;
    }
    // For one reference to each thread, and for references that the VM makes while it binds native methods.
    env.reserve_references(64);
    if live::start_live_recording(agent, env, &ENTRY_POINTS).is_none() {
        agent.core.report_message(
            LogLevel::Error,
            "the hooks could not be made live; nothing is recorded",
        );
    }
    if let Some(leaks) = &agent.leaks
        && leaks::start_sampling(agent.counting_parts(), leaks, holders_request::loading_vm())
            .is_err()
    {
        agent
            .core
            .report_message(LogLevel::Error, "this VM does not sample allocations");
    }
    let events = &agent.core.options.events;
    if let Some(vm) = holders_request::loading_vm().filter(|_| events.has_kind(&ALLOC_SIZES))
        && let Some(bytes) = flags::humongous_bytes(vm.as_raw())
    {
        agent.core.append_meta(HUMONGOUS_BYTES, &bytes.to_string());
    }
    let sampled = events.alloc_interval().map(|bytes| (&SAMPLES, bytes));
    let sampled = sampled.or(events.heap_interval().map(|bytes| (&HEAP, bytes)));
    if let Some((kind, bytes)) = sampled
        && samples::start_sampling(agent.counting_parts(), kind, bytes).is_err()
    {
        agent
            .core
            .report_message(LogLevel::Error, "this VM does not sample allocations");
    }
    if let (Some(survival), Some(vm)) = (&agent.survival, holders_request::loading_vm())
        && survival::start_following(agent.counting_parts(), survival, vm).is_err()
    {
        let text = "this VM does not report collections";
        agent.core.report_message(LogLevel::Error, text);
    }
    if events.vm_interval().is_some() {
        agent
            .counters
            .coverage
            .renew_buffer(agent.thread_parts(), env);
    }
    // The VM has the address space that was kept for it.
    lucce_tracelog::keep_addresses(0);
    live::write_vm_properties(agent);
    if agent.core.is_live() {
        control::start_listener(agent);
        burst::start_bursts(agent);
        delay::wait_for_delay(agent);
        malloc_trim::start_trimming(agent);
        push::start_push(agent);
        file_watch::start_watching(agent);
        library_calls::start_recording(agent, env);
    }
}

/// Begins a thread. Before VMInit, the start of the first thread beside the main one shows that `java.lang.Thread` is
/// initialised and frames can be kept.
unsafe extern "system" fn thread_start(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, thread: jobject) {
    guard_callback((), |agent| {
        let env = agent.core.jni_env(env);
        if !agent.core.is_hookless() && !agent.core.is_live() {
            helper_class::mark_threads_started(env);
            return;
        }
        let parts = agent.thread_parts();
        agent.counters.coverage.begin_thread(parts, env, thread);
        match agent.core.is_hookless() {
            true => stack_samples::note_thread_start(agent.counting_parts()),
            false => lifecycle::begin_started(parts, env, thread),
        }
    });
}

unsafe extern "system" fn thread_end(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, thread: jobject) {
    guard_callback((), |agent| {
        let env = agent.core.jni_env(env);
        if agent.core.is_hookless() {
            thread_storage::end_thread(agent.core.jvmti, thread);
        }
        agent.counters.coverage.end_thread(env);
        if !agent.core.is_hookless() {
            lifecycle::end_thread(agent.thread_parts(), env, thread);
        }
    });
}

/// Its carrier continues to run.
unsafe extern "system" fn virtual_thread_end(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
) {
    guard_callback((), |agent| match agent.core.is_hookless() {
        true => thread_storage::end_thread(agent.core.jvmti, thread),
        false => lifecycle::end_thread(agent.thread_parts(), agent.core.jni_env(env), thread),
    });
}

/// Enabled only while classes are watched.
unsafe extern "system" fn class_prepare(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    _: jobject,
    class: jclass,
) {
    guard_callback((), |agent| {
        agent.classes.method_watch.handle_prepared(
            agent.class_parts(),
            agent.core.jni_env(env),
            class,
        )
    });
}

/// Set only in watched methods.
unsafe extern "system" fn breakpoint(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    method: jmethodID,
    location: i64,
) {
    guard_callback((), |agent| {
        method_watch::handle_breakpoint(
            agent.class_parts(),
            agent.core.jni_env(env),
            thread,
            (method, location),
        );
    });
}

/// Enabled only with `events=leak` or `survive`. No function of the VM may be called here.
unsafe extern "system" fn garbage_collection_finish(_: *mut ti::jvmtiEnv) {
    guard_callback((), |agent| {
        if let Some(leaks) = &agent.leaks {
            leaks.on_collection(agent.counting_parts());
        }
        if let Some(survival) = &agent.survival {
            survival.on_collection();
        }
    });
}

/// Enabled only with `events=leak`. Runs in the thread that gets the error, before it gets it.
unsafe extern "system" fn resource_exhausted(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    flags: jint,
    _: *const c_void,
    description: *const c_char,
) {
    if flags & ti::JVMTI_RESOURCE_EXHAUSTED_JAVA_HEAP == 0 {
        return;
    }
    // SAFETY: the VM passes a terminated string or null.
    let what = unsafe { string_from_c(description) };
    guard_callback((), |agent| {
        if let (Some(leaks), true) = (&agent.leaks, agent.core.is_live()) {
            leaks.on_heap_exhausted(agent.counting_parts(), agent.core.jni_env(env), &what);
        }
    });
}

unsafe extern "system" fn vm_death(_: *mut ti::jvmtiEnv, env: *mut JNIEnv) {
    guard_callback((), |agent| {
        // The agent was detached, or its events could not be started.
        if agent.core.is_hookless() && !agent.core.is_live() {
            return;
        }
        if let Some(leaks) = &agent.leaks {
            leaks.finish_sampling(agent.counting_parts(), agent.core.jni_env(env));
        }
        if let Some(survival) = &agent.survival {
            survival.finish_following(agent.counting_parts());
        }
        agent
            .counters
            .coverage
            .end_all_threads(agent.thread_parts(), agent.core.jni_env(env));
        finish_recording(agent);
    });
}

#[allow(clippy::too_many_arguments, reason = "the VM's prototype")]
unsafe extern "system" fn class_file_load_hook(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    redefined: jclass,
    loader: jobject,
    name: *const c_char,
    domain: jobject,
    length: c_int,
    bytes: *const c_uchar,
    new_length: *mut c_int,
    new_bytes: *mut *mut c_uchar,
) {
    guard_callback((), |agent| {
        // SAFETY: the VM passes a terminated name or null.
        let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_bytes());
        if name.is_some_and(|name| name.starts_with(b"java/lang/LucceRt")) {
            return;
        }
        // SAFETY: the VM passes `length` bytes.
        let class = unsafe { std::slice::from_raw_parts(bytes, length as usize) };
        // SAFETY: the VM's out parameters; the memory is from its own allocator.
        let replace_class = |memory: *mut u8, length: usize| unsafe {
            *new_length = length as c_int;
            *new_bytes = memory;
        };
        if let (Some(name), true) = (name, redefined.is_null()) {
            let env = agent.core.jni_env(env);
            class::note_class_bytes(agent.counting_parts(), env, Some(name), class.len());
        }
        if agent.core.is_hookless() {
            let name = mutf8::decode(name.unwrap_or_default());
            let env = agent.core.jni_env(env);
            let hooked = method_hooks::transform_class(agent, env, loader, (&name, class));
            if let Some(new) = hooked
                && let Some(memory) = agent.core.jvmti.bytes_for_vm(&new)
            {
                replace_class(memory, new.len());
            }
            return;
        }
        if let Some(name) = name {
            java_agents::detect_java_agents(name);
        }
        let record_source = |loader| {
            if let Some(name) = name.filter(|_| !domain.is_null()) {
                let (name, env) = (mutf8::decode(name), agent.core.jni_env(env));
                record_code_source(&agent.core, env, loader, &name, domain);
            }
        };
        let class = match java_agents::classify_class(class) {
            ArrivingClass::Plain(class) => class,
            ArrivingClass::Hooked => {
                let env = agent.core.jni_env(env);
                let loader = agent.core.loaders.loader_id(agent.core.jvmti, env, loader);
                return record_source(loader);
            }
            ArrivingClass::KeepsOldHooks => {
                return java_agents::report_kept_hooks(
                    agent.class_parts(),
                    &mutf8::decode(name.unwrap_or_default()),
                );
            }
        };
        let class = &*class;
        let loader =
            agent
                .core
                .loaders
                .loader_id(agent.core.jvmti, agent.core.jni_env(env), loader);
        if agent.core.is_live() {
            unloading::forget_unloaded_classes(agent.class_parts(), agent.core.jni_env(env));
        }
        let arrival = match redefined.is_null() {
            true => ClassArrival::Load,
            false => ClassArrival::Change,
        };
        let outcome = load::transform_class(agent.class_parts(), loader, class, arrival);
        record_source(loader);
        let RewriteOutcome::Hooked(new) = outcome else {
            return;
        };
        java_agents::record_hooked(class, &new);
        if let Some(name) = name {
            agent.classes.original_classes.record_class(
                loader,
                mutf8::decode(name).as_bytes(),
                class,
            );
        }
        let memory = agent
            .core
            .jvmti
            .bytes_for_vm(&new)
            .unwrap_or(ptr::null_mut());
        if !memory.is_null() {
            replace_class(memory, new.len());
        }
    });
}
