//! The start up to the VM's first call: options, files and address space, capabilities and events.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use jvmti_bindings::sys::jni::JavaVM;
use jvmti_bindings::sys::jvmti as ti;
use lucce_jvmti::{Jvmti, VmHandle, flags};

use crate::events;
use crate::leaks;
use crate::options::program_filter::StartedProgram;
use crate::options::{AgentOptions, LogLevel};
use crate::session::agent::{Agent, AgentResources, StartError};
use crate::session::vm_support::{
    adapt_to_untried_jdk, check_jdk_supported, sampling_taken_message, set_sampling_interval_early,
    unsupported_message,
};
use crate::session::{attach, file_watch, holders_request, live, repeated_start};

/// Starts the agent, before any Java code runs. `callbacks`: those of the VM.
///
/// # Errors
/// One line for the user: the VM must not start.
pub fn start_agent(
    vm: *mut JavaVM,
    text: &str,
    callbacks: &ti::jvmtiEventCallbacks,
) -> Result<(), String> {
    if let Some(first) = repeated_start::recorded_options() {
        // The VM must start, so even wrong options are no error: the first options hold.
        let message = repeated_start::repetition_message(&first, text);
        match AgentOptions::parse(text) {
            Ok(second) => second.print_message(LogLevel::Warn, &message),
            Err(_) => eprintln!("lucce: {message}"),
        }
        return Ok(());
    }
    let options = AgentOptions::parse(text).map_err(|e| e.to_string())?;
    let jvmti = Jvmti::from_vm(vm).map_err(unsupported_message("JVMTI 11"))?;
    let started = match is_program_selected(jvmti, &options) {
        true => check_jdk_supported(jvmti)
            .and_then(|()| acquire_and_start(vm, jvmti, options, (text, callbacks))),
        false => Ok(false),
    };
    if started != Ok(true) {
        // The VM continues as without the agent.
        jvmti.dispose_environment();
    } else {
        repeated_start::set_recorded_options(text);
    }
    started.map(|_| ())
}

/// Whether `only=` selects this program.
fn is_program_selected(jvmti: Jvmti, options: &AgentOptions) -> bool {
    if options.only.is_empty() {
        return true;
    }
    let command = jvmti
        .system_property(c"sun.java.command")
        .unwrap_or_default();
    let program = StartedProgram::from_command(&command);
    let is_meant = program.is_selected(&options.only);
    if !is_meant {
        let names = program.names.join(", ");
        options.print_message(
            LogLevel::Debug,
            &format!("only= does not mean {names}: nothing is recorded"),
        );
    }
    is_meant
}

/// The text of the options, and the VM's callbacks.
type StartArguments<'t> = (&'t str, &'t ti::jvmtiEventCallbacks);

/// Starts the agent, or reports why the program runs without recording. `false`: it runs without.
///
/// # Errors
/// One line for the user: the VM must not start.
fn acquire_and_start(
    vm: *mut JavaVM,
    jvmti: Jvmti,
    mut options: AgentOptions,
    (text, callbacks): StartArguments<'_>,
) -> Result<bool, String> {
    lucce_tracelog::keep_addresses(flags::expected_addresses(vm));
    adapt_to_untried_jdk(jvmti, &mut options);
    let missing = match flags::archive_warning(vm) {
        Some(archive) => Err(StartError::NoResources(archive)),
        None => {
            let attached = attach::hookless_attachment(&options);
            AgentResources::acquire(&mut options, attached)
        }
    };
    match missing {
        Ok(resources) => {
            start_with_resources(vm, jvmti, (options, resources), (text, callbacks)).map(|()| true)
        }
        Err(StartError::NoResources(why)) if !options.strict => {
            options.print_message(
                LogLevel::Warn,
                &format!("{why}; nothing is recorded (strict=on: the JVM does not start then)"),
            );
            Ok(false)
        }
        Err(missing) => Err(missing.into_message()),
    }
}

