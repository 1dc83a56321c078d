//! The VM is up: from now on events are recorded.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use jvmti_bindings::sys::jni::{jlong, jvalue};
use lucce_hooks::inherited_methods;
use lucce_hooks::kinds::OBJECTS;
use lucce_vm::Env;

use crate::core::thread_fields;
use crate::events;
use crate::options::Level;
use crate::session::helper_class::Bracket;
use crate::session::{Agent, helper_class};
use crate::stack::upcall;
use crate::thread::life;

/// What only the doors can do: they have the functions that the VM calls.
pub struct Doors {
    /// Puts brackets around JNI calls.
    pub bracket: Bracket,
    /// Has JNI functions tell of what they make.
    pub objects: fn(&Agent) -> Option<()>,
    /// Has functions of the tool interface tell what debuggers and other agents do.
    pub tool_calls: fn(&Agent, Env) -> Option<()>,
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

/// The VM is initialised. `doors`: see [`Doors`].
pub fn go_live(agent: &'static Agent, env: Env, doors: &Doors) -> Option<()> {
    watch_classes(agent, env);
    let helper = helper_class::find(env)?;
    helper_class::prepare(agent, env, helper, doors.bracket)?;
    if agent.options.is_partial() {
        begin_all(agent, env);
    }
    agent.live.store(true, Ordering::Release);
    // From here on threads count.
    agent.coverage.start(agent, env);
    helper_class::go_live(agent, env, helper)?;
    place_pointer(agent, env);
    tell_of_events(agent, doors);
    if (doors.tool_calls)(agent, env).is_none() {
        agent.say(
            Level::Warn,
            "this VM does not let its tool interface be watched: where a debugger pops a frame, or another agent \
             changes a class with a method that is left as it is, traces may be wrong",
        );
    }
    // Without it programs that list the methods of Object see more than there were.
    if hide_inherited(env).is_none() {
        env.clear();
        agent.say(
            Level::Warn,
            "reflection shows helpers among the methods of Object",
        );
    }
    tell_programs(agent, env)
}

/// From now on the agent finds out when the code of a class was replaced.
pub fn watch_classes(agent: &Agent, env: Env) {
    agent.frames.versions.prepare(env);
    agent.throwables.prepare(agent.jvmti, env);
}

/// What classes of the interface for programs look at when they are initialised.
pub fn tell_programs(agent: &Agent, env: Env) -> Option<()> {
    if agent.walks() {
        set_property(env, "lucce.hooks", "none")?;
    }
    set_property(env, "lucce.run", &agent.run.to_string())?;
    set_property(env, "lucce.version", env!("CARGO_PKG_VERSION"))
}

/// The boot edition has left the current thread's pointer anywhere. From now on what the thread calls finds its slot right
/// above the frames that are there: none, or that of the method which runs a Java agent.
fn place_pointer(agent: &Agent, env: Env) -> Option<()> {
    let thread = agent.jvmti.current_thread()?;
    let field = thread_fields(agent, env, thread)?.pointer.id();
    let own = life::state_of(agent, env, thread);
    let slot = own
        .get()
        .and_then(|state| upcall::next_slot(agent, env, state));
    if let Some(slot) = slot {
        env.set_long(thread, field, slot.pointer() as jlong);
    }
    env.forget(thread);
    slot.map(|_| ())
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

fn tell_of_events(agent: &Agent, doors: &Doors) {
    let events = agent.options.hooks();
    if events.has(&OBJECTS) && (doors.objects)(agent).is_none() {
        agent.say(
            Level::Warn,
            "objects that native code makes are not counted",
        );
    }
    for source in events::wanted(&events) {
        if let Err(message) = events::start(agent.jvmti, source) {
            agent.say(Level::Error, &message);
        }
    }
}

/// Threads whose frames so far are all out of scope begin now.
fn begin_all(agent: &Agent, env: Env) {
    for thread in agent.jvmti.threads() {
        life::begin_now(agent, env, thread);
        env.forget(thread);
    }
    life::begin_anew(agent, env);
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
