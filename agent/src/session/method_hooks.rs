//! Hooks of named methods in a running JVM whose other classes have none (`lucce attach`, `lucce ctl PID set events=…`).
//!
//! ```text
//! set_methods ─► helper class defined and bound ─► class file load hook on ─► retransform classes of old and new patterns
//! class loaded, or retransformed ─► transform_class: hooks in the methods that match now ─► VM
//! ```
//!
//! A class that no pattern matches any more gets its own bytes back. Frames that began with a hook end in the old code.

use std::collections::HashMap;
use std::ffi::CStr;
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni::{jclass, jobject, jvalue};
use jvmti_bindings::sys::jvmti as ti;
use lucce_bytecode::{ClassFile, rewrite};
use lucce_instrument::kinds::named_methods::plan_named_methods;
use lucce_instrument::kinds::open::{concerns_class, plan_resources};
use lucce_instrument::kinds::{CLASS, OPEN};
use lucce_jvmti::{JniEnvironment, JvmError};
use lucce_options::{MethodSelection, NamedMethodUse, ResourceRules};

use crate::hookless::named_calls::NamedCall;
use crate::memory::locks::WatchedMutex;
use crate::options::LogLevel;
use crate::session::Agent;
use crate::session::helper_class;
use crate::session::vm_support::unsupported_message;

const HELPER: &CStr = c"java/lang/LucceRtNamed";

/// Which methods have hooks.
#[derive(Clone, Default, PartialEq, Eq)]
struct HookedMethods {
    methods: MethodSelection,
    /// The methods that open and close resources; `None`: resources are no events.
    resources: Option<ResourceRules>,
}

impl HookedMethods {
    fn is_empty(&self) -> bool {
        self.methods.is_empty() && self.resources.is_none()
    }

    fn matches_class(&self, class: &str) -> bool {
        let resources = self.resources.as_ref();
        self.methods.matches_class(class)
            || resources.is_some_and(|resources| concerns_class(resources, class))
    }
}

/// What is hooked now.
#[derive(Default)]
struct MethodHooks {
    hooked: HookedMethods,
    /// The number of each method that ever had hooks, by class, name and descriptor.
    numbers: HashMap<String, u32>,
}

static HOOKS: WatchedMutex<Option<MethodHooks>> = WatchedMutex::new(None);

/// The method that a hook names; `None`: number 0, which only binds the native method.
pub fn find_call(number: u32) -> Option<NamedCall> {
    (number != 0).then_some(NamedCall {
        method: number >> 1,
        is_timed: number & 1 != 0,
    })
}

/// The number in a hook.
fn hook_number(method: u32, named: NamedMethodUse) -> Option<i32> {
    let number = method.checked_mul(2)? | u32::from(named == NamedMethodUse::Timed);
    i32::try_from(number).ok()
}

/// Hooks the methods that match, those of resources if they are events, and no others. The current thread runs Java code.
///
/// # Errors
/// One line for the user.
pub fn set_methods(
    agent: &Agent,
    env: JniEnvironment,
    methods: &MethodSelection,
) -> Result<(), String> {
    let options = &agent.core.options;
    let has_resources = options.events.has_kind(&OPEN);
    let hooked = HookedMethods {
        methods: methods.clone(),
        resources: has_resources.then(|| options.resources.clone()),
    };
    set_hooks(agent, env, &hooked)
}

fn set_hooks(agent: &Agent, env: JniEnvironment, methods: &HookedMethods) -> Result<(), String> {
    let before = HOOKS.lock().as_ref().map(|hooks| hooks.hooked.clone());
    let before = before.unwrap_or_default();
    if before == *methods {
        return Ok(());
    }
    if before.is_empty() {
        prepare_hooks(agent, env)?;
    }
    HOOKS.lock().get_or_insert_default().hooked = methods.clone();
    let event = ti::JVMTI_EVENT_CLASS_FILE_LOAD_HOOK;
    let failed = unsupported_message("hooks in loaded classes");
    agent.core.jvmti.enable_event(event).map_err(&failed)?;
    let is_meant = |name: &str| before.matches_class(name) || methods.matches_class(name);
    retransform_classes(agent, env, &is_meant).map_err(&failed)?;
    if methods.is_empty() && !agent.core.options.events.has_kind(&CLASS) {
        agent.core.jvmti.disable_event(event).map_err(&failed)?;
    }
    Ok(())
}

/// Takes all hooks out. A later agent begins anew.
pub fn remove_hooks(agent: &Agent, env: JniEnvironment) {
    if let Err(message) = set_hooks(agent, env, &HookedMethods::default()) {
        agent.core.report_message(LogLevel::Warn, &message);
    }
    *HOOKS.lock() = None;
}

/// The VM may call the hooks from now on.
fn prepare_hooks(agent: &Agent, env: JniEnvironment) -> Result<(), String> {
    let mut wanted = ti::jvmtiCapabilities::default();
    wanted.set_can_retransform_classes(true);
    let added = agent.core.jvmti.add_capabilities(&wanted);
    added.map_err(unsupported_message("hooks in loaded classes"))?;
    let known = env.find_class(HELPER);
    env.clear_exception();
    let class = known.or_else(|| helper_class::define_class_alone(agent.core.jvmti, env, HELPER));
    let Some(class) = class else {
        env.clear_exception();
        return Err("the class of the hooks could not be defined".into());
    };
    let is_bound = bind_natives(env, class);
    env.delete_local(class);
    match is_bound {
        true => Ok(()),
        false => Err("the VM does not find the functions of the hooks".into()),
    }
}