fn start_with_resources(
    vm: *mut JavaVM,
    jvmti: Jvmti,
    (options, resources): (AgentOptions, AgentResources),
    (text, callbacks): StartArguments<'_>,
) -> Result<(), String> {
    if options.is_hookless() {
        return attach::start_hookless(vm, jvmti, (options, resources), (text, callbacks));
    }
    file_watch::survive_truncation(vm);
    holders_request::remember_vm(vm);
    flags::enlarge_symbol_table(vm);
    jvmti
        .add_capabilities(&required_capabilities(jvmti, &options))
        .map_err(unsupported_message("what the agent needs"))?;
    if options.events.vm_interval().is_some() {
        jvmti
            .add_capabilities(&leaks::required_capabilities())
            .map_err(sampling_taken_message)?;
    }
    set_sampling_interval_early(jvmti, options.events.vm_interval());
    for source in events::wanted_sources(&options.hooked_events()) {
        events::add_source_capabilities(jvmti, source)?;
    }
    let agent = Agent::install(options, jvmti, resources)?;
    agent.classes.long_methods.set_vm(VmHandle::new(vm));
    agent.core.append_meta("lucce", env!("CARGO_PKG_VERSION"));
    if let Some(leaks) = &agent.leaks {
        leaks::write_interval(agent.counting_parts(), leaks);
    }
    agent.core.append_meta("options", text);
    jvmti
        .set_callbacks(callbacks)
        .map_err(unsupported_message("the agent's callbacks"))?;
    events::enable_early_sources(agent.counting_parts())?;
    live::start_open_resources(agent, VmHandle::new(vm), callbacks);
    for event in [
        ti::JVMTI_EVENT_CLASS_FILE_LOAD_HOOK,
        ti::JVMTI_EVENT_VM_START,
        ti::JVMTI_EVENT_VM_INIT,
        ti::JVMTI_EVENT_VM_DEATH,
        ti::JVMTI_EVENT_THREAD_START,
        ti::JVMTI_EVENT_THREAD_END,
    ] {
        jvmti
            .enable_event(event)
            .map_err(unsupported_message("the agent's events"))?;
    }
    // JDK 21 and later.
    let _ = jvmti.enable_event(ti::JVMTI_EVENT_VIRTUAL_THREAD_END);
    Ok(())
}

fn required_capabilities(jvmti: Jvmti, options: &AgentOptions) -> ti::jvmtiCapabilities {
    let mut wanted = ti::jvmtiCapabilities::default();
    wanted.set_can_generate_all_class_hook_events(true);
    wanted.set_can_generate_early_class_hook_events(true);
    wanted.set_can_generate_early_vmstart(true);
    wanted.set_can_redefine_classes(true);
    wanted.set_can_tag_objects(true);
    wanted.set_can_get_line_numbers(true);
    // To find the entry hooks of methods that the VM enters, and the calls of watched methods.
    wanted.set_can_get_bytecodes(true);
    // For a class that cannot be read.
    wanted.set_can_get_source_file_name(true);
    // To tell which of those calls are hooks.
    wanted.set_can_get_constant_pool(true);
    // To find the started thread: `this` of Thread.start.
    wanted.set_can_access_local_variables(options.calls);
    let can = jvmti.potential_capabilities().unwrap_or_default();
    wanted.set_can_support_virtual_threads(can.can_support_virtual_threads());
    wanted.set_can_generate_breakpoint_events(
        can.can_generate_breakpoint_events() && !is_debugger_expected(),
    );
    wanted
}

/// Only one agent can have breakpoints, and a debugger needs them.
fn is_debugger_expected() -> bool {
    let command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let variables = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];
    let settings = variables.iter().filter_map(std::env::var_os);
    let mut texts = settings.map(OsString::into_vec).chain([command]);
    texts.any(|text| text.windows(4).any(|word| word == b"jdwp"))
}
