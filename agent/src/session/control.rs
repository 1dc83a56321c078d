//! `lucce ctl`: executes commands from the control socket, in a thread of the agent that runs no Java code and that the VM does not
//! know.
//!
//! The worst effect of any message is an error for its sender.

use std::sync::Arc;

use lucce_control::{
    ClientConnection, ClientThreads, ControlCommand, ControlListener, SocketLocation,
    remove_dead_sockets,
};
use lucce_instrument::kinds::{ALLOC, NAMED_CALL, NAMED_TIME, SAMPLES};
use lucce_jvmti::JvmError;
use lucce_options::MethodSelection;

use crate::memory::locks::WatchedMutex;
use crate::options::{ControlMode, EventSelection, LogLevel, kind_names};
use crate::session::Agent;
use crate::session::attach;
use crate::session::control_socket;
use crate::session::delay;
use crate::session::dump;
use crate::session::guard::guard_callback;
use crate::session::holders_request;
use crate::session::leaks_request;
use crate::session::marks::{self, MarkEffect};
use crate::session::method_hooks;
use crate::session::status;
use crate::thread::coverage;
use lucce_jvmti::signals;

/// Starts listening, unless the options disable it. A JVM that cannot be controlled continues to run.
pub fn start_listener(agent: &'static Agent) {
    control_socket::begin_uptime();
    if agent.core.options.ctl == ControlMode::Off {
        return;
    }
    let listening =
        ControlListener::bind(&SocketLocation::for_current_process()).and_then(|listener| {
            let listener = Arc::new(listener);
            control_socket::keep_listener(Arc::clone(&listener));
            let thread = std::thread::Builder::new().name("lucce-ctl".into());
            signals::with_signals_blocked(|| {
                thread.spawn(move || {
                    serve_clients(agent, &listener);
                    drop(listener);
                    attach::release_detached();
                })
            })
        });
    if let Err(error) = listening {
        let path = SocketLocation::for_current_process().socket_path();
        let text = format!("`lucce ctl` will not work: {}: {error}", path.display());
        agent.core.report_message(LogLevel::Info, &text);
        control_socket::stop_listener();
    }
}

/// Commands are executed one at a time.
static ANSWERING: WatchedMutex<()> = WatchedMutex::new(());

fn serve_clients(agent: &'static Agent, listener: &ControlListener) {
    let clients = ClientThreads::default();
    remove_dead_sockets(&SocketLocation::for_current_process());
    while agent.core.is_live() {
        // A client with a malformed message already has its answer.
        let client = listener.accept();
        if let Ok(client) = client
            && agent.core.is_live()
        {
            // If no thread is available, the client finds the connection closed.
            let _ = clients.spawn_client(client, |client| {
                guard_callback((), |agent| serve_command(agent, client))
            });
        }
    }
}

fn serve_command(agent: &Agent, client: &ClientConnection) {
    if let Ok(command) = client.read_command() {
        let answering = ANSWERING.lock();
        let answer = execute_command(agent, &command);
        drop(answering);
        let failed = client.send_reply(answer).is_err();
        agent.core.report_message(
            LogLevel::Debug,
            &format!("ctl: {command:?}, failed: {failed}"),
        );
    }
}

fn execute_command(agent: &Agent, command: &ControlCommand) -> Result<String, String> {
    match command {
        ControlCommand::Start => {
            delay::begin_counting(agent);
            agent.core.event_mask.start_counting();
        }
        ControlCommand::Stop => {
            agent.core.event_mask.stop_counting();
            coverage::record_interruption(
                agent.thread_parts(),
                "counting was stopped (lucce ctl stop)",
            );
        }
        ControlCommand::Set(setting) => set_events(agent, setting)?,
        ControlCommand::Dump(file) => {
            agent
                .counters
                .coverage
                .write_totals(agent.thread_parts(), None);
            return dump::dump_files(agent, file.as_deref());
        }
        ControlCommand::Holders(numbers, walks) => {
            return holders_request::answer_holders(agent, numbers, walks.as_ref());
        }
        ControlCommand::Leaks(request) => return leaks_request::answer_leaks(agent, *request),
        ControlCommand::Mark(name) => return marks::write_mark(agent, name, MarkEffect::Named),
        ControlCommand::Reset => {
            return marks::write_mark(agent, marks::RESET_NAME, MarkEffect::Reset);
        }
        ControlCommand::Detach => return attach::detach_agent(agent),
        ControlCommand::Status => {}
    }
    Ok(status::current_status(agent))
}

