//! Java agents (`-javaagent`) that change classes.
//!
//! A Java agent gets a class after its hooks have been inserted. It may put calls into the methods, even before the hook at a
//! method's entry. Therefore the helper class intercepts the method from which the JDK calls Java agents
//! (`InstrumentationImpl.transform`). Java agents get the class without hooks, and their result gets new hooks. The VM calls
//! them after our own hook, on the same thread, see `recent_classes`.
//!
//! A class that is already loaded (`retransformClasses`) comes from the VM with its hooks. If the original bytes can be read
//! from its loader, Java agents get those, see `original_classes`. Otherwise they get the class with hooks, and the result's
//! old hooks are replaced, see `lucce_instrument::old_hooks`.

use std::borrow::Cow;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti_bindings::sys::jni::{jint, jobject, jvalue};
use lucce_instrument::jdk::agents::IMPLEMENTATION;
use lucce_instrument::{INHERITED, disable_old_hooks};

use crate::classes::ClassParts;
use crate::classes::load;
use crate::classes::load::ClassArrival;
use crate::memory::counter::increment_counter;
use crate::options::LogLevel;
use lucce_jvmti::JniEnvironment;

mod recent_classes;

const HELPER: &[u8] = b"java/lang/LucceRt";

static AGENTS_LOADED: AtomicBool = AtomicBool::new(false);

/// Notices the JDK's class for Java agents by its name, when it is loaded.
pub fn detect_java_agents(name: &[u8]) {
    if name == IMPLEMENTATION.as_bytes() {
        AGENTS_LOADED.store(true, Ordering::Relaxed);
    }
}

/// A class on its way into the VM.
#[derive(PartialEq, Debug)]
pub enum ArrivingClass<'c> {
    /// A class without hooks; it gets hooks.
    Plain(Cow<'c, [u8]>),
    /// A class with hooks of this thread: Java agents have seen it already.
    Hooked,
    /// A class with old hooks that its code does not reveal. It gets no new hooks.
    KeepsOldHooks,
}

/// How to treat the class. A Java agent may have kept its bytes with hooks.
pub fn classify_class(class: &[u8]) -> ArrivingClass<'_> {
    if !has_hooks(class) {
        return ArrivingClass::Plain(Cow::Borrowed(class));
    }
    if recent_classes::is_hooked(class) {
        return ArrivingClass::Hooked;
    }
    disable_old_hooks(class).map_or(ArrivingClass::KeepsOldHooks, |class| {
        ArrivingClass::Plain(Cow::Owned(class))
    })
}

/// Warns that a class changed by a Java agent keeps its old hooks.
pub fn report_kept_hooks(agent: ClassParts<'_>, name: &str) {
    let name = name.replace('/', ".");
    increment_counter(&agent.core.counts.classes_kept);
    let message = format!(
        "a Java agent has changed {name}, which keeps the hooks of before: events in what it calls there may have wrong traces"
    );
    agent.core.report_message(LogLevel::Warn, &message);
}

fn has_hooks(class: &[u8]) -> bool {
    let has = |text: &[u8]| class.windows(text.len()).any(|part| part == text);
    AGENTS_LOADED.load(Ordering::Relaxed) && (has(HELPER) || has(INHERITED.as_bytes()))
}

/// Remembers a class with its hooks, in case Java agents are called next.
pub fn record_hooked(plain: &[u8], hooked: &[u8]) {
    if AGENTS_LOADED.load(Ordering::Relaxed) {
        recent_classes::remember_class(plain.to_vec(), hooked.to_vec());
    }
}

/// The class for which Java agents are called.
#[derive(Clone, Copy)]
pub struct TransformRequest {
    pub loader: jobject,
    pub name: jobject,
    pub is_loaded: bool,
}

impl TransformRequest {
    /// The bytes that Java agents get. `None`: `bytes` unchanged.
    pub fn find_plain_bytes(
        self,
        agent: ClassParts<'_>,
        env: JniEnvironment,
        bytes: jobject,
    ) -> Option<jobject> {
        let given = env.read_all_bytes(bytes)?;
        let plain = recent_classes::find_plain(&given).or_else(|| {
            let must = self.is_loaded && has_hooks(&given);
            must.then(|| self.find_original(agent, env)).flatten()
        })?;
        agent
            .counters
            .coverage
            .exclude_allocations(env, || env.new_byte_array(&plain))
    }

