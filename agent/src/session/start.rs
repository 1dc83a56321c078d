//! The start, until the VM calls the agent: options, files and address space, what the VM is asked for.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use jvmti_bindings::sys::jni::JavaVM;
use jvmti_bindings::sys::jvmti as ti;
use lucce_hooks::jdk::{TRIED, most_like};
use lucce_vm::{Failed, Jvmti, Vm, flags};

use crate::events;
use crate::leaks;
use crate::options::{Level, Options, only};
use crate::session::agent::{Agent, Ground, Missing};
use crate::session::{attach, fate, holders, second_start};

/// What the VM is to call where classes have hooks, and where they have none.
#[derive(Clone, Copy)]
pub struct Callbacks {
    pub hooked: ti::jvmtiEventCallbacks,
    pub walking: ti::jvmtiEventCallbacks,
}

/// The VM loads the agent before anything of Java runs; `doors`: what it is to call.
///
/// # Errors
/// One line for the user: why the VM must not start.
pub fn start(vm: *mut JavaVM, text: &str, doors: &Callbacks) -> Result<(), String> {
    if let Some(first) = second_start::recorded_options() {
        // The VM must start, so not even wrong options are an error: the first ones hold.
        let said = second_start::text(&first, text);
        match Options::parse(text) {
            Ok(second) => second.say(Level::Warn, &said),
            Err(_) => eprintln!("lucce: {said}"),
        }
        return Ok(());
    }
    let options = Options::parse(text).map_err(|e| e.to_string())?;
    let jvmti = Jvmti::of(vm).map_err(refused("JVMTI 11"))?;
    let started = match is_meant(jvmti, &options) {
        true => supported(jvmti).and_then(|()| prepared(vm, jvmti, options, (text, doors))),
        false => Ok(false),
    };
    if started != Ok(true) {
        // The VM is as it would be without the agent.
        jvmti.dispose();
    } else {
        second_start::keep_options(text);
    }
    started.map(|_| ())
}

/// With `only=`: whether this is a program that was meant.
fn is_meant(jvmti: Jvmti, options: &Options) -> bool {
    if options.only.is_empty() {
        return true;
    }
    let command = jvmti
        .system_property(c"sun.java.command")
        .unwrap_or_default();
    let is_meant = only::is_meant(&options.only, &command);
    if !is_meant {
        let names = only::names(&command).join(", ");
        options.say(
            Level::Debug,
            &format!("only= does not mean {names}: nothing is recorded"),
        );
    }
    is_meant
}

/// The options as they were given, and what the VM is to call.
type Told<'t> = (&'t str, &'t Callbacks);

/// Starts, or says why the program runs without being recorded. `false`: it does.
///
/// # Errors
/// One line for the user: why the VM must not start.
fn prepared(
    vm: *mut JavaVM,
    jvmti: Jvmti,
    mut options: Options,
    (text, doors): Told<'_>,
) -> Result<bool, String> {
    lucce_tracelog::keep_addresses(flags::addresses_to_come(vm));
    beware_of_untried(jvmti, &mut options);
    let missing = match flags::archives(vm) {
        Some(archive) => Err(Missing::Unrecorded(archive)),
        None => {
            let attached = attach::without_hooks(&options);
            Ground::prepare(&mut options, attached)
        }
    };
    match missing {
        Ok(ground) => run(vm, jvmti, (options, ground), (text, doors)).map(|()| true),
        Err(Missing::Unrecorded(why)) if !options.strict => {
            options.say(
                Level::Warn,
                &format!("{why}; nothing is recorded (strict=on: the JVM does not start then)"),
            );
            Ok(false)
        }
        Err(missing) => Err(missing.text()),
    }
}

fn run(
    vm: *mut JavaVM,
    jvmti: Jvmti,
    (options, ground): (Options, Ground),
    (text, doors): Told<'_>,
) -> Result<(), String> {
    if options.walks() {
        let told = (text, &doors.walking);
        return attach::from_start(vm, jvmti, (options, ground), told);
    }
    fate::survive(vm);
    holders::loaded(vm);
    jvmti
        .add_capabilities(&capabilities(jvmti, &options))
        .map_err(refused("what the agent needs"))?;
    if options.events.leak().or(options.events.sampled()).is_some() {
        jvmti
            .add_capabilities(&leaks::capabilities())
            .map_err(samples_for_another)?;
    }
    draw_samples_early(jvmti, options.events.sampled().or(options.events.leak()));
    for source in events::wanted(&options.hooks()) {
        events::prepare(jvmti, source)?;
    }
    let agent = Agent::start(options, jvmti, ground)?;
    agent.long.prepare(Vm::new(vm));
    agent.meta("lucce", env!("CARGO_PKG_VERSION"));
    if let Some(leaks) = &agent.leaks {
        leaks::announce(agent, leaks);
    }
    agent.meta("options", text);
    jvmti
        .set_callbacks(&doors.hooked)
        .map_err(refused("the agent's callbacks"))?;
    for event in [
        ti::JVMTI_EVENT_CLASS_FILE_LOAD_HOOK,
        ti::JVMTI_EVENT_VM_START,
        ti::JVMTI_EVENT_VM_INIT,
        ti::JVMTI_EVENT_VM_DEATH,
        ti::JVMTI_EVENT_THREAD_START,
        ti::JVMTI_EVENT_THREAD_END,
    ] {
        jvmti.enable(event).map_err(refused("the agent's events"))?;
    }
    // JDK 21 and later.
    let _ = jvmti.enable(ti::JVMTI_EVENT_VIRTUAL_THREAD_END);
    Ok(())
}

