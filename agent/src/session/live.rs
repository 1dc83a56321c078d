//! The transition to recording, once the VM is initialized.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use jvmti_bindings::sys::jni::{jlong, jvalue};
use jvmti_bindings::sys::jvmti as ti;
use lucce_instrument::inherited_methods;
use lucce_instrument::kinds::{ALIVE_THREADS, OBJECTS, OPEN, THREAD};
use lucce_jvmti::{JniEnvironment, Jvmti, VmHandle};

use crate::core::thread_fields;
use crate::events;
use crate::events::open;
use crate::options::LogLevel;
use crate::options::program_filter::StartedProgram;
use crate::session::helper_class::BracketInstaller;
use crate::session::{Agent, helper_class};
use crate::stack::vm_entry;
use crate::thread::alive_threads::AliveThreadTypes;
use crate::thread::lifecycle;

/// Functions that only the entry points can install, because they own the functions that the VM calls.
pub struct CallInterceptors {
    /// Installs brackets around JNI calls.
    pub bracket: BracketInstaller,
    /// Makes JNI functions report the objects that they create.
    pub objects: fn(&Agent) -> Option<()>,
    /// Makes JVMTI functions report the actions of debuggers and other agents.
    pub tool_calls: fn(&Agent, JniEnvironment) -> Option<()>,
}

/// Writes the VM's properties to the log.
pub fn write_vm_properties(agent: &Agent) {
    for (key, property) in [
        ("jvm", c"java.vm.version"),
        ("jvm.name", c"java.vm.name"),
        ("jdk", c"java.version"),
    ] {
        if let Some(value) = agent.core.jvmti.system_property(property) {
            agent.core.append_meta(key, &value);
        }
    }
    if let Ok(directory) = std::env::current_dir() {
        agent
            .core
            .append_meta("directory", &directory.to_string_lossy());
    }
    if let Some(command) = agent.core.jvmti.system_property(c"sun.java.command") {
        agent.core.append_meta("command", &command);
        let program = StartedProgram::from_command(&command);
        if let Some(main_class) = program.names.last() {
            agent.core.append_meta("main.class", main_class);
        }
        let class_path = agent.core.jvmti.system_property(c"java.class.path");
        // The path of `java -jar` is the jar.
        let is_path_merged =
            || class_path.is_some_and(|path| StartedProgram::is_path_merged(&path));
        if program.is_merged || program.names.len() == 1 && is_path_merged() {
            agent.core.append_meta("main.jar", "merged");
        }
    }
}

/// Starts recording once the VM is initialized. `interceptors`: see [`CallInterceptors`].
pub fn start_live_recording(
    agent: &'static Agent,
    env: JniEnvironment,
    interceptors: &CallInterceptors,
) -> Option<()> {
    prepare_class_watch(agent, env);
    let helper = helper_class::find_classes(env)?;
    helper_class::prepare_live_variant(agent, env, helper, interceptors.bracket)?;
    if agent.core.options.is_partial() {
        begin_all_threads(agent, env);
    }
    start_alive_threads(agent);
    agent.core.live.store(true, Ordering::Release);
    // From here on the allocations of threads are measured.
    agent
        .counters
        .coverage
        .start_following(agent.thread_parts(), env);
    helper_class::redefine_live_variant(agent, env, helper)?;
    agent.core.has_live_helpers.store(true, Ordering::Release);
    set_slot_pointer(agent, env);
    start_event_sources(agent, interceptors);
    if (interceptors.tool_calls)(agent, env).is_none() {
        agent.core.report_message(
            LogLevel::Warn,
            "this VM does not let its tool interface be watched: where a debugger pops a frame, or another agent \
             changes a class with a method that is left as it is, traces may be wrong",
        );
    }
    // Otherwise programs that list the methods of Object would see the helpers.
    if hide_inherited_helpers(agent.core.jvmti, env).is_none() {
        env.clear_exception();
        agent.core.report_message(
            LogLevel::Warn,
            "reflection shows helpers among the methods of Object",
        );
    }
    set_program_properties(agent, env)
}

/// Records living threads from now on, if starts of threads are events.
fn start_alive_threads(agent: &Agent) {
    if !agent.core.options.hooked_events().has_kind(&THREAD) {
        return;
    }
    let find_type = |detail| {
        let parts = agent.counting_parts();
        parts.find_or_add_event_type(ALIVE_THREADS.name, ALIVE_THREADS.unit, detail)
    };
    if let (Some(thread), Some(clock)) = (find_type(""), find_type("(clock)")) {
        let types = AliveThreadTypes { thread, clock };
        agent.counters.alive_threads.start_recording(types);
    }
}

/// Records resources that are opened from now on, if they are events. `callbacks` has the one for collected objects.
pub fn start_open_resources(agent: &Agent, vm: VmHandle, callbacks: &ti::jvmtiEventCallbacks) {
    if !agent.core.options.hooked_events().has_kind(&OPEN) {
        return;
    }
    if open::start_recording(agent.counting_parts(), vm, callbacks).is_err() {
        let message = "this VM does not tag objects: open resources are not recorded";
        agent.core.report_message(LogLevel::Error, message);
    }
}

