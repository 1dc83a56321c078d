//! Callbacks of the VM for an agent that was loaded at the start of the JVM.
//!
//! Read `Agent_OnLoad`, then `handle_vm_init` and `class_file_load_hook`. Events of locks, exceptions and objects
//! come through `AgentEntryPoint`.
#![allow(unsafe_code, reason = "entry points and callbacks of the JVM")]

use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti_bindings::sys::jni::{JNI_ERR, JNI_OK, JNIEnv, JavaVM, jclass, jint, jmethodID, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_bytecode::mutf8;
use lucce_jvmti::JniEnvironment;

use crate::classes::java_agents::ArrivingClass;
use crate::classes::load::ClassArrival;
use crate::classes::{java_agents, load, method_watch, unloading};
use crate::core::record_code_source;
use crate::counting::AgentCounting;
use crate::entry::{c_api, hookless_callbacks, jni_allocations, jni_brackets, tool_calls};
use crate::events::{self, EventCallback, samples};
use crate::leaks;
use crate::memory::event_mask;
use crate::options::LogLevel;
use crate::session::Agent;
use crate::session::finish::finish_recording;
use crate::session::guard::{guard_callback, guard_event, guard_vm_event};
use crate::session::live::CallInterceptors;
use crate::session::{
    burst, control, file_watch, helper_class, holders_request, live, malloc_trim, push, start,
};
use crate::thread::lifecycle::state_of;
use crate::thread::{ThreadState, lifecycle};

/// Passes events of the VM to the code that counts them.
struct AgentEntryPoint;

impl EventCallback for AgentEntryPoint {
    fn handle_event(
        kind: u64,
        env: *mut JNIEnv,
        thread: jobject,
        body: impl FnOnce(&AgentCounting, JniEnvironment, &ThreadState),
    ) {
        guard_vm_event(kind, env, thread, |agent, env, state| {
            body(agent, env, state);
        });
    }

    fn handle_end(
        env: *mut JNIEnv,
        thread: jobject,
        body: impl FnOnce(&AgentCounting, JniEnvironment, &ThreadState),
    ) {
        guard_callback((), |agent| {
            let env = agent.jni_env(env);
            let own = state_of(agent, env, thread);
            if let Some(state) = own.get().filter(|_| agent.is_live()) {
                body(agent, env, state);
            }
        });
    }
}

const ENTRY_POINTS: CallInterceptors = CallInterceptors {
    bracket: jni_brackets::install_brackets,
    objects: jni_allocations::install_allocation_functions,
    tool_calls: tool_calls::install_tool_functions,
};

/// Loaded by the VM before any Java code runs.
///
/// # Safety
/// Called by the VM with its own pointers.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnLoad(
    vm: *mut JavaVM,
    options: *const c_char,
    _: *mut c_void,
) -> jint {
    // SAFETY: the VM passes a terminated string or null.
    let text = unsafe { string_from_c(options) };
    let started = std::panic::catch_unwind(|| {
        c_api::set_vm(vm);
        let doors = start::CallbackTables {
            hooked: callback_table(),
            hookless: hookless_callbacks::callback_table(),
        };
        start::start_agent(vm, &text, &doors)
    });
    match started.unwrap_or_else(|_| Err("the agent failed to start".into())) {
        Ok(()) => JNI_OK,
        Err(message) => {
            eprintln!("lucce: {message}");
            JNI_ERR
        }
    }
}

/// The text of the agent's options.
///
/// # Safety
/// `options` is null or a terminated string.
pub unsafe fn string_from_c(options: *const c_char) -> String {
    match options.is_null() {
        true => String::new(),
        // SAFETY: as promised.
        false => unsafe { CStr::from_ptr(options) }
            .to_string_lossy()
            .into_owned(),
    }
}

/// The callbacks of an agent that was loaded at the start of the JVM.
fn callback_table() -> ti::jvmtiEventCallbacks {
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
    callbacks.SampledObjectAlloc = Some(sampled_object_alloc);
    callbacks.GarbageCollectionFinish = Some(garbage_collection_finish);
    callbacks.ResourceExhausted = Some(resource_exhausted);
    events::add_callbacks::<AgentEntryPoint>(&mut callbacks);
    callbacks
}

unsafe extern "system" fn vm_start(_: *mut ti::jvmtiEnv, env: *mut JNIEnv) {
    guard_callback((), |agent| {
        if helper_class::define_boot_variant(agent, agent.jni_env(env)).is_none() {
            agent.report_message(
                LogLevel::Error,
                "the helper class could not be defined; nothing is recorded",
            );
        }
    });
}