/// Sets how many bytes lie between two samples before the VM makes its first thread.
///
/// A thread draws how far it is to its first sample when the VM makes it. What is drawn by the VM's own interval of 512 KB
/// would hide the beginning of the main thread. `None`: there are no samples.
pub fn draw_samples_early(jvmti: Jvmti, interval: Option<u32>) {
    if let Some(interval) = interval {
        // Where the VM refuses, it refuses again when samples begin, and the user is told.
        let _ = jvmti.sample_every(interval);
    }
}

/// The helper class is made for it, and what older VMs do by themselves has not been looked up.
const OLDEST: u32 = 17;

/// # Errors
/// The VM's Java is too old.
pub fn supported(jvmti: Jvmti) -> Result<(), String> {
    match jvmti.feature().map_err(refused("JVMTI"))? {
        OLDEST.. => Ok(()),
        feature => Err(format!(
            "this is JDK {feature}, and lucce needs {OLDEST} or later"
        )),
    }
}

const NEWEST: u32 = TRIED[TRIED.len() - 1];
/// On a newer one every so many events are compared with the VM's own trace.
const SAMPLE: u32 = 1000;

/// Where the VM's Java is none of those that were tried: the program runs, and what is known is compared with what is there.
pub fn beware_of_untried(jvmti: Jvmti, options: &mut Options) {
    if let Ok(feature) = jvmti.feature() {
        beware(feature, options);
    }
}

fn beware(feature: u32, options: &mut Options) {
    if options.facts || !TRIED.contains(&feature) {
        options.like = Some(most_like(feature));
    }
    if feature <= NEWEST {
        return;
    }
    if options.verify == 0 {
        options.verify = SAMPLE;
    }
    options.warn(format!(
        "JDK {feature} is newer than {NEWEST}, the newest that lucce was tried on: what differs from what lucce knows is told, \
         and one event in {} is compared with the JVM's own stack trace; `lucce check` tells whether one was wrong",
        options.verify
    ));
}

/// What the user is told if the VM does not let this agent sample allocations.
pub fn samples_for_another(Failed(code): Failed) -> String {
    format!(
        "events=leak, alloc=SIZE: another agent samples allocations, and the VM lets only one (error {code})"
    )
}

/// What the user is told if the VM does not do `what`.
pub fn refused(what: &'static str) -> impl Fn(Failed) -> String {
    move |Failed(code)| format!("this VM does not support {what} (error {code})")
}

fn capabilities(jvmti: Jvmti, options: &Options) -> ti::jvmtiCapabilities {
    let mut wanted = ti::jvmtiCapabilities::default();
    wanted.set_can_generate_all_class_hook_events(true);
    wanted.set_can_generate_early_class_hook_events(true);
    wanted.set_can_generate_early_vmstart(true);
    wanted.set_can_redefine_classes(true);
    wanted.set_can_tag_objects(true);
    wanted.set_can_get_line_numbers(true);
    // Where methods that the VM enters have their entry hook, and watched ones their calls.
    wanted.set_can_get_bytecodes(true);
    // Of a class that cannot be read.
    wanted.set_can_get_source_file_name(true);
    // Which of those calls are hooks.
    wanted.set_can_get_constant_pool(true);
    // Which thread is started: `this` of Thread.start.
    wanted.set_can_access_local_variables(options.records_calls());
    let can = jvmti.potential().unwrap_or_default();
    wanted.set_can_support_virtual_threads(can.can_support_virtual_threads());
    wanted.set_can_generate_breakpoint_events(
        can.can_generate_breakpoint_events() && !debugger_comes(),
    );
    wanted
}

/// Only one agent can have breakpoints, and a debugger cannot do without.
fn debugger_comes() -> bool {
    let command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let variables = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];
    let settings = variables.iter().filter_map(std::env::var_os);
    let mut texts = settings.map(OsString::into_vec).chain([command]);
    texts.any(|text| text.windows(4).any(|word| word == b"jdwp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jdks_that_were_not_tried_are_compared() {
        let of = |feature, text| {
            let mut options = Options::parse(text).unwrap();
            beware(feature, &mut options);
            (options.like, options.verify, options.warned)
        };
        for tried in TRIED {
            assert_eq!(of(tried, "log=none"), (None, 0, Vec::new()));
            assert_eq!(of(tried, "log=none,facts=on").0, Some(tried));
        }
        assert_eq!(of(19, "log=none"), (Some(17), 0, Vec::new()));
        let (like, verify, told) = of(NEWEST + 1, "log=none");
        assert_eq!((like, verify), (Some(NEWEST), SAMPLE));
        assert!(told[0].starts_with("JDK 26 is newer than 25"), "{told:?}");
        assert_eq!(of(NEWEST + 1, "log=none,verify=7").1, 7);
    }
}
