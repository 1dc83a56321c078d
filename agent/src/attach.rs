//! In a JVM that ran before the agent came: `lucce attach`.
//!
//! ```text
//! Agent_OnAttach ─► options ─► agent ─► SampledObjectAlloc on       nothing is rewritten
//! allocation     ─► sampled ─► the VM's own stack ─► callgraph ─► tracelog
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

use jvmti_bindings::sys::jni::{JNI_ERR, JNI_OK, JNIEnv, JavaVM, jint};
use jvmti_bindings::sys::jvmti as ti;

use crate::agent::Agent;
use crate::control;
use crate::finish::finish;
use crate::jvm::{Failed, Jvmti, Vm};
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

/// Bytes between two samples, if events are samples.
pub fn interval() -> Option<u32> {
    let attached = ATTACHED.get()?;
    (attached.interval > 0).then_some(attached.interval)
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
    let AttachOptions { options, interval } = AttachOptions::parse(text)?;
    let jvmti = Jvmti::of(vm).map_err(refused("JVMTI 11"))?;
    let started = jvmti
        .add_capabilities(&capabilities(jvmti, &options.events))
        .map_err(refused(
            "what the agent needs; another agent may sample allocations",
        ))
        .and_then(|()| Agent::start(options, jvmti));
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
    agent.meta("options", text);
    agent.meta("attached", "yes");
    start::describe(agent);
    if interval > 0 {
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
    control::start(agent);
    Ok(())
}

fn events(wanted: &Events) -> Vec<ti::jvmtiEvent> {
    let mut events = vec![ti::JVMTI_EVENT_VM_DEATH];
    if wanted.alloc {
        events.push(ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC);
    }
    if wanted.lock {
        events.extend(vm_events::LOCKS);
    }
    events
}

fn callbacks() -> ti::jvmtiEventCallbacks {
    let mut callbacks = ti::jvmtiEventCallbacks::default();
    callbacks.SampledObjectAlloc = Some(sampled::callback);
    locks::add_callbacks(&mut callbacks);
    callbacks.VMDeath = Some(vm_death);
    callbacks
}

unsafe extern "system" fn vm_death(_: *mut ti::jvmtiEnv, _: *mut JNIEnv) {
    guard((), |agent| {
        if agent.is_live() {
            finish(agent);
        }
    });
}

fn capabilities(jvmti: Jvmti, events: &Events) -> ti::jvmtiCapabilities {
    let mut wanted = ti::jvmtiCapabilities::default();
    wanted.set_can_generate_sampled_object_alloc_events(true);
    wanted.set_can_generate_monitor_events(events.lock);
    wanted.set_can_get_bytecodes(events.lock);
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
        .in_thread(|| {
            let events = events(&agent.options.events);
            let told = events
                .into_iter()
                .filter(|event| *event != ti::JVMTI_EVENT_VM_DEATH);
            for event in told {
                agent.jvmti.disable(event)?;
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