/// Prepares to detect that the code of a class was replaced.
pub fn prepare_class_watch(agent: &Agent, env: JniEnvironment) {
    agent.stack.frames.versions.prepare_field(env);
    agent
        .stack
        .throwables
        .prepare_classes(agent.core.jvmti, env);
}

/// Sets the properties that the classes of the Java interface read when they are initialized.
pub fn set_program_properties(agent: &Agent, env: JniEnvironment) -> Option<()> {
    if agent.core.is_hookless() {
        set_property(env, "lucce.hooks", "none")?;
    }
    set_property(env, "lucce.run", &agent.core.run.to_string())?;
    set_property(env, "lucce.version", env!("CARGO_PKG_VERSION"))
}

/// The boot variant has left the current thread's `$lucceStack` anywhere. Sets it so that the thread's callees find their slots directly
/// above the present frames: there is none, or the method that runs a Java agent.
fn set_slot_pointer(agent: &Agent, env: JniEnvironment) -> Option<()> {
    let thread = agent.core.jvmti.current_thread()?;
    let field = thread_fields(&agent.core, env, thread)?.pointer.as_raw();
    let own = lifecycle::state_of(agent.thread_parts(), env, thread);
    let slot = own
        .get()
        .and_then(|state| vm_entry::next_slot(agent.stack_parts(), env, state));
    if let Some(slot) = slot {
        env.set_long(thread, field, slot.pointer() as jlong);
    }
    env.delete_local(thread);
    slot.map(|_| ())
}

/// Makes reflection omit the methods by which classes inherit the helpers.
fn hide_inherited_helpers(jvmti: Jvmti, env: JniEnvironment) -> Option<()> {
    let [reflection, set, object, string] = [
        c"jdk/internal/reflect/Reflection",
        c"java/util/Set",
        c"java/lang/Object",
        c"java/lang/String",
    ]
    .map(|name| env.find_class(name));
    let (reflection, set, object, string) = (reflection?, set?, object?, string?);
    let of = env.static_method_id(set, c"of", c"([Ljava/lang/Object;)Ljava/util/Set;")?;
    // No look-up of a missing method: the error that the VM makes for it would run hooks in the middle of this function.
    let takes_array = jvmti.java_version().ok()? <= 11;
    let descriptor = match takes_array {
        true => c"(Ljava/lang/Class;[Ljava/lang/String;)V",
        false => c"(Ljava/lang/Class;Ljava/util/Set;)V",
    };
    let register = env.static_method_id(reflection, c"registerMethodsToFilter", descriptor)?;
    let names: BTreeSet<String> = inherited_methods(cfg!(feature = "lab"))
        .iter()
        .map(|method| format!("{}{}", method.prefix, method.helper.name))
        .collect();
    let array = env.new_objects(string, names.len() as i32)?;
    let intern = env.method_id(string, c"intern", c"()Ljava/lang/String;")?;
    for (index, name) in (0..).zip(&names) {
        let name = env.new_string(name)?;
        // JDK 11 compares names by identity; those of methods are interned.
        let interned = env.call_object(name, intern, &[])?;
        env.set_element(array, index, interned);
        env.delete_local(interned);
        env.delete_local(name);
    }
    let all = env.call_static_object(set, of, &[jvalue { l: array }])?;
    let hidden = if takes_array { array } else { all };
    env.call_void(
        reflection,
        register,
        &[jvalue { l: object }, jvalue { l: hidden }],
    );
    for one in [reflection, set, object, string, array, all] {
        env.delete_local(one);
    }
    (!env.has_exception()).then_some(())
}

fn start_event_sources(agent: &Agent, interceptors: &CallInterceptors) {
    let events = agent.core.options.hooked_events();
    if events.has_kind(&OBJECTS) && (interceptors.objects)(agent).is_none() {
        agent.core.report_message(
            LogLevel::Warn,
            "objects that native code makes are not counted",
        );
    }
    for source in events::wanted_sources(&events) {
        if let Err(message) = events::enable_source(agent.core.jvmti, source) {
            agent.core.report_message(LogLevel::Error, &message);
        }
    }
}

/// Begins threads whose present frames are all out of scope.
fn begin_all_threads(agent: &Agent, env: JniEnvironment) {
    for thread in agent.core.jvmti.all_threads() {
        lifecycle::begin_out_of_scope(agent.thread_parts(), env, thread);
        env.delete_local(thread);
    }
    lifecycle::begin_anew(agent.thread_parts(), env);
}

/// Sets a property by Java code, which detects the agent by it. JVMTI can only change existing properties.
fn set_property(env: JniEnvironment, key: &str, value: &str) -> Option<()> {
    let class = env.find_class(c"java/lang/System")?;
    let descriptor = c"(Ljava/lang/String;Ljava/lang/String;)Ljava/lang/String;";
    let method = env.static_method_id(class, c"setProperty", descriptor)?;
    let (key, value) = (env.new_string(key)?, env.new_string(value)?);
    env.call_void(class, method, &[jvalue { l: key }, jvalue { l: value }]);
    for object in [class, key, value] {
        env.delete_local(object);
    }
    (!env.has_exception()).then_some(())
}