    /// The class from its loader. Runs Java code, which finds its slot where `$lucceStack` points; restores `$lucceStack` afterwards.
    fn find_original(self, agent: ClassParts<'_>, env: JniEnvironment) -> Option<Vec<u8>> {
        let name = self.class_name(env)?;
        let field = agent.core.fields.get()?.pointer.as_raw();
        let thread = agent.core.jvmti.current_thread()?;
        let loader = (
            agent
                .core
                .loaders
                .loader_id(agent.core.jvmti, env, self.loader),
            self.loader,
        );
        let pointer = env.get_long(thread, field);
        let class = agent
            .classes
            .original_classes
            .find_class(env, loader, &name, &|| {
                env.set_long(thread, field, pointer);
            });
        env.delete_local(thread);
        class
    }

    fn class_name(self, env: JniEnvironment) -> Option<String> {
        (!self.name.is_null()).then(|| env.read_string(self.name, jint::MAX as usize))
    }

    /// The Java agents' result with hooks. `None`: the class stays unchanged.
    pub fn hook_answer(
        self,
        agent: ClassParts<'_>,
        env: JniEnvironment,
        (manager, made): (jobject, jobject),
    ) -> Option<jobject> {
        let hooked = self.insert_hooks(agent, env, made);
        // When a loaded class changes, retransformable agents are called again with this result.
        if !is_retransformable(env, manager) {
            self.record_original(agent, env, made);
        }
        hooked
    }

    fn insert_hooks(
        self,
        agent: ClassParts<'_>,
        env: JniEnvironment,
        made: jobject,
    ) -> Option<jobject> {
        let mut class = env.read_all_bytes(made)?;
        if has_hooks(&class) {
            let Some(disabled) = disable_old_hooks(&class) else {
                report_kept_hooks(agent, &self.class_name(env).unwrap_or_default());
                return None;
            };
            class = disabled;
        }
        let loader = agent
            .core
            .loaders
            .loader_id(agent.core.jvmti, env, self.loader);
        let arrival = match self.is_loaded {
            true => ClassArrival::Change,
            false => ClassArrival::Load,
        };
        let hooked = load::transform_class(agent, loader, &class, arrival).into_bytes()?;
        let array = agent
            .counters
            .coverage
            .exclude_allocations(env, || env.new_byte_array(&hooked));
        recent_classes::remember_class(class, hooked);
        array
    }

    fn record_original(self, agent: ClassParts<'_>, env: JniEnvironment, made: jobject) {
        if let (Some(name), Some(bytes)) = (self.class_name(env), env.read_all_bytes(made)) {
            let loader = agent
                .core
                .loaders
                .loader_id(agent.core.jvmti, env, self.loader);
            agent
                .classes
                .original_classes
                .record_class(loader, name.as_bytes(), &bytes);
        }
    }
}

/// Whether these Java agents are called again when a loaded class changes.
fn is_retransformable(env: JniEnvironment, manager: jobject) -> bool {
    let class = env.class_of(manager);
    let field = env.field_id(class, c"mIsRetransformable", c"Z");
    env.delete_local(class);
    field.is_some_and(|field| env.get_boolean(manager, field))
}

/// Calls the Java agents of a manager, as the JDK does, and returns the class that they made. Null: no change, or an exception
/// is pending. Runs code of the program.
pub fn call_transformers(
    env: JniEnvironment,
    manager: jobject,
    arguments: &[jobject; 6],
) -> jobject {
    let _asking = recent_classes::AgentQueryGuard::enter_level();
    let class = env.class_of(manager);
    let Some(method) = env.method_id(class, c"transform", ARGUMENTS) else {
        return ptr::null_mut();
    };
    let arguments = arguments.map(|l| jvalue { l });
    env.call_object_as_is(manager, method, &arguments)
}

const ARGUMENTS: &CStr = c"(Ljava/lang/Module;Ljava/lang/ClassLoader;Ljava/lang/String;Ljava/lang/Class;Ljava/security/ProtectionDomain;[B)[B";

#[cfg(test)]
mod java_agents_tests {
    use super::*;

    #[test]
    fn hooks_are_found_where_java_agents_are() {
        let class = b"....java/lang/LucceRt....";
        assert!(!has_hooks(class));
        detect_java_agents(b"sun/instrument/InstrumentationImpl");
        assert!(has_hooks(class) && !has_hooks(b"java/lang/String"));
    }
}
