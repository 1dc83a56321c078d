//! The agent works without hooks: it comes to a JVM that runs, or was there from the start; and it leaves.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni::{JNIEnv, JavaVM};
use jvmti_bindings::sys::jvmti as ti;
use lucce_hooks::kinds::ALLOC;
use lucce_vm::{Failed, Jvmti, Vm};

use crate::core::Attached;
use crate::events::wanted as sources;
use crate::leaks;
use crate::memory::locks::WatchedMutex;
use crate::options::{Events, Options};
use crate::session::Agent;
use crate::session::agent::Ground;
use crate::session::agent::Missing;
use crate::session::finish::finish;
use crate::session::start::refused;
use crate::session::{control, fate, holders, live, push, start};
use crate::walked::options::{AttachOptions, DEFAULT_INTERVAL};
use crate::walked::{kept, often};

/// An agent that can leave.
#[derive(Clone, Copy)]
struct Guest {
    vm: Vm,
    came_later: bool,
    /// It is about to go.
    detached: bool,
}

static GUEST: WatchedMutex<Option<Guest>> = WatchedMutex::new(None);

fn guest() -> MutexGuard<'static, Option<Guest>> {
    GUEST.lock()
}

/// Waits for one that is leaving.
///
/// # Errors
/// One line for the user: there is an agent, and it does not go.
fn free_for_another() -> Result<(), String> {
    const PATIENCE: Duration = Duration::from_secs(20);
    let until = Instant::now() + PATIENCE;
    loop {
        let guest = *guest();
        match guest {
            None if !Agent::is_there() => return Ok(()),
            Some(guest) if guest.detached && Instant::now() < until => {}
            Some(guest) if guest.detached => {
                return Err("the agent that was here before does not go: try again later".into());
            }
            Some(guest) if guest.came_later => {
                return Err("the agent is attached already: use `lucce ctl`".into());
            }
            _ => return Err("the JVM was started with the agent: use `lucce ctl`".into()),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// # Errors
/// One line for the user: why the agent does not stay.
pub fn attach(
    vm: *mut JavaVM,
    text: &str,
    callbacks: &ti::jvmtiEventCallbacks,
) -> Result<(), String> {
    free_for_another()?;
    let AttachOptions {
        mut options,
        interval,
    } = AttachOptions::parse(text)?;
    fate::survive(vm);
    holders::loaded(vm);
    let jvmti = environment(vm).map_err(refused("JVMTI 11"))?;
    let started = start::supported(jvmti)
        .and_then(|()| {
            start::beware_of_untried(jvmti, &mut options);
            take_capabilities(jvmti, &options.events)
        })
        .and_then(|()| {
            let later = true;
            Ground::prepare(&mut options, Some(Attached { later, interval })).map_err(Missing::text)
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
    came(vm, true);
    announce(agent, text, callbacks)?;
    agent.meta("attached", "yes");
    go_live(agent, Vm::new(vm).env())
}

/// How an agent counts that is there from the start and needs no hooks. `None`: it needs them.
pub fn without_hooks(options: &Options) -> Option<Attached> {
    let wanted = &options.events;
    let interval = wanted
        .sampled()
        .or(wanted.leak())
        .unwrap_or(DEFAULT_INTERVAL);
    options.walks().then_some(Attached {
        later: false,
        interval,
    })
}

/// The VM loads the agent before anything of Java runs, and classes need no hooks.
///
/// # Errors
/// One line for the user: the VM must not start.
pub fn from_start(
    vm: *mut JavaVM,
    jvmti: Jvmti,
    (options, ground): (Options, Ground),
    (text, callbacks): (&str, &ti::jvmtiEventCallbacks),
) -> Result<(), String> {
    fate::survive(vm);
    holders::loaded(vm);
    take_capabilities(jvmti, &options.events)?;
    if samples_objects(&options.events) {
        let interval = without_hooks(&options).map(|attached| attached.interval);
        start::draw_samples_early(jvmti, interval);
    }
    let agent = Agent::start(options, jvmti, ground)?;
    came(vm, false);
    announce(agent, text, callbacks)?;
    agent.meta("tracking", "none");
    for event in [ti::JVMTI_EVENT_VM_INIT, ti::JVMTI_EVENT_VM_DEATH] {
        jvmti.enable(event).map_err(refused("the agent's events"))?;
    }
    Ok(())
}

fn announce(agent: &Agent, text: &str, callbacks: &ti::jvmtiEventCallbacks) -> Result<(), String> {
    agent.meta("lucce", env!("CARGO_PKG_VERSION"));
    if let Some(leaks) = &agent.leaks {
        leaks::announce(agent, leaks);
    }
    agent.meta("options", text);
    agent
        .jvmti
        .set_callbacks(callbacks)
        .map_err(refused("the agent's callbacks"))
}

fn came(vm: *mut JavaVM, came_later: bool) {
    often::begins();
    *guest() = Some(Guest {
        vm: Vm::new(vm),
        came_later,
        detached: false,
    });
}

/// The VM runs programs now.
///
/// # Errors
/// One line for the user.
pub fn go_live(agent: &'static Agent, env: Option<*mut JNIEnv>) -> Result<(), String> {
    let (jvmti, wanted) = (agent.jvmti, &agent.options.events);
    live::describe(agent);
    if let Some(interval) = agent.sampled_bytes() {
        agent.meta("sampled.bytes", &interval.to_string());
    }
    if let Some(env) = env {
        live::watch_classes(agent, agent.env(env));
    }
    agent.live.store(true, Ordering::Release);
    if let Some(attached) = agent.attached.filter(|_| samples_objects(wanted)) {
        jvmti
            .sample_every(attached.interval)
            .map_err(refused("samples of allocations"))?;
    }
    let enable = |event| jvmti.enable(event).map_err(refused("the agent's events"));
    let (allocations, others): (Vec<_>, Vec<_>) = events(wanted)
        .into_iter()
        .partition(|event| *event == ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC);
    others.into_iter().try_for_each(enable)?;
    if let Some(env) = env {
        let env = agent.env(env);
        // Threads are followed before they are told of what they allocate.
        agent.coverage.start(agent, env);
        if !agent.came_later() {
            live::tell_programs(agent, env);
        }
    }
    allocations.into_iter().try_for_each(enable)?;
    if let Some(leaks) = &agent.leaks {
        leaks::start(agent, leaks, holders::vm()).map_err(refused("events=leak"))?;
    }
    if let Some(env) = env.filter(|_| samples_objects(wanted) && !agent.came_later()) {
        agent.coverage.renew_buffer(agent, agent.env(env));
    }
    control::start(agent);
    push::start(agent);
    fate::start(agent);
    Ok(())
}

fn samples_objects(wanted: &Events) -> bool {
    wanted.has(&ALLOC) || wanted.sampled().or(wanted.leak()).is_some()
}

/// A VM that listens may still be starting: until it has started it gives no environment.
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
    if wanted.has(&ALLOC) || wanted.sampled().is_some() {
        events.push(ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC);
        events.push(ti::JVMTI_EVENT_THREAD_START);
        events.push(ti::JVMTI_EVENT_THREAD_END);
    }
    for source in sources(wanted) {
        events.extend(source.events());
    }
    events
}

/// # Errors
/// One line for the user: what the VM does not do.
fn take_capabilities(jvmti: Jvmti, events: &Events) -> Result<(), String> {
    let mut wanted = capabilities(jvmti, events);
    wanted.set_can_generate_sampled_object_alloc_events(false);
    jvmti
        .add_capabilities(&wanted)
        .map_err(refused("what the agent needs"))?;
    if !samples_objects(events) {
        return Ok(());
    }
    let mut sampling = ti::jvmtiCapabilities::default();
    sampling.set_can_generate_sampled_object_alloc_events(true);
    jvmti
        .add_capabilities(&sampling)
        .map_err(start::samples_for_another)
}

fn capabilities(jvmti: Jvmti, events: &Events) -> ti::jvmtiCapabilities {
    let mut wanted = ti::jvmtiCapabilities::default();
    wanted.set_can_generate_sampled_object_alloc_events(samples_objects(events));
    for source in sources(events) {
        source.capabilities(&mut wanted);
    }
    wanted.set_can_generate_garbage_collection_events(events.leak().is_some());
    wanted.set_can_generate_resource_exhaustion_heap_events(events.leak().is_some());
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
    let attached = *guest();
    let Some(attached) = attached.filter(|attached| !attached.detached) else {
        return Err(
            "classes have had the agent's hooks from the start (-agentpath), and it stays; `stop` ends counting"
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
            if samples_objects(&agent.options.events) {
                agent.jvmti.sample_every(DEFAULT_INTERVAL)?;
            }
            let mut given = capabilities(agent.jvmti, &agent.options.events);
            // An event that is under way still asks for these, and they cost nothing.
            given.set_can_get_bytecodes(false);
            given.set_can_get_line_numbers(false);
            given.set_can_get_source_file_name(false);
            agent.jvmti.give_back(&given)
        })
        .map_err(failed)?
        .map_err(failed)?;
    if let Some(guest) = guest().as_mut() {
        guest.detached = true;
    }
    let last = control::status(agent);
    finish(agent);
    Ok(last)
}

/// The thread that listened ends. If the agent was detached all that it has is given back: another one may come.
pub fn leave() {
    let Some(Guest { vm, .. }) = guest().filter(|guest| guest.detached) else {
        return;
    };
    if let Some(agent) = Agent::get() {
        agent.helpers.join();
    }
    let left = Agent::leave(|agent| {
        // Where the VM does not know this thread, its references and its tool interface stay.
        let _ = vm.in_thread(|env| {
            let env = agent.env(env);
            kept::let_go(agent.jvmti, env);
            agent.loaders.let_go(env);
            agent.frames.versions.release_all(env);
            agent.throwables.release(env);
            agent.jvmti.dispose();
        });
    });
    if left {
        *guest() = None;
    }
}
