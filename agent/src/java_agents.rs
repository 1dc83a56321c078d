//! Java agents (`-javaagent`) get a class after its hooks have been inserted, and may put calls into its methods, also
//! before the hook at a method's entry. So the helper class stands in the place where the JDK calls them
//! (`InstrumentationImpl.transform`): they are given the class as it was without hooks, and what they make of it gets
//! hooks anew. The VM asks them right after our own hook, on the same thread.
//!
//! A class that is changed again after it has been loaded (`retransformClasses`) is given to them with its hooks.

#![allow(unsafe_code, reason = "called by Java code")]

use std::cell::RefCell;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jobject, jvalue};
use lucce_bytecode::Call;

use crate::agent::Agent;
use crate::hook;
use crate::jvm::Env;
use crate::natives::guard;

const IMPLEMENTATION: &str = "sun/instrument/InstrumentationImpl";
const HELPER: &[u8] = b"java/lang/LucceRt";

static ARE_THERE: AtomicBool = AtomicBool::new(false);

/// What this thread hooked last.
struct Last {
    plain: Vec<u8>,
    hooked: Vec<u8>,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

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

/// The same with its bytes: whether it has hooks already, because Java agents were asked first.
pub fn has_hooks(class: &[u8]) -> bool {
    ARE_THERE.load(Ordering::Relaxed) && class.windows(HELPER.len()).any(|part| part == HELPER)
}

/// Java agents may be asked next.
pub fn hooked(plain: &[u8], hooked: &[u8]) {
    if ARE_THERE.load(Ordering::Relaxed) {
        keep(plain.to_vec(), hooked.to_vec());
    }
}

fn keep(plain: Vec<u8>, hooked: Vec<u8>) {
    LAST.with_borrow_mut(|last| *last = Some(Last { plain, hooked }));
}

fn plain_of(class: &[u8]) -> Option<Vec<u8>> {
    let last = LAST.take()?;
    (last.hooked == class).then_some(last.plain)
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
    let plain = guard(None, |_| {
        let plain = plain_of(&env.all_bytes(bytes)?)?;
        env.byte_array(&plain)
    });
    // Not within a guard: what they do is the program's.
    let given = plain.unwrap_or(bytes);
    let made = ask(
        env,
        manager,
        &[module, loader, name, changed, domain, given],
    );
    // What is changed once more has its hooks.
    let is_hooked = plain.is_none() && !changed.is_null();
    if made.is_null() || is_hooked {
        return made;
    }
    let hooked = guard(None, |agent| with_hooks(agent, env, made, loader));
    hooked.unwrap_or(made)
}

fn ask(env: Env, manager: jobject, arguments: &[jobject; 6]) -> jobject {
    let class = env.class_of(manager);
    let Some(method) = env.method(class, c"transform", ARGUMENTS) else {
        return ptr::null_mut();
    };
    let arguments = arguments.map(|l| jvalue { l });
    env.call_object_as_is(manager, method, &arguments)
}

fn with_hooks(agent: &Agent, env: Env, made: jobject, loader: jobject) -> Option<jobject> {
    let class = env.all_bytes(made)?;
    if has_hooks(&class) {
        return None;
    }
    let loader = agent.loaders.id(agent.jvmti, env, loader);
    let hooked = hook::transform(agent, loader, &class)?;
    let array = env.byte_array(&hooked);
    keep(class, hooked);
    array
}

const ARGUMENTS: &CStr = c"(Ljava/lang/Module;Ljava/lang/ClassLoader;Ljava/lang/String;Ljava/lang/Class;Ljava/security/ProtectionDomain;[B)[B";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_class_that_was_hooked_last_is_known_without_hooks() {
        keep(vec![1], vec![1, 2]);
        assert_eq!(plain_of(&[1, 3]), None);
        keep(vec![1], vec![1, 2]);
        assert_eq!(plain_of(&[1, 2]), Some(vec![1]));
        assert_eq!(plain_of(&[1, 2]), None);
    }

    #[test]
    fn hooks_are_found_where_java_agents_are() {
        let class = b"....java/lang/LucceRt....";
        assert!(!has_hooks(class));
        loading(b"sun/instrument/InstrumentationImpl");
        assert!(has_hooks(class) && !has_hooks(b"java/lang/String"));
    }
}
