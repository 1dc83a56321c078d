//! In a JVM that ran before the agent came: `lucce attach`.
//!
//! ```text
//! Agent_OnAttach ─► options ─► agent ─► SampledObjectAlloc on       nothing is rewritten
//! allocation     ─► sampled ─► the VM's own stack ─► callgraph ─► tracelog
//!                └► leaks   ─► the same
//! contended lock ─► locks   ─► the same
//! detach         ─► events off, the log's end
//! ```
//!
//! No class is changed, so there is nothing to put back, and frames that ran already are as good as new
//! ones: each event asks the VM for the whole stack. That costs more per event than a shadow stack, so
//! by default allocations are sampled by bytes.

#![allow(unsafe_code, reason = "an entry point and a callback of the JVM")]

mod known;
mod locks;
mod options;
mod sampled;

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni::{JNI_ERR, JNI_OK, JNIEnv, JavaVM, jint, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;

use crate::agent::{Agent, Ground, Missing};
use crate::control;
use crate::fate;
use crate::finish::finish;
use crate::jvm::{Env, Failed, Jvmti, Vm};
use crate::leaks;
use crate::natives::guard;
use crate::options::Events;
use crate::start::{self, refused};
use crate::vm_events;

use options::AttachOptions;

pub use known::add as add_class;

/// What HotSpot has unless it is told otherwise.
const DEFAULT_INTERVAL: u32 = 512 << 10;

struct Attached {
    vm: Vm,
    /// Bytes between two samples; 0: every allocation.
    interval: u32,
    detached: AtomicBool,
}

static ATTACHED: OnceLock<Attached> = OnceLock::new();

/// Whether the JVM ran before the agent came.
pub fn is_on() -> bool {
    ATTACHED.get().is_some()
}

/// Bytes between two samples, if allocations are counted by samples.
pub fn interval(agent: &Agent) -> Option<u32> {
    let interval = ATTACHED.get()?.interval;
    (interval > 0 && agent.options.alloc_hooks()).then_some(interval)
}

/// Of an event that happens where the current thread is. `None`: nobody knows, or no frame is shown.
pub fn number(agent: &Agent, env: Env) -> Option<ContextId> {
    sampled::with_local(|local| local.number(agent, env, None))
        .flatten()
        .flatten()
}

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
    let text = unsafe { start::text(options) };
    let started = std::panic::catch_unwind(|| attach(vm, &text));
    match started.unwrap_or_else(|_| Err("the agent failed to start".into())) {
        Ok(()) => JNI_OK,
        Err(message) => {
            options::tell(&text, &message);
            JNI_ERR
        }
    }
}

/// # Errors
/// One line for the user: why the agent does not stay.
fn attach(vm: *mut JavaVM, text: &str) -> Result<(), String> {
    if Agent::get().is_some() {
        return Err(match ATTACHED.get() {
            None => "the JVM was started with the agent: use `lucce ctl`".into(),
            Some(attached) if attached.detached.load(Ordering::Acquire) => {
                "the agent was attached to this JVM before: a JVM takes it once".into()
            }
            Some(_) => "the agent is attached already: use `lucce ctl`".into(),
        });
    }
    let AttachOptions {
        mut options,
        interval,
    } = AttachOptions::parse(text)?;
    fate::survive(vm);
    let jvmti = environment(vm).map_err(refused("JVMTI 11"))?;
    let started = start::supported(jvmti)
        .and_then(|()| {
            start::warn_if_untried(jvmti, &mut options);
            jvmti
                .add_capabilities(&capabilities(jvmti, &options.events))
                .map_err(refused(
                    "what the agent needs; another agent may sample allocations",
                ))
        })
        .and_then(|()| Ground::prepare(&mut options, false).map_err(Missing::text))
        .and_then(|ground| Agent::start(options, jvmti, ground));
    let agent = match started {
        Ok(agent) => agent,
        Err(message) => {
            // So that another try finds everything as it was.
            jvmti.dispose();
            return Err(message);
        }
    };
    let _ = ATTACHED.set(Attached {
        vm: Vm::new(vm),
        interval,
        detached: AtomicBool::new(false),
    });
    agent.meta("lucce", env!("CARGO_PKG_VERSION"));
    leaks::announce(agent);
    agent.meta("options", text);
    agent.meta("attached", "yes");
    start::describe(agent);
    if let Some(interval) = self::interval(agent) {
        agent.meta("sampled.bytes", &interval.to_string());
    }
    jvmti
        .set_callbacks(&callbacks())
        .map_err(refused("the agent's callbacks"))?;
    agent.live.store(true, Ordering::Release);
    jvmti
        .sample_every(interval)
        .map_err(refused("samples of allocations"))?;
    for event in events(&agent.options.events) {
        jvmti.enable(event).map_err(refused("the agent's events"))?;
    }
    if let Some(env) = Vm::new(vm).env() {
        agent.coverage.start(agent, agent.env(env));
    }
    if let Some(leaks) = &agent.leaks {
        leaks::start(agent, jvmti, leaks.interval()).map_err(refused("events=leak"))?;
    }
    control::start(agent);
    fate::start(agent);
    Ok(())
}

