//! Java agents (`-javaagent`) get a class after its hooks have been inserted, and may put calls into its methods, also
//! before the hook at a method's entry. So the helper class stands in the place where the JDK calls them
//! (`InstrumentationImpl.transform`): they are given the class as it was without hooks, and what they make of it gets
//! hooks anew. The VM asks them after our own hook, on the same thread, see `recent`.
//!
//! A class that has been loaded before (`retransformClasses`) comes from the VM with its hooks: they are given what its
//! loader reads, if that is what the hooks were put into, see `originals`. Where that is not known they are given the
//! class with hooks, and what they make of it gets others, see `silence`.

#![allow(unsafe_code, reason = "called by Java code")]

use std::borrow::Cow;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jint, jobject, jvalue};
use lucce_bytecode::Call;

use crate::agent::{Agent, count};
use crate::coverage::ours;
use crate::hook;
use crate::jvm::Env;
use crate::natives::guard;
use crate::options::Level;
use crate::planner::INHERITED;

mod recent;
mod silence;

const IMPLEMENTATION: &str = "sun/instrument/InstrumentationImpl";
const HELPER: &[u8] = b"java/lang/LucceRt";

static ARE_THERE: AtomicBool = AtomicBool::new(false);

/// Whether this call, in a class with this name, asks the Java agents.
pub fn asks(class: &str, call: &Call<'_>) -> bool {
    class == IMPLEMENTATION
        && call.owner == "sun/instrument/TransformerManager"
        && call.name == "transform"
}

/// A class with this name is being loaded.
pub fn loading(name: &[u8]) {
    if name == IMPLEMENTATION.as_bytes() {
        ARE_THERE.store(true, Ordering::Relaxed);
    }
}

/// A class on its way into the VM.
#[derive(PartialEq, Debug)]
pub enum Coming<'c> {
    /// It gets hooks.
    Plain(Cow<'c, [u8]>),
    /// It has them: Java agents were asked first.
    Hooked,
    /// It has hooks of before, which cannot be told from its code, and gets no others.
    Keeps,
}

/// What is to be done with the class, of which a Java agent may have kept the bytes with hooks.
pub fn coming(class: &[u8]) -> Coming<'_> {
    if !has_hooks(class) {
        return Coming::Plain(Cow::Borrowed(class));
    }
    if recent::is_hooked(class) {
        return Coming::Hooked;
    }
    silence::silenced(class).map_or(Coming::Keeps, |class| Coming::Plain(Cow::Owned(class)))
}

/// A class that a Java agent has changed keeps the hooks of before.
pub fn keeps(agent: &Agent, name: &str) {
    let name = name.replace('/', ".");
    count(&agent.counts.classes_kept);
    let message = format!(
        "a Java agent has changed {name}, which keeps the hooks of before: events in what it calls there may have wrong traces"
    );
    agent.say(Level::Warn, &message);
}

fn has_hooks(class: &[u8]) -> bool {
    let has = |text: &[u8]| class.windows(text.len()).any(|part| part == text);
    ARE_THERE.load(Ordering::Relaxed) && (has(HELPER) || has(INHERITED.as_bytes()))
}

/// Java agents may be asked next.
pub fn hooked(plain: &[u8], hooked: &[u8]) {
    if ARE_THERE.load(Ordering::Relaxed) {
        recent::keep(plain.to_vec(), hooked.to_vec());
    }
}

/// In place of `TransformerManager.transform`. Null: nobody changes the class, or an exception is on its way.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_transform(
    env: *mut JNIEnv,
    _: jclass,
    manager: jobject,
    module: jobject,
    loader: jobject,
    name: jobject,
    changed: jobject,
    domain: jobject,
    bytes: jobject,
) -> jobject {
    let Some(agent) = Agent::get().filter(|_| !manager.is_null()) else {
        return ptr::null_mut();
    };
    let env = agent.env(env);
    let class = Asked {
        loader,
        name,
        is_loaded: !changed.is_null(),
    };
    let plain = guard(None, |_| class.without_hooks(agent, env, bytes));
    // Not within a guard: what they do is the program's.
    let given = plain.unwrap_or(bytes);
    let asking = recent::Asking::begin();
    let made = ask(
        env,
        manager,
        &[module, loader, name, changed, domain, given],
    );
    drop(asking);
    if env.has_exception() || made.is_null() {
        return made;
    }
    let hooked = guard(None, |agent| {
        let hooked = class.with_hooks(agent, env, made);
        // Others are asked again, and get what these made, when the class is changed after it has been loaded.
        if !repeats(env, manager) {
            class.note(agent, env, made);
        }
        hooked
    });
    hooked.unwrap_or(made)
}

