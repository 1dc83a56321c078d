//! The agent's life: what the VM tells it, from loading to death.
#![allow(unsafe_code, reason = "entry points and callbacks of the JVM")]

use std::collections::BTreeSet;
use std::ffi::{CStr, OsString, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStringExt;
use std::ptr;
use std::sync::atomic::Ordering;

use jvmti_bindings::sys::jni::{
    JNI_ERR, JNI_OK, JNIEnv, JavaVM, jclass, jint, jmethodID, jobject, jvalue,
};
use jvmti_bindings::sys::jvmti as ti;
use lucce_bytecode::mutf8;

use crate::agent::{Agent, Ground, Missing};
use crate::java_agents::Coming;
use crate::jvm::{Env, Failed, Jvmti};
use crate::natives::{self, guard};
use crate::options::{Level, Options};
use crate::planner::inherited_methods;
use crate::{
    burst, control, fate, finish, helper_class, hook, java_agents, leaks, native_api, only,
    samples, trim, unloading, vm_alloc, vm_events, vm_flags, watch,
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
    let started = std::panic::catch_unwind(|| start(vm, &text));
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

fn start(vm: *mut JavaVM, text: &str) -> Result<(), String> {
    let options = Options::parse(text).map_err(|e| e.to_string())?;
    let jvmti = Jvmti::of(vm).map_err(refused("JVMTI 11"))?;
    let started = match is_meant(jvmti, &options) {
        true => supported(jvmti).and_then(|()| prepared(vm, jvmti, options, text)),
        false => Ok(false),
    };
    if started != Ok(true) {
        // The VM is as it would be without the agent.
        jvmti.dispose();
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

/// Starts, or says why the program runs without being recorded. `false`: it does.
///
/// # Errors
/// One line for the user: why the VM must not start.
fn prepared(
    vm: *mut JavaVM,
    jvmti: Jvmti,
    mut options: Options,
    text: &str,
) -> Result<bool, String> {
    lucce_tracelog::keep_addresses(vm_flags::addresses_to_come(vm));
    warn_if_untried(jvmti, &mut options);
    let missing = match vm_flags::archives(vm) {
        Some(archive) => Err(Missing::Unrecorded(archive)),
        None => Ground::prepare(&mut options, true),
    };
    match missing {
        Ok(ground) => run(vm, jvmti, options, ground, text).map(|()| true),
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
    options: Options,
    ground: Ground,
    text: &str,
) -> Result<(), String> {
    native_api::loaded(vm);
    fate::survive(vm);
    jvmti
        .add_capabilities(&capabilities(jvmti, &options))
        .map_err(refused("what the agent needs"))?;
    if options.events.leak.or(options.events.sampled).is_some() {
        jvmti
            .add_capabilities(&leaks::capabilities())
            .map_err(|Failed(code)| {
                format!("events=leak, alloc=SIZE: another agent samples allocations, and the VM lets only one (error {code})")
            })?;
    }
    for source in vm_events::wanted(&options.hooks()) {
        vm_events::prepare(jvmti, source)?;
    }
    let agent = Agent::start(options, jvmti, ground)?;
    agent.meta("lucce", env!("CARGO_PKG_VERSION"));
    leaks::announce(agent);
    agent.meta("options", text);
    jvmti
        .set_callbacks(&callbacks())
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

/// The newest whose natives, and whose methods that the VM calls or replaces, were looked up.
const NEWEST: u32 = 25;

/// Says so where the VM's Java is newer than any that was tried: the program runs, and traces can be compared.
pub fn warn_if_untried(jvmti: Jvmti, options: &mut Options) {
    if let Some(text) = jvmti.feature().ok().and_then(untried) {
        options.warn(text);
    }
}

fn untried(feature: u32) -> Option<String> {
    let is_newer = feature > NEWEST;
    is_newer.then(|| {
        format!(
            "JDK {feature} is newer than {NEWEST}, the newest that lucce was tried on; verify=1000 compares every \
             thousandth event with the JVM's own stack trace, and `lucce check` tells what differs"
        )
    })
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
    vm_events::add_callbacks(&mut callbacks);
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

/// What the log says of the VM.
pub fn describe(agent: &Agent) {
    for (key, property) in [
        ("jvm", c"java.vm.version"),
        ("jvm.name", c"java.vm.name"),
        ("jdk", c"java.version"),
        ("command", c"sun.java.command"),
    ] {
        if let Some(value) = agent.jvmti.system_property(property) {
            agent.meta(key, &value);
        }
    }
}

unsafe extern "system" fn vm_init(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, _: jobject) {
    guard((), |agent| {
        // The threads there are, and what the VM itself makes while it binds one native after the other.
        agent.env(env).reserve(64);
        if go_live(agent, agent.env(env)).is_none() {
            agent.say(
                Level::Error,
                "the hooks could not be made live; nothing is recorded",
            );
        }
        if let Some(leaks) = &agent.leaks
            && leaks::start(agent, agent.jvmti, leaks.interval()).is_err()
        {
            agent.say(Level::Error, "this VM does not sample allocations");
        }
        if let Some(bytes) = agent.options.events.sampled
            && samples::start(agent, bytes).is_err()
        {
            agent.say(Level::Error, "this VM does not sample allocations");
        }
        // It has them now.
        lucce_tracelog::keep_addresses(0);
        describe(agent);
        if agent.is_live() {
            control::start(agent);
            burst::start(agent);
            trim::start(agent);
            fate::start(agent);
        }
    });
}

fn go_live(agent: &'static Agent, env: Env) -> Option<()> {
    let helper = helper_class::find(env)?;
    helper_class::prepare(agent, env, helper)?;
    if agent.options.is_partial() {
        begin_all(agent, env);
    }
    agent.live.store(true, Ordering::Release);
    // From here on threads count.
    agent.coverage.start(agent, env);
    helper_class::go_live(agent, env, helper)?;
    tell_of_events(agent);
    // Without it programs that list the methods of Object see more than there were.
    if hide_inherited(env).is_none() {
        env.clear();
        agent.say(
            Level::Warn,
            "reflection shows helpers among the methods of Object",
        );
    }
    set_property(env, "lucce.run", &agent.run.to_string())?;
    set_property(env, "lucce.version", env!("CARGO_PKG_VERSION"))
}

/// Tells reflection to leave out the methods by which classes inherit the helpers.
fn hide_inherited(env: Env) -> Option<()> {
    let [reflection, set, object, string] = [
        c"jdk/internal/reflect/Reflection",
        c"java/util/Set",
        c"java/lang/Object",
        c"java/lang/String",
    ]
    .map(|name| env.find_class(name));
    let (reflection, set, object, string) = (reflection?, set?, object?, string?);
    let of = env.static_method(set, c"of", c"([Ljava/lang/Object;)Ljava/util/Set;")?;
    let register = c"registerMethodsToFilter";
    let register =
        env.static_method(reflection, register, c"(Ljava/lang/Class;Ljava/util/Set;)V")?;
    let names: BTreeSet<String> = inherited_methods()
        .iter()
        .map(|method| format!("{}{}", method.prefix, method.helper.name))
        .collect();
    let array = env.new_objects(string, names.len() as i32)?;
    for (index, name) in (0..).zip(&names) {
        let name = env.string(name)?;
        env.set_element(array, index, name);
        env.forget(name);
    }
    let all = env.call_static_object(set, of, &[jvalue { l: array }])?;
    env.call_void(
        reflection,
        register,
        &[jvalue { l: object }, jvalue { l: all }],
    );
    for one in [reflection, set, object, string, array, all] {
        env.forget(one);
    }
    (!env.has_exception()).then_some(())
}

fn tell_of_events(agent: &Agent) {
    let events = agent.options.hooks();
    if events.objects && vm_alloc::install(agent).is_none() {
        agent.say(
            Level::Warn,
            "objects that native code makes are not counted",
        );
    }
    for source in vm_events::wanted(&events) {
        if let Err(message) = vm_events::start(agent.jvmti, source) {
            agent.say(Level::Error, &message);
        }
    }
}

/// Threads whose frames so far are all out of scope begin now.
fn begin_all(agent: &Agent, env: Env) {
    for thread in agent.jvmti.threads() {
        natives::begin_now(agent, env, thread);
        env.forget(thread);
    }
    natives::begin_anew(agent, env);
}

/// Java code asks for it to know that the agent is there. The tool interface itself can only change
/// properties that exist.
fn set_property(env: Env, key: &str, value: &str) -> Option<()> {
    let class = env.find_class(c"java/lang/System")?;
    let descriptor = c"(Ljava/lang/String;Ljava/lang/String;)Ljava/lang/String;";
    let method = env.static_method(class, c"setProperty", descriptor)?;
    let (key, value) = (env.string(key)?, env.string(value)?);
    env.call_void(class, method, &[jvalue { l: key }, jvalue { l: value }]);
    for object in [class, key, value] {
        env.forget(object);
    }
    (!env.has_exception()).then_some(())
}

/// After the first thread beside the main one, `Thread` is initialised and frames can be kept.
unsafe extern "system" fn thread_start(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, thread: jobject) {
    guard((), |agent| {
        let env = agent.env(env);
        if agent.is_live() {
            agent.coverage.begins(agent, env, thread);
            natives::begin(agent, env, thread);
        } else {
            helper_class::has_threads(env);
        }
    });
}

unsafe extern "system" fn thread_end(_: *mut ti::jvmtiEnv, env: *mut JNIEnv, thread: jobject) {
    guard((), |agent| {
        let env = agent.env(env);
        agent.coverage.ends(agent, env);
        natives::detach(agent, env, thread);
    });
}

/// Its carrier goes on.
unsafe extern "system" fn virtual_thread_end(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
) {
    guard((), |agent| natives::detach(agent, agent.env(env), thread));
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
    _: jmethodID,
    _: i64,
) {
    guard((), |agent| watch::reached(agent, agent.env(env), thread));
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
    samples::sampled(env, thread, class, size);
}

/// Only with `events=leak`; nothing of the VM may be called here.
///
/// # Safety
/// Called by the VM.
pub unsafe extern "system" fn garbage_collection_finish(_: *mut ti::jvmtiEnv) {
    guard((), |agent| {
        if let Some(leaks) = &agent.leaks {
            leaks.collected();
        }
    });
}

unsafe extern "system" fn vm_death(_: *mut ti::jvmtiEnv, env: *mut JNIEnv) {
    guard((), |agent| {
        if let Some(leaks) = &agent.leaks {
            leaks.finish(agent, agent.env(env));
        }
        agent.coverage.ends_all(agent, agent.env(env));
        finish::finish(agent);
    });
}

#[allow(clippy::too_many_arguments, reason = "the VM's prototype")]
unsafe extern "system" fn class_file_load_hook(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    _redefined: jclass,
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
        let Some(new) = hook::transform(agent, loader, class) else {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_jdks_are_told() {
        assert_eq!(untried(OLDEST).or(untried(NEWEST)), None);
        let told = untried(NEWEST + 1).unwrap();
        assert!(told.starts_with("JDK 26 is newer than 25"), "{told}");
    }
}
