//! What programs call: `io.lucce.CallContext`.
#![allow(
    unsafe_code,
    reason = "a function that the JVM calls, exported by name"
)]

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jint, jlong, jobject, jvalue};
use lucce_callgraph::ContextId;

use crate::agent::{Agent, count};
use crate::events::own_event;
use crate::gate;
use crate::here;
use crate::jvm::Env;
use crate::natives::{current_state, guard};
use crate::thread::ThreadState;
use crate::trace::{self, Element};

/// `CallContext.decode0`: the trace of a number.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_CallContext_decode0(
    env: *mut JNIEnv,
    _: jclass,
    id: jlong,
) -> jobject {
    guard(std::ptr::null_mut(), |agent| {
        // With brackets: the elements' constructors are entered.
        let env = Env::new(env, std::ptr::null());
        let refuse = |why: &dyn std::fmt::Display| {
            let text = format!("{} is not a context number: {why}", ContextId(id as u64));
            env.throw_new(c"java/lang/IllegalArgumentException", &text);
            std::ptr::null_mut()
        };
        // The book is free again when the elements' constructors run.
        match trace::of(agent, ContextId(id as u64)) {
            Ok(elements) => array(env, &elements).unwrap_or(std::ptr::null_mut()),
            Err(error) => refuse(&error),
        }
    })
}

/// These frames ask: `current0` and `current`.
const ASKING: usize = 2;

/// `CallContext.current0`: the number of the context from which `current` was called without a hook.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_CallContext_current0(env: *mut JNIEnv, _: jclass) -> jlong {
    guard(0, |agent| {
        let env = agent.env(env);
        let own = current_state(agent, env);
        let Some(state) = own.get().filter(|_| agent.is_live()) else {
            return 0;
        };
        let here = here::current(agent, env, state, ASKING);
        let number = here.map(|here| here.number(agent, state));
        number.map_or(0, |number| number.0 as jlong)
    })
}

/// `CallContext.event0`: an event where `event` was called without a hook.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_CallContext_event0(
    env: *mut JNIEnv,
    _: jclass,
    kind: jobject,
    value: jlong,
) {
    guard((), |agent| {
        let env = agent.env(env);
        let is_wanted = agent.is_live() && agent.gate.is_open(gate::OWN) && !kind.is_null();
        let own = current_state(agent, env);
        let Some(state) = own.get().filter(|_| is_wanted) else {
            return;
        };
        let here = here::current(agent, env, state, ASKING);
        let number = here.map_or(ContextId::UNKNOWN, |here| here.number(agent, state));
        let _ = own_event(agent, env, state, number, kind, value);
    });
}

/// `current` in code whose hooks are silent: the helper's frames do not count. Unknown: 0, and an event is lost.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtEvents_asked0(env: *mut JNIEnv, _: jclass) -> jlong {
    guard(0, |agent| {
        let env = agent.env(env);
        let own = current_state(agent, env);
        let Some(state) = own.get().filter(|_| agent.is_live()) else {
            return 0;
        };
        let number = number_here(agent, env, state);
        if number == ContextId::UNKNOWN {
            count(&agent.counts.events_lost);
        }
        number.0 as jlong
    })
}

/// `event` in such code; its number.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtEvents_told0(
    env: *mut JNIEnv,
    _: jclass,
    kind: jobject,
    value: jlong,
) -> jlong {
    guard(0, |agent| {
        let env = agent.env(env);
        let own = current_state(agent, env);
        let Some(state) = own.get().filter(|_| !kind.is_null()) else {
            return 0;
        };
        let number = number_here(agent, env, state);
        let _ = own_event(agent, env, state, number, kind, value);
        number.0 as jlong
    })
}

fn number_here(agent: &Agent, env: Env, state: &ThreadState) -> ContextId {
    let here = here::current(agent, env, state, 0);
    here.map_or(ContextId::UNKNOWN, |here| here.number(agent, state))
}

fn array(env: Env, elements: &[Element]) -> Option<jobject> {
    let class = env.find_class(c"java/lang/StackTraceElement")?;
    let constructor = env.method(
        class,
        c"<init>",
        c"(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;I)V",
    )?;
    let array = env.new_objects(class, jint::try_from(elements.len()).ok()?)?;
    for (index, element) in elements.iter().enumerate() {
        let object = element.object(env, class, constructor)?;
        env.set_element(array, index as jint, object);
        env.forget(object);
    }
    Some(array)
}

impl Element {
    fn object(
        &self,
        env: Env,
        class: jclass,
        constructor: jvmti_bindings::sys::jni::jmethodID,
    ) -> Option<jobject> {
        let (owner, method) = (env.string(&self.class)?, env.string(&self.method)?);
        let file = match &self.file {
            Some(file) => env.string(file)?,
            None => std::ptr::null_mut(),
        };
        let args = [
            jvalue { l: owner },
            jvalue { l: method },
            jvalue { l: file },
            jvalue { i: self.line },
        ];
        let object = env.new_object(class, constructor, &args);
        for text in [owner, method, file] {
            env.forget(text);
        }
        object
    }
}