/// The class that Java agents are asked for.
#[derive(Clone, Copy)]
struct Asked {
    loader: jobject,
    name: jobject,
    is_loaded: bool,
}

impl Asked {
    fn without_hooks(self, agent: &Agent, env: Env, bytes: jobject) -> Option<jobject> {
        let given = env.all_bytes(bytes)?;
        let plain = recent::plain_of(&given).or_else(|| {
            let must = self.is_loaded && has_hooks(&given);
            must.then(|| self.original(agent, env)).flatten()
        })?;
        ours(env, || env.byte_array(&plain))
    }

    /// Runs Java code, which finds its slot where the caller says, and leaves that as it was.
    fn original(self, agent: &Agent, env: Env) -> Option<Vec<u8>> {
        let name = self.name(env)?;
        let field = agent.fields.get()?.pointer.id();
        let thread = agent.jvmti.current_thread()?;
        let loader = (agent.loaders.id(agent.jvmti, env, self.loader), self.loader);
        let pointer = env.get_long(thread, field);
        let found = agent.originals.find(env, loader, &name, &|| {
            env.set_long(thread, field, pointer);
        });
        env.forget(thread);
        found
    }

    fn name(self, env: Env) -> Option<String> {
        (!self.name.is_null()).then(|| env.text(self.name, jint::MAX as usize))
    }

    fn with_hooks(self, agent: &Agent, env: Env, made: jobject) -> Option<jobject> {
        let mut class = env.all_bytes(made)?;
        if has_hooks(&class) {
            let Some(silenced) = silence::silenced(&class) else {
                keeps(agent, &self.name(env).unwrap_or_default());
                return None;
            };
            class = silenced;
        }
        let loader = agent.loaders.id(agent.jvmti, env, self.loader);
        let hooked = hook::transform(agent, loader, &class)?;
        let array = ours(env, || env.byte_array(&hooked));
        recent::keep(class, hooked);
        array
    }

    fn note(self, agent: &Agent, env: Env, made: jobject) {
        if let (Some(name), Some(bytes)) = (self.name(env), env.all_bytes(made)) {
            let loader = agent.loaders.id(agent.jvmti, env, self.loader);
            agent.originals.note(loader, name.as_bytes(), &bytes);
        }
    }
}

/// Whether these Java agents are asked again when a class is changed that has been loaded.
fn repeats(env: Env, manager: jobject) -> bool {
    let class = env.class_of(manager);
    let field = env.field(class, c"mIsRetransformable", c"Z");
    env.forget(class);
    field.is_some_and(|field| env.get_boolean(manager, field))
}

fn ask(env: Env, manager: jobject, arguments: &[jobject; 6]) -> jobject {
    let class = env.class_of(manager);
    let Some(method) = env.method(class, c"transform", ARGUMENTS) else {
        return ptr::null_mut();
    };
    let arguments = arguments.map(|l| jvalue { l });
    env.call_object_as_is(manager, method, &arguments)
}

const ARGUMENTS: &CStr = c"(Ljava/lang/Module;Ljava/lang/ClassLoader;Ljava/lang/String;Ljava/lang/Class;Ljava/security/ProtectionDomain;[B)[B";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_found_where_java_agents_are() {
        let class = b"....java/lang/LucceRt....";
        assert!(!has_hooks(class));
        loading(b"sun/instrument/InstrumentationImpl");
        assert!(has_hooks(class) && !has_hooks(b"java/lang/String"));
    }
}