/// A VM that listens may still be starting: until it has started it gives nobody what is asked for.
fn environment(vm: *mut JavaVM) -> Result<Jvmti, Failed> {
    const PATIENCE: Duration = Duration::from_secs(3);
    let end = Instant::now() + PATIENCE;
    loop {
        match Jvmti::of(vm) {
            Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            found => return found,
        }
    }
}

/// Beside those of leaks.
fn events(wanted: &Events) -> Vec<ti::jvmtiEvent> {
    let mut events = vec![ti::JVMTI_EVENT_VM_DEATH];
    if wanted.alloc {
        events.push(ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC);
        events.push(ti::JVMTI_EVENT_THREAD_START);
        events.push(ti::JVMTI_EVENT_THREAD_END);
    }
    if wanted.lock {
        events.extend(vm_events::LOCKS);
    }
    events
}

fn callbacks() -> ti::jvmtiEventCallbacks {
    let mut callbacks = ti::jvmtiEventCallbacks::default();
    callbacks.SampledObjectAlloc = Some(sampled::callback);
    callbacks.GarbageCollectionFinish = Some(start::garbage_collection_finish);
    locks::add_callbacks(&mut callbacks);
    callbacks.ThreadStart = Some(thread_start);
    callbacks.ThreadEnd = Some(thread_end);
    callbacks.VMDeath = Some(vm_death);
    callbacks
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

unsafe extern "system" fn thread_end(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, _: jobject) {
    guard((), |agent| agent.coverage.ends(agent, agent.env(env)));
}

fn capabilities(jvmti: Jvmti, events: &Events) -> ti::jvmtiCapabilities {
    let mut wanted = ti::jvmtiCapabilities::default();
    wanted.set_can_generate_sampled_object_alloc_events(true);
    wanted.set_can_generate_monitor_events(events.lock);
    wanted.set_can_get_bytecodes(events.lock);
    wanted.set_can_generate_garbage_collection_events(events.leak.is_some());
    wanted.set_can_tag_objects(true);
    wanted.set_can_get_line_numbers(true);
    wanted.set_can_get_source_file_name(true);
    let can = jvmti.potential().unwrap_or_default();
    wanted.set_can_support_virtual_threads(can.can_support_virtual_threads());
    wanted
}

/// From now on the JVM is as it was. The log is ended.
///
/// # Errors
/// One line for the user.
pub fn detach(agent: &Agent) -> Result<String, String> {
    let Some(attached) = ATTACHED.get() else {
        return Err(
            "the agent was there from the start (-agentpath) and stays; `stop` ends counting"
                .into(),
        );
    };
    let failed = |Failed(code)| format!("the VM does not let the agent go (error {code})");
    // The tool interface answers only threads that the VM knows.
    attached
        .vm
        .in_thread(|env| {
            agent.coverage.ends_all(agent, agent.env(env));
            let events = events(&agent.options.events);
            let told = events
                .into_iter()
                .filter(|event| *event != ti::JVMTI_EVENT_VM_DEATH);
            let of_leaks = agent.leaks.is_some().then_some(leaks::EVENTS);
            for event in told.chain(of_leaks.into_iter().flatten()) {
                agent.jvmti.disable(event)?;
            }
            if let Some(leaks) = &agent.leaks {
                leaks.leave(agent, agent.env(env));
            }
            agent.jvmti.sample_every(DEFAULT_INTERVAL)?;
            let mut given = capabilities(agent.jvmti, &agent.options.events);
            // An event that is under way still asks for these, and they cost nothing.
            given.set_can_get_bytecodes(false);
            given.set_can_get_line_numbers(false);
            given.set_can_get_source_file_name(false);
            agent.jvmti.give_back(&given)
        })
        .map_err(failed)?
        .map_err(failed)?;
    attached.detached.store(true, Ordering::Release);
    let last = control::status(agent);
    finish(agent);
    Ok(last)
}
