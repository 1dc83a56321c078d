//! What the VM calls where the agent was there from the start.
#![allow(unsafe_code, reason = "entry points and callbacks of the JVM")]

use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti_bindings::sys::jni::{JNI_ERR, JNI_OK, JNIEnv, JavaVM, jclass, jint, jmethodID, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_bytecode::mutf8;
use lucce_vm::Env;

use crate::classes::java_agents::Coming;
use crate::classes::load::Arrival;
use crate::classes::{java_agents, load, unloading, watch};
use crate::counting::Counting;
use crate::entry::{attached, bracket, c_api, jni, tool_calls};
use crate::events::{self, Door, samples};
use crate::leaks;
use crate::memory::gate;
use crate::options::Level;
use crate::session::Agent;
use crate::session::finish::finish;
use crate::session::guard::{guard, guard_event, told};
use crate::session::live::Doors;
use crate::session::{burst, control, fate, helper_class, holders, live, push, start, trim};
use crate::thread::life::state_of;
use crate::thread::{ThreadState, life};

/// The way of what the VM calls for a kind of events.
struct Instance;

impl Door for Instance {
    fn told(
        kind: u64,
        env: *mut JNIEnv,
        thread: jobject,
        body: impl FnOnce(&Counting, Env, &ThreadState),
    ) {
        told(kind, env, thread, |agent, env, state| {
            body(agent, env, state);
        });
    }

    fn over(env: *mut JNIEnv, thread: jobject, body: impl FnOnce(&Counting, Env, &ThreadState)) {
        guard((), |agent| {
            let env = agent.env(env);
            let own = state_of(agent, env, thread);
            if let Some(state) = own.get().filter(|_| agent.is_live()) {
                body(agent, env, state);
            }
        });
    }
}

const DOORS: Doors = Doors {
    bracket: bracket::install,
    objects: jni::install,
    tool_calls: tool_calls::install,
};

/// The VM loads the agent before anything of Java runs.
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
    let text = unsafe { text(options) };
    let started = std::panic::catch_unwind(|| {
        c_api::loaded(vm);
        let doors = start::Callbacks {
            hooked: callbacks(),
            walking: attached::doors(),
        };
        start::start(vm, &text, &doors)
    });
    match started.unwrap_or_else(|_| Err("the agent failed to start".into())) {
        Ok(()) => JNI_OK,
        Err(message) => {
            eprintln!("lucce: {message}");
            JNI_ERR
        }
    }
}

/// What the agent is given.
///
/// # Safety
/// Null, or terminated.
pub unsafe fn text(options: *const c_char) -> String {
    match options.is_null() {
        true => String::new(),
        // SAFETY: as promised.
        false => unsafe { CStr::from_ptr(options) }
            .to_string_lossy()
            .into_owned(),
    }
}

/// What the VM calls where the agent was there from the start.
fn callbacks() -> ti::jvmtiEventCallbacks {
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
    events::callbacks::<Instance>(&mut callbacks);
    callbacks
}

unsafe extern "system" fn vm_start(_: *mut ti::jvmtiEnv, env: *mut JNIEnv) {
    guard((), |agent| {
        if helper_class::define(agent, agent.env(env)).is_none() {
            agent.say(
                Level::Error,
                "the helper class could not be defined; nothing is recorded",
            );
        }
    });
}

unsafe extern "system" fn vm_init(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, _: jobject) {
    guard((), |agent| initialized(agent, agent.env(env)));
}

/// The VM is initialised: it says so itself, or runs a Java agent that comes before this one on the command line.
pub fn initialized(agent: &'static Agent, env: Env) {
    static KNOWN: AtomicBool = AtomicBool::new(false);
    // Relaxed: the same thread says both.
    if KNOWN.swap(true, Ordering::Relaxed) {
        return;
    }
    // The threads there are, and what the VM itself makes while it binds one native after the other.
    env.reserve(64);
    if live::go_live(agent, env, &DOORS).is_none() {
        agent.say(
            Level::Error,
            "the hooks could not be made live; nothing is recorded",
        );
    }
    if let Some(leaks) = &agent.leaks
        && leaks::start(agent, leaks, holders::vm()).is_err()
    {
        agent.say(Level::Error, "this VM does not sample allocations");
    }
    if let Some(bytes) = agent.options.events.sampled()
        && samples::start(agent, bytes).is_err()
    {
        agent.say(Level::Error, "this VM does not sample allocations");
    }
    if agent
        .options
        .events
        .leak()
        .or(agent.options.events.sampled())
        .is_some()
    {
        agent.coverage.renew_buffer(agent, env);
    }
    // It has them now.
    lucce_tracelog::keep_addresses(0);
    live::describe(agent);
    if agent.is_live() {
        control::start(agent);
        burst::start(agent);
        trim::start(agent);
        push::start(agent);
        fate::start(agent);
    }
}