/// The kinds of named methods that can be switched on now.
///
/// # Errors
/// One line for the user: other methods than those of the start are named, in classes that have hooks.
fn check_methods(agent: &Agent, methods: &MethodSelection) -> Result<u64, String> {
    if agent.core.is_hookless() {
        return Ok(NAMED_CALL.mask_bit | NAMED_TIME.mask_bit);
    }
    match methods.is_empty() || methods == agent.core.options.events.methods() {
        true => Ok(0),
        false => Err(
            "classes have had the agent's hooks from the start (-agentpath): name the methods there, in events=call:METHODS; `lucce attach` changes them in a running JVM"
                .into(),
        ),
    }
}

/// Hooks the methods that `lucce ctl` names, and no others.
///
/// # Errors
/// One line for the user.
fn change_methods(agent: &Agent, methods: &MethodSelection) -> Result<(), String> {
    if !agent.core.is_hookless() {
        return Ok(());
    }
    let vm = holders_request::loading_vm().ok_or("the agent does not know its VM")?;
    let changed =
        vm.run_attached(|env| method_hooks::set_methods(agent, agent.core.jni_env(env), methods));
    let refused = |JvmError(code)| format!("the VM does not attach a thread (error {code})");
    changed.map_err(refused)?
}

fn set_events(agent: &Agent, setting: &str) -> Result<(), String> {
    let value = setting
        .strip_prefix("events=")
        .filter(|value| !value.contains(','))
        .ok_or("only events can be set: events=alloc, events=none")?;
    let wanted = EventSelection::parse(value).map_err(|e| e.to_string())?;
    if wanted.has_kind(&ALLOC) && !agent.core.options.has_alloc_hooks() {
        return Err(
            "the classes have no hooks for alloc: start the JVM with events=alloc or with ctl=all"
                .into(),
        );
    }
    if wanted
        .alloc_interval()
        .or(agent.core.options.events.alloc_interval())
        != agent.core.options.events.alloc_interval()
        || wanted.has_kind(&ALLOC) && agent.core.options.events.alloc_interval().is_some()
    {
        return Err("allocations are counted, or sampled, as they were from the start".into());
    }
    let heap = agent.core.options.events.heap_interval();
    if wanted
        .heap_interval()
        .is_some_and(|wanted| heap != Some(wanted))
    {
        return Err("heap is sampled only if it was from the start, with the same size".into());
    }
    if wanted.leak_interval().is_some() && agent.leaks.is_none() {
        return Err("no objects are followed: start the JVM with events=leak".into());
    }
    let methods = wanted.methods().clone();
    let wanted = wanted.event_mask();
    let has = agent.core.options.hooked_events().event_mask() | check_methods(agent, &methods)?;
    if let Some(name) = kind_names(wanted & !has).first() {
        return Err(match agent.core.options.is_hookless() {
            true => format!(
                "start the JVM with events={name}, or with ctl=all: with tracking=auto nothing else is prepared"
            ),
            false => {
                format!("start the JVM with events={name}: it cannot begin to tell of them now")
            }
        });
    }
    change_methods(agent, &methods)?;
    agent.core.event_mask.set_kinds(wanted);
    if agent.core.event_mask.requested_state().0 & (ALLOC.mask_bit | SAMPLES.mask_bit) == 0 {
        coverage::record_interruption(
            agent.thread_parts(),
            "allocations were not counted all the time (lucce ctl set)",
        );
    }
    Ok(())
}