/// Calls each native method once, which binds it. The VM finds a library only after it has finished loading it.
fn bind_natives(env: JniEnvironment, class: jclass) -> bool {
    const PATIENCE: Duration = Duration::from_secs(10);
    let until = Instant::now() + PATIENCE;
    let zero = [jvalue { j: 0 }; 3];
    let call_all = || {
        let names = [
            (c"begin", c"(I)J"),
            (c"end", c"(J)V"),
            (c"endThrown", c"(J)V"),
            (c"openResource", c"(Ljava/lang/Object;JI)V"),
            (c"closeResource", c"(Ljava/lang/Object;JI)V"),
        ];
        names.into_iter().all(|(name, descriptor)| {
            let Some(method) = env.static_method_id(class, name, descriptor) else {
                return false;
            };
            match descriptor == c"(I)J" {
                true => {
                    env.call_long(class, method, &zero);
                }
                false => {
                    env.call_void(class, method, &zero);
                }
            }
            let is_bound = !env.has_exception();
            env.clear_exception();
            is_bound
        })
    };
    while !call_all() {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn retransform_classes(
    agent: &Agent,
    env: JniEnvironment,
    is_meant: &dyn Fn(&str) -> bool,
) -> Result<(), JvmError> {
    let jvmti = agent.core.jvmti;
    let mut classes = Vec::new();
    for class in jvmti.loaded_classes() {
        let signature = jvmti.class_signature(class).unwrap_or_default();
        // Arrays have no code. Hidden classes have a dot in their descriptors, and cannot be changed.
        let name = signature
            .strip_prefix('L')
            .and_then(|name| name.strip_suffix(';'));
        match name.filter(|name| !name.contains('.') && is_meant(name)) {
            Some(_) => classes.push(class),
            None => env.delete_local(class),
        }
    }
    let done = jvmti.retransform_classes(&classes);
    if done.is_err() {
        // One of them cannot be changed: the others can.
        for class in &classes {
            if jvmti.retransform_classes(&[*class]).is_err() {
                let name = jvmti.class_signature(*class).unwrap_or_default();
                let name = name
                    .trim_start_matches('L')
                    .trim_end_matches(';')
                    .to_owned();
                let reason = "calls not counted: the JVM does not change the class";
                agent.core.report_skipped(&name, None, reason);
            }
        }
    }
    for class in classes {
        env.delete_local(class);
    }
    Ok(())
}

/// The bytes of a class with hooks in the methods that match; `None`: the class stays as it is. `loader` has its loader.
pub fn transform_class(
    agent: &Agent,
    env: JniEnvironment,
    loader: jobject,
    (name, bytes): (&str, &[u8]),
) -> Option<Vec<u8>> {
    let HookedMethods { methods, resources } = {
        let hooks = HOOKS.lock();
        let hooked = hooks.as_ref().map(|hooks| &hooks.hooked);
        hooked.filter(|of| of.matches_class(name)).cloned()?
    };
    let class = ClassFile::parse(bytes).ok()?;
    let id = agent.core.loaders.loader_id(agent.core.jvmti, env, loader);
    let number = |method: &str, descriptor: &str, named: NamedMethodUse| {
        let key = format!("{} {name}.{method}{descriptor}", id.0);
        let mut hooks = HOOKS.lock();
        let numbers = &mut hooks.as_mut()?.numbers;
        let next = numbers.len() as u32 + 1;
        hook_number(*numbers.entry(key).or_insert(next), named)
    };
    let report = |method: &str, reason: &'static str| {
        agent
            .core
            .report_unrecorded(&methods, (name, method), reason);
    };
    let trusted = agent.core.loaders.is_trusted(id);
    let mut plan = plan_named_methods(&class, (&methods, trusted), number, report);
    if let Some(resources) = &resources {
        plan_resources(&mut plan, &class, (resources, trusted));
    }
    for method in class.methods() {
        agent.core.mark_matched(&methods, (name, &method.name));
    }
    if plan.methods.is_empty() {
        return None;
    }
    if agent.core.loaders.is_own(id) && !finds_helper(env, loader) {
        let reason = "calls not counted: its class loader does not find the class of the hooks";
        agent.core.report_skipped(name, None, reason);
        return None;
    }
    match rewrite(&class, &plan) {
        Ok(done) => {
            for (index, error) in &done.skipped {
                let method = class
                    .methods()
                    .get(*index)
                    .map_or("", |method| &method.name);
                agent
                    .core
                    .report_skipped(name, Some(method), &error.to_string());
            }
            Some(done.bytes)
        }
        Err(error) => {
            agent.core.report_skipped(name, None, &error.to_string());
            None
        }
    }
}

/// Whether the program's loader finds the class that hooks call. Runs Java code.
fn finds_helper(env: JniEnvironment, loader: jobject) -> bool {
    let find = || {
        let classes = env.find_class(c"java/lang/Class")?;
        let descriptor = c"(Ljava/lang/String;ZLjava/lang/ClassLoader;)Ljava/lang/Class;";
        let method = env.static_method_id(classes, c"forName", descriptor)?;
        let name = env.new_string("java.lang.LucceRtNamed")?;
        let arguments = [jvalue { l: name }, jvalue { z: 0 }, jvalue { l: loader }];
        let found = env.call_static_object(classes, method, &arguments);
        env.delete_local(name);
        env.delete_local(classes);
        let found = found?;
        env.delete_local(found);
        Some(())
    };
    let is_found = find().is_some();
    env.clear_exception();
    is_found
}
