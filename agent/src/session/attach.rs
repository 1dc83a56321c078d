//! Hookless mode: attaching to a running JVM or starting with it, and detaching.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni::{JNIEnv, JavaVM};
use jvmti_bindings::sys::jvmti as ti;
use lucce_instrument::kinds::{ALLOC, CLASS, OPEN};
use lucce_jvmti::{JvmError, Jvmti, VmHandle};

use crate::core::HooklessMode;
use crate::events::{enable_early_sources, wanted_sources};
use crate::hookless::{thread_storage, walk_cost};
use crate::leaks;
use crate::memory::locks::WatchedMutex;
use crate::options::{
    AgentOptions, DEFAULT_SAMPLING_INTERVAL, EventSelection, LogLevel, find_setting,
};
use crate::session::Agent;
use crate::session::agent::AgentResources;
use crate::session::agent::StartError;
use crate::session::finish::finish_recording;
use crate::session::vm_support::{self, unsupported_message};
use crate::session::{delay, file_watch, holders_request, live, method_hooks, push, status};

/// An agent that can be detached.
#[derive(Clone, Copy)]
struct DetachableAgent {
    vm: VmHandle,
    is_attached: bool,
    /// It is about to leave.
    is_detached: bool,
}

static DETACHABLE: WatchedMutex<Option<DetachableAgent>> = WatchedMutex::new(None);

fn lock_detachable() -> MutexGuard<'static, Option<DetachableAgent>> {
    DETACHABLE.lock()
}

