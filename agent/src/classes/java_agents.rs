//! Java agents (`-javaagent`) get a class after its hooks have been inserted, and may put calls into its methods, also
//! before the hook at a method's entry. So the helper class stands in the place where the JDK calls them
//! (`InstrumentationImpl.transform`): they are given the class as it was without hooks, and what they make of it gets
//! hooks anew. The VM asks them after our own hook, on the same thread, see `recent`.
//!
//! A class that has been loaded before (`retransformClasses`) comes from the VM with its hooks: they are given what its
//! loader reads, if that is what the hooks were put into, see `originals`. Where that is not known they are given the
//! class with hooks, and what they make of it gets others, see `silence`.

use std::borrow::Cow;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti_bindings::sys::jni::{jint, jobject, jvalue};
use lucce_hooks::jdk::agents::IMPLEMENTATION;
use lucce_hooks::{INHERITED, silenced};

use crate::classes::Classes;
use crate::classes::load;
use crate::classes::load::Arrival;
use crate::memory::counter::count;
use crate::options::Level;
use lucce_vm::Env;

mod recent;

const HELPER: &[u8] = b"java/lang/LucceRt";

static ARE_THERE: AtomicBool = AtomicBool::new(false);

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
    silenced(class).map_or(Coming::Keeps, |class| Coming::Plain(Cow::Owned(class)))
}

/// A class that a Java agent has changed keeps the hooks of before.
pub fn keeps(classes: &Classes, name: &str) {
    let name = name.replace('/', ".");
    count(&classes.counts.classes_kept);
    let message = format!(
        "a Java agent has changed {name}, which keeps the hooks of before: events in what it calls there may have wrong traces"
    );
    classes.say(Level::Warn, &message);
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

/// The class that Java agents are asked for.
#[derive(Clone, Copy)]
pub struct Asked {
    pub loader: jobject,
    pub name: jobject,
    pub is_loaded: bool,
}

impl Asked {
    /// What the Java agents are given; `None`: `bytes` as they are.
    pub fn without_hooks(self, classes: &Classes, env: Env, bytes: jobject) -> Option<jobject> {
        let given = env.all_bytes(bytes)?;
        let plain = recent::plain_of(&given).or_else(|| {
            let must = self.is_loaded && has_hooks(&given);
            must.then(|| self.original(classes, env)).flatten()
        })?;
        classes.coverage.ours(env, || env.byte_array(&plain))
    }

    /// Runs Java code, which finds its slot where the caller says, and leaves that as it was.
    fn original(self, classes: &Classes, env: Env) -> Option<Vec<u8>> {
        let name = self.name(env)?;
        let field = classes.fields.get()?.pointer.id();
        let thread = classes.jvmti.current_thread()?;
        let loader = (
            classes.loaders.id(classes.jvmti, env, self.loader),
            self.loader,
        );
        let pointer = env.get_long(thread, field);
        let found = classes.originals.find(env, loader, &name, &|| {
            env.set_long(thread, field, pointer);
        });
        env.forget(thread);
        found
    }

    fn name(self, env: Env) -> Option<String> {
        (!self.name.is_null()).then(|| env.text(self.name, jint::MAX as usize))
    }

    /// What they made of it, with hooks. `None`: it stays as it is.
    pub fn hooked(
        self,
        classes: &Classes,
        env: Env,
        (manager, made): (jobject, jobject),
    ) -> Option<jobject> {
        let hooked = self.with_hooks(classes, env, made);
        // Others are asked again, and get what these made, when the class is changed after it has been loaded.
        if !repeats(env, manager) {
            self.note(classes, env, made);
        }
        hooked
    }

    fn with_hooks(self, classes: &Classes, env: Env, made: jobject) -> Option<jobject> {
        let mut class = env.all_bytes(made)?;
        if has_hooks(&class) {
            let Some(silenced) = silenced(&class) else {
                keeps(classes, &self.name(env).unwrap_or_default());
                return None;
            };
            class = silenced;
        }
        let loader = classes.loaders.id(classes.jvmti, env, self.loader);
        let arrival = match self.is_loaded {
            true => Arrival::Change,
            false => Arrival::Load,
        };
        let hooked = load::transform(classes, loader, &class, arrival)?;
        let array = classes.coverage.ours(env, || env.byte_array(&hooked));
        recent::keep(class, hooked);
        array
    }

    fn note(self, classes: &Classes, env: Env, made: jobject) {
        if let (Some(name), Some(bytes)) = (self.name(env), env.all_bytes(made)) {
            let loader = classes.loaders.id(classes.jvmti, env, self.loader);
            classes.originals.note(loader, name.as_bytes(), &bytes);
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

/// Asks the Java agents of a manager, as the JDK does: what they made of the class. Null: nothing, or an exception is on its
/// way. Runs code of the program's.
pub fn ask(env: Env, manager: jobject, arguments: &[jobject; 6]) -> jobject {
    let _asking = recent::Asking::begin();
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