/// After the first thread beside the main one, `Thread` is initialised and frames can be kept.
unsafe extern "system" fn thread_start(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, thread: jobject) {
    guard((), |agent| {
        let env = agent.env(env);
        if agent.is_live() {
            agent.coverage.begins(agent, env, thread);
            life::begin_started(agent, env, thread);
        } else {
            helper_class::has_threads(env);
        }
    });
}

unsafe extern "system" fn thread_end(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, thread: jobject) {
    guard((), |agent| {
        let env = agent.env(env);
        agent.coverage.ends(env);
        life::detach(agent, env, thread);
    });
}

/// Its carrier goes on.
unsafe extern "system" fn virtual_thread_end(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
) {
    guard((), |agent| life::detach(agent, agent.env(env), thread));
}

/// Only while classes are watched.
unsafe extern "system" fn class_prepare(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    _: jobject,
    class: jclass,
) {
    guard((), |agent| {
        agent.watch.prepared(agent, agent.env(env), class)
    });
}

/// Only in watched methods.
unsafe extern "system" fn breakpoint(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    method: jmethodID,
    location: i64,
) {
    guard((), |agent| {
        watch::reached(agent, agent.env(env), thread, (method, location));
    });
}

/// Only with `events=leak` or `alloc=SIZE`; on the thread that has made the object.
unsafe extern "system" fn sampled_object_alloc(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    class: jclass,
    size: i64,
) {
    let size = u64::try_from(size).unwrap_or(0);
    guard((), |agent| {
        if let (Some(leaks), true) = (&agent.leaks, agent.is_live()) {
            leaks.sampled(agent, agent.env(env), object, class, size);
        }
    });
    guard_event(gate::SAMPLES, |agent| {
        samples::sampled(agent, agent.env(env), thread, class, size);
    });
}

/// Only with `events=leak`; nothing of the VM may be called here.
///
/// # Safety
/// Called by the VM.
pub unsafe extern "system" fn garbage_collection_finish(_: *mut ti::jvmtiEnv) {
    guard((), |agent| {
        if let Some(leaks) = &agent.leaks {
            leaks.collected(agent);
        }
    });
}

/// Only with `events=leak`; in the thread that gets the error, before it does.
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
    let what = unsafe { text(description) };
    guard((), |agent| {
        if let (Some(leaks), true) = (&agent.leaks, agent.is_live()) {
            leaks.exhausted(agent, agent.env(env), &what);
        }
    });
}

unsafe extern "system" fn vm_death(_: *mut ti::jvmtiEnv, env: *mut JNIEnv) {
    guard((), |agent| {
        if let Some(leaks) = &agent.leaks {
            leaks.finish(agent, agent.env(env));
        }
        agent.coverage.ends_all(agent, agent.env(env));
        finish(agent);
    });
}

#[allow(clippy::too_many_arguments, reason = "the VM's prototype")]
unsafe extern "system" fn class_file_load_hook(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    redefined: jclass,
    loader: jobject,
    name: *const c_char,
    _domain: jobject,
    length: c_int,
    bytes: *const c_uchar,
    new_length: *mut c_int,
    new_bytes: *mut *mut c_uchar,
) {
    guard((), |agent| {
        // SAFETY: the VM passes a terminated name or none.
        let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_bytes());
        if name.is_some_and(|name| name.starts_with(b"java/lang/LucceRt")) {
            return;
        }
        // SAFETY: the VM passes `length` bytes.
        let class = unsafe { std::slice::from_raw_parts(bytes, length as usize) };
        if let Some(name) = name {
            java_agents::loading(name);
        }
        let class = match java_agents::coming(class) {
            Coming::Plain(class) => class,
            Coming::Hooked => return,
            Coming::Keeps => {
                return java_agents::keeps(agent, &mutf8::decode(name.unwrap_or_default()));
            }
        };
        let class = &*class;
        let loader = agent.loaders.id(agent.jvmti, agent.env(env), loader);
        if agent.is_live() {
            unloading::look(agent, agent.env(env));
        }
        let arrival = match redefined.is_null() {
            true => Arrival::Load,
            false => Arrival::Change,
        };
        let Some(new) = load::transform(agent, loader, class, arrival) else {
            return;
        };
        java_agents::hooked(class, &new);
        if let Some(name) = name {
            agent
                .originals
                .note(loader, mutf8::decode(name).as_bytes(), class);
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