unsafe extern "system" fn vm_init(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, _: jobject) {
    guard_callback((), |agent| handle_vm_init(agent, agent.jni_env(env)));
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
        agent.report_message(
            LogLevel::Error,
            "the hooks could not be made live; nothing is recorded",
        );
    }
    if let Some(leaks) = &agent.leaks
        && leaks::start_sampling(agent, leaks, holders_request::loading_vm()).is_err()
    {
        agent.report_message(LogLevel::Error, "this VM does not sample allocations");
    }
    if let Some(bytes) = agent.options.events.alloc_interval()
        && samples::start_sampling(agent, bytes).is_err()
    {
        agent.report_message(LogLevel::Error, "this VM does not sample allocations");
    }
    if agent
        .options
        .events
        .leak_interval()
        .or(agent.options.events.alloc_interval())
        .is_some()
    {
        agent.coverage.renew_buffer(agent, env);
    }
    // The VM has the address space that was kept for it.
    lucce_tracelog::keep_addresses(0);
    live::write_vm_properties(agent);
    if agent.is_live() {
        control::start_listener(agent);
        burst::start_bursts(agent);
        malloc_trim::start_trimming(agent);
        push::start_push(agent);
        file_watch::start_watching(agent);
    }
}

/// Begins a thread. Before VMInit, the start of the first thread beside the main one shows that `java.lang.Thread` is
/// initialised and frames can be kept.
unsafe extern "system" fn thread_start(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, thread: jobject) {
    guard_callback((), |agent| {
        let env = agent.jni_env(env);
        if agent.is_live() {
            agent.coverage.begin_thread(agent, env, thread);
            lifecycle::begin_started(agent, env, thread);
        } else {
            helper_class::mark_threads_started(env);
        }
    });
}

unsafe extern "system" fn thread_end(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, thread: jobject) {
    guard_callback((), |agent| {
        let env = agent.jni_env(env);
        agent.coverage.end_thread(env);
        lifecycle::end_thread(agent, env, thread);
    });
}

/// Its carrier continues to run.
unsafe extern "system" fn virtual_thread_end(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
) {
    guard_callback((), |agent| {
        lifecycle::end_thread(agent, agent.jni_env(env), thread)
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
        agent
            .method_watch
            .handle_prepared(agent, agent.jni_env(env), class)
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
        method_watch::handle_breakpoint(agent, agent.jni_env(env), thread, (method, location));
    });
}

/// Enabled only with `events=leak` or `alloc=SIZE`. Runs in the thread that has made the object.
unsafe extern "system" fn sampled_object_alloc(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    class: jclass,
    size: i64,
) {
    let size = u64::try_from(size).unwrap_or(0);
    guard_callback((), |agent| {
        if let (Some(leaks), true) = (&agent.leaks, agent.is_live()) {
            leaks.on_sample(agent, agent.jni_env(env), object, class, size);
        }
    });
    guard_event(event_mask::SAMPLES, |agent| {
        samples::handle_sample(agent, agent.jni_env(env), thread, class, size);
    });
}

/// Enabled only with `events=leak`. No function of the VM may be called here.
///
/// # Safety
/// Called by the VM.
pub unsafe extern "system" fn garbage_collection_finish(_: *mut ti::jvmtiEnv) {
    guard_callback((), |agent| {
        if let Some(leaks) = &agent.leaks {
            leaks.on_collection(agent);
        }
    });
}

/// Enabled only with `events=leak`. Runs in the thread that gets the error, before it gets it.
///
/// # Safety
/// Called by the VM.
pub unsafe extern "system" fn resource_exhausted(
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
        if let (Some(leaks), true) = (&agent.leaks, agent.is_live()) {
            leaks.on_heap_exhausted(agent, agent.jni_env(env), &what);
        }
    });
}

unsafe extern "system" fn vm_death(_: *mut ti::jvmtiEnv, env: *mut JNIEnv) {
    guard_callback((), |agent| {
        if let Some(leaks) = &agent.leaks {
            leaks.finish_sampling(agent, agent.jni_env(env));
        }
        agent.coverage.end_all_threads(agent, agent.jni_env(env));
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
        if let Some(name) = name {
            java_agents::detect_java_agents(name);
        }
        let record_source = |loader| {
            let name = mutf8::decode(name.unwrap_or_default());
            record_code_source(agent, agent.jni_env(env), loader, &name, domain);
        };
        let class = match java_agents::classify_class(class) {
            ArrivingClass::Plain(class) => class,
            ArrivingClass::Hooked => {
                let env = agent.jni_env(env);
                return record_source(agent.loaders.loader_id(agent.jvmti, env, loader));
            }
            ArrivingClass::KeepsOldHooks => {
                return java_agents::report_kept_hooks(
                    agent,
                    &mutf8::decode(name.unwrap_or_default()),
                );
            }
        };
        let class = &*class;
        let loader = agent
            .loaders
            .loader_id(agent.jvmti, agent.jni_env(env), loader);
        if agent.is_live() {
            unloading::forget_unloaded_classes(agent, agent.jni_env(env));
        }
        let arrival = match redefined.is_null() {
            true => ClassArrival::Load,
            false => ClassArrival::Change,
        };
        let new = load::transform_class(agent, loader, class, arrival);
        record_source(loader);
        let Some(new) = new else {
            return;
        };
        java_agents::record_hooked(class, &new);
        if let Some(name) = name {
            agent
                .original_classes
                .record_class(loader, mutf8::decode(name).as_bytes(), class);
        }
        let memory = agent.jvmti.bytes_for_vm(&new).unwrap_or(ptr::null_mut());
        if !memory.is_null() {
            // SAFETY: the VM's out parameters; the memory is from its own allocator.
            unsafe {
                *new_length = new.len() as c_int;
                *new_bytes = memory;
            }
        }
    });
}
