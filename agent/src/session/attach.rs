//! The agent comes to a JVM that runs, and leaves it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni::JavaVM;
use jvmti_bindings::sys::jvmti as ti;
use lucce_vm::{Failed, Jvmti, Vm};

use crate::attach::options::{AttachOptions, DEFAULT_INTERVAL};
use crate::core::Attached;
use crate::events::lock::LOCKS;
use crate::leaks;
use crate::options::Events;
use crate::session::Agent;
use crate::session::agent::Ground;
use crate::session::agent::Missing;
use crate::session::finish::finish;
use crate::session::start::refused;
use crate::session::{control, fate, live, start};

/// An agent that was attached.
struct Guest {
    vm: Vm,
    detached: AtomicBool,
}

static GUEST: OnceLock<Guest> = OnceLock::new();

/// # Errors
/// One line for the user: why the agent does not stay.
pub fn attach(
    vm: *mut JavaVM,
    text: &str,
    callbacks: &ti::jvmtiEventCallbacks,
) -> Result<(), String> {
    if Agent::get().is_some() {
        return Err(match GUEST.get() {
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
        .and_then(|()| {
            Ground::prepare(&mut options, Some(Attached { interval })).map_err(Missing::text)
        })
        .and_then(|ground| Agent::start(options, jvmti, ground));
    let agent = match started {
        Ok(agent) => agent,
        Err(message) => {
            // So that another try finds everything as it was.
            jvmti.dispose();
            return Err(message);
        }
    };
    let _ = GUEST.set(Guest {
        vm: Vm::new(vm),
        detached: AtomicBool::new(false),
    });
    agent.meta("lucce", env!("CARGO_PKG_VERSION"));
    if let Some(leaks) = &agent.leaks {
        leaks::announce(agent, leaks);
    }
    agent.meta("options", text);
    agent.meta("attached", "yes");
    live::describe(agent);
    if let Some(interval) = agent.sampled_bytes() {
        agent.meta("sampled.bytes", &interval.to_string());
    }
    jvmti
        .set_callbacks(callbacks)
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
        events.extend(LOCKS);
    }
    events
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
    let Some(attached) = GUEST.get() else {
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