/// Waits for an agent that is leaving.
///
/// # Errors
/// One line for the user: there is an agent that does not leave.
fn wait_until_detached() -> Result<(), String> {
    const PATIENCE: Duration = Duration::from_secs(20);
    let until = Instant::now() + PATIENCE;
    loop {
        let detachable = *lock_detachable();
        match detachable {
            None if !Agent::is_installed() => return Ok(()),
            Some(detachable) if detachable.is_detached && Instant::now() < until => {}
            Some(detachable) if detachable.is_detached => {
                return Err("the agent that was here before does not go: try again later".into());
            }
            Some(detachable) if detachable.is_attached => {
                return Err("the agent is attached already: use `lucce ctl`".into());
            }
            _ => return Err("the JVM was started with the agent: use `lucce ctl`".into()),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Starts the agent in a running JVM.
///
/// # Errors
/// One line for the user: why the agent does not stay.
pub fn attach_agent(
    vm: *mut JavaVM,
    text: &str,
    callbacks: &ti::jvmtiEventCallbacks,
) -> Result<&'static Agent, String> {
    wait_until_detached()?;
    let mut options = AgentOptions::parse_attached(text).map_err(|e| e.to_string())?;
    let interval = options.attached_interval();
    file_watch::survive_truncation(vm);
    holders_request::remember_vm(vm);
    let jvmti = wait_for_jvmti(vm).map_err(unsupported_message("JVMTI 11"))?;
    let started = vm_support::check_jdk_supported(jvmti)
        .and_then(|()| {
            vm_support::adapt_to_untried_jdk(jvmti, &mut options);
            add_capabilities(jvmti, &options.events)
        })
        .and_then(|()| {
            let later = true;
            AgentResources::acquire(
                &mut options,
                Some(HooklessMode {
                    is_attached: later,
                    sampling_interval: interval,
                }),
            )
            .map_err(StartError::into_message)
        })
        .and_then(|resources| Agent::install(options, jvmti, resources));
    let agent = match started {
        Ok(agent) => agent,
        Err(message) => {
            // So that another attempt finds the same state.
            jvmti.dispose_environment();
            return Err(message);
        }
    };
    set_detachable(vm, true);
    log_options_and_set_callbacks(agent, text, callbacks)?;
    agent.core.append_meta("attached", "yes");
    start_events(agent, VmHandle::new(vm).thread_env())?;
    Ok(agent)
}

/// Writes why the agent does not stay to the existing file that the option `tell` names.
pub fn write_refusal(text: &str, message: &str) {
    let Some(file) = find_setting(text, "tell") else {
        return;
    };
    let opened = fs::OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(file);
    // The JVM's standard error shows the message as well.
    let _ = opened.and_then(|mut file| file.write_all(message.as_bytes()));
}

/// The hookless mode of an agent that starts with the JVM. `None`: it needs hooks.
pub fn hookless_attachment(options: &AgentOptions) -> Option<HooklessMode> {
    let wanted = &options.events;
    let interval = wanted
        .alloc_interval()
        .or(wanted.leak_interval())
        .unwrap_or(DEFAULT_SAMPLING_INTERVAL);
    options.is_hookless().then_some(HooklessMode {
        is_attached: false,
        sampling_interval: interval,
    })
}

/// Starts the agent without hooks, before any Java code runs.
///
/// # Errors
/// One line for the user: the VM must not start.
pub fn start_hookless(
    vm: *mut JavaVM,
    jvmti: Jvmti,
    (options, resources): (AgentOptions, AgentResources),
    (text, callbacks): (&str, &ti::jvmtiEventCallbacks),
) -> Result<(), String> {
    file_watch::survive_truncation(vm);
    holders_request::remember_vm(vm);
    add_capabilities(jvmti, &options.events)?;
    if samples_objects(&options.events) {
        let interval = hookless_attachment(&options).map(|attached| attached.sampling_interval);
        vm_support::set_sampling_interval_early(jvmti, interval);
    }
    let agent = Agent::install(options, jvmti, resources)?;
    set_detachable(vm, false);
    log_options_and_set_callbacks(agent, text, callbacks)?;
    agent.core.append_meta("tracking", "none");
    enable_early_sources(agent.counting_parts())?;
    for event in [ti::JVMTI_EVENT_VM_INIT, ti::JVMTI_EVENT_VM_DEATH] {
        jvmti
            .enable_event(event)
            .map_err(unsupported_message("the agent's events"))?;
    }
    Ok(())
}

fn log_options_and_set_callbacks(
    agent: &Agent,
    text: &str,
    callbacks: &ti::jvmtiEventCallbacks,
) -> Result<(), String> {
    agent.core.append_meta("lucce", env!("CARGO_PKG_VERSION"));
    if let Some(leaks) = &agent.leaks {
        leaks::write_interval(agent.counting_parts(), leaks);
    }
    agent.core.append_meta("options", text);
    if let Some(vm) = holders_request::loading_vm() {
        live::start_open_resources(agent, vm, callbacks);
    }
    agent
        .core
        .jvmti
        .set_callbacks(callbacks)
        .map_err(unsupported_message("the agent's callbacks"))
}

fn set_detachable(vm: *mut JavaVM, came_later: bool) {
    walk_cost::reset_costs();
    *lock_detachable() = Some(DetachableAgent {
        vm: VmHandle::new(vm),
        is_attached: came_later,
        is_detached: false,
    });
}

/// Enables events once the VM runs programs.
///
/// # Errors
/// One line for the user.
pub fn start_events(agent: &'static Agent, env: Option<*mut JNIEnv>) -> Result<(), String> {
    let (jvmti, wanted) = (agent.core.jvmti, &agent.core.options.events);
    live::write_vm_properties(agent);
    if let Some(interval) = agent.core.sampling_interval() {
        agent
            .core
            .append_meta("sampled.bytes", &interval.to_string());
    }
    if let Some(budget) = &agent.core.budget {
        let choice = budget.describe_choice();
        agent.core.append_meta("budget", &choice);
        agent.core.report_message(LogLevel::Info, &choice);
    }
    if let Some(env) = env {
        live::prepare_class_watch(agent, agent.core.jni_env(env));
    }
    agent.core.live.store(true, Ordering::Release);
    if let Some(attached) = agent.core.hookless.filter(|_| samples_objects(wanted)) {
        jvmti
            .set_sampling_interval(attached.sampling_interval)
            .map_err(unsupported_message("samples of allocations"))?;
    }
    let enable = |event| {
        jvmti
            .enable_event(event)
            .map_err(unsupported_message("the agent's events"))
    };
    let (allocations, others): (Vec<_>, Vec<_>) = jvmti_events(wanted)
        .into_iter()
        .partition(|event| *event == ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC);
    others.into_iter().try_for_each(enable)?;
    if let Some(env) = env {
        let env = agent.core.jni_env(env);
        // Threads are registered before the VM reports their allocations.
        agent
            .counters
            .coverage
            .start_following(agent.thread_parts(), env);
        if !agent.core.is_attached() {
            live::set_program_properties(agent, env);
        }
    }
    allocations.into_iter().try_for_each(enable)?;
    if let Some(leaks) = &agent.leaks {
        leaks::start_sampling(agent.counting_parts(), leaks, holders_request::loading_vm())
            .map_err(unsupported_message("events=leak"))?;
    }
    if let Some(env) = env.filter(|_| samples_objects(wanted) && !agent.core.is_attached()) {
        agent
            .counters
            .coverage
            .renew_buffer(agent.thread_parts(), agent.core.jni_env(env));
    }
    hook_named_methods(agent);
    delay::wait_for_delay(agent);
    push::start_push(agent);
    file_watch::start_watching(agent);
    Ok(())
}

/// Hooks the methods of `events=call:METHODS` and `events=time:METHODS`, and those of resources, in a thread of the agent: the VM binds the hooks'
/// functions only once it has loaded the agent.
fn hook_named_methods(agent: &'static Agent) {
    let methods = agent.core.options.events.methods();
    let has_resources = agent.core.options.events.has_kind(&OPEN);
    let has_hooks = has_resources || !methods.is_empty();
    let Some(vm) = holders_request::loading_vm().filter(|_| has_hooks) else {
        return;
    };
    let hook = move || {
        let hooked = vm
            .run_attached(|env| method_hooks::set_methods(agent, agent.core.jni_env(env), methods));
        let refused = unsupported_message("an agent's thread");
        if let Err(message) = hooked.map_err(refused).and_then(|hooked| hooked) {
            agent.core.report_message(LogLevel::Error, &message);
        }
    };
    if let Err(error) = agent.core.agent_threads.spawn_thread("lucce-hooks", hook) {
        let text = format!("no methods are hooked: {error}");
        agent.core.report_message(LogLevel::Error, &text);
    }
}

fn samples_objects(wanted: &EventSelection) -> bool {
    wanted.has_kind(&ALLOC) || wanted.alloc_interval().or(wanted.leak_interval()).is_some()
}

/// The VM's JVMTI environment. A VM that accepts attachment may still be starting, and provides no environment until then.
fn wait_for_jvmti(vm: *mut JavaVM) -> Result<Jvmti, JvmError> {
    const PATIENCE: Duration = Duration::from_secs(3);
    let end = Instant::now() + PATIENCE;
    loop {
        match Jvmti::from_vm(vm) {
            Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            found => return found,
        }
    }
}

/// The VM's events, without the events of leak detection.
fn jvmti_events(wanted: &EventSelection) -> Vec<ti::jvmtiEvent> {
    let mut events = vec![ti::JVMTI_EVENT_VM_DEATH];
    if wanted.has_kind(&ALLOC) || wanted.alloc_interval().is_some() {
        events.push(ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC);
        events.push(ti::JVMTI_EVENT_THREAD_START);
        events.push(ti::JVMTI_EVENT_THREAD_END);
    }
    if wanted.has_kind(&CLASS) {
        // For the bytes of class files.
        events.push(ti::JVMTI_EVENT_CLASS_FILE_LOAD_HOOK);
    }
    for source in wanted_sources(wanted) {
        events.extend(source.vm_events());
    }
    events
}

/// Requests the capabilities.
///
/// # Errors
/// One line for the user: the missing support of the VM.
fn add_capabilities(jvmti: Jvmti, events: &EventSelection) -> Result<(), String> {
    let mut wanted = required_capabilities(jvmti, events);
    wanted.set_can_generate_sampled_object_alloc_events(false);
    jvmti
        .add_capabilities(&wanted)
        .map_err(unsupported_message("what the agent needs"))?;
    if !samples_objects(events) {
        return Ok(());
    }
    let mut sampling = ti::jvmtiCapabilities::default();
    sampling.set_can_generate_sampled_object_alloc_events(true);
    jvmti
        .add_capabilities(&sampling)
        .map_err(vm_support::sampling_taken_message)
}

fn required_capabilities(jvmti: Jvmti, events: &EventSelection) -> ti::jvmtiCapabilities {
    let mut wanted = ti::jvmtiCapabilities::default();
    wanted.set_can_generate_sampled_object_alloc_events(samples_objects(events));
    for source in wanted_sources(events) {
        source.add_capabilities(&mut wanted);
    }
    wanted.set_can_generate_garbage_collection_events(events.leak_interval().is_some());
    wanted.set_can_generate_resource_exhaustion_heap_events(events.leak_interval().is_some());
    wanted.set_can_tag_objects(true);
    wanted.set_can_get_line_numbers(true);
    wanted.set_can_get_source_file_name(true);
    let can = jvmti.potential_capabilities().unwrap_or_default();
    wanted.set_can_support_virtual_threads(can.can_support_virtual_threads());
    wanted
}

/// Detaches the agent and closes the log. The JVM is then in its former state.
///
/// # Errors
/// One line for the user.
pub fn detach_agent(agent: &Agent) -> Result<String, String> {
    let attached = *lock_detachable();
    let Some(attached) = attached.filter(|attached| !attached.is_detached) else {
        return Err(
            "classes have had the agent's hooks from the start (-agentpath), and it stays; `stop` ends counting"
                .into(),
        );
    };
    let failed = |JvmError(code)| format!("the VM does not let the agent go (error {code})");
    // JVMTI only answers threads that the VM knows.
    attached
        .vm
        .run_attached(|env| {
            agent
                .counters
                .coverage
                .end_all_threads(agent.thread_parts(), agent.core.jni_env(env));
            method_hooks::remove_hooks(agent, agent.core.jni_env(env));
            agent.counting.open_resources.stop_recording();
            let events = jvmti_events(&agent.core.options.events);
            let selected = events
                .into_iter()
                .filter(|event| *event != ti::JVMTI_EVENT_VM_DEATH);
            let of_leaks = agent.leaks.is_some().then_some(leaks::EVENTS);
            for event in selected.chain(of_leaks.into_iter().flatten()) {
                agent.core.jvmti.disable_event(event)?;
            }
            if let Some(leaks) = &agent.leaks {
                leaks.finish_and_release(agent.counting_parts(), agent.core.jni_env(env));
            }
            if samples_objects(&agent.core.options.events) {
                agent
                    .core
                    .jvmti
                    .set_sampling_interval(DEFAULT_SAMPLING_INTERVAL)?;
            }
            let mut given = required_capabilities(agent.core.jvmti, &agent.core.options.events);
            // An event in progress still needs these, and they cost nothing.
            given.set_can_get_bytecodes(false);
            given.set_can_get_line_numbers(false);
            given.set_can_get_source_file_name(false);
            agent.core.jvmti.relinquish_capabilities(&given)
        })
        .map_err(failed)?
        .map_err(failed)?;
    if let Some(detachable) = lock_detachable().as_mut() {
        detachable.is_detached = true;
    }
    let last = status::current_status(agent);
    finish_recording(agent);
    Ok(last)
}

/// Called when the listening thread ends. If the agent was detached, frees everything: another agent may come.
pub fn release_detached() {
    let Some(DetachableAgent { vm, .. }) =
        lock_detachable().filter(|detachable| detachable.is_detached)
    else {
        return;
    };
    if let Some(agent) = Agent::get() {
        agent.core.agent_threads.join_all();
    }
    let left = Agent::uninstall(|agent| {
        // If the VM refuses this thread, its references and JVMTI environment remain.
        let _ = vm.run_attached(|env| {
            let env = agent.core.jni_env(env);
            thread_storage::release_all(agent.core.jvmti, env);
            agent.core.loaders.release_all(env);
            agent.counting.class_unloads.release_tags();
            agent.stack.frames.versions.release_all(env);
            agent.stack.throwables.release_classes(env);
            if let Some(tags) = agent.counting.open_resources.tags() {
                tags.dispose_environment();
            }
            agent.core.jvmti.dispose_environment();
        });
    });
    if left {
        *lock_detachable() = None;
    }
}
