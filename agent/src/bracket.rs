//! Around every JNI call of Java code: the native method's frame gets a slot, and the pointer is
//! put back afterwards. The functions themselves are in `c/bracket.c`.
#![allow(unsafe_code, reason = "installs C functions in the JNI table and is called by them")]

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jmethodID, jvalue};

use crate::agent::Agent;
use crate::book::NATIVE;
use crate::frames::Kind;
use crate::hook::extra_site;
use crate::jvm::Env;
use crate::natives::guard;

unsafe extern "C" {
    fn lucce_bracket_install(table: *mut c_void, before: *mut c_void);
}

/// Methods of the helper class, by global references that are never given back.
struct Helper {
    class: usize,
    open: usize,
    pointer: usize,
    close: usize,
}

static HELPER: OnceLock<Helper> = OnceLock::new();

/// From now on, native code that calls Java has its frame in traces.
pub fn install(agent: &Agent, env: Env, class: jclass) -> Option<()> {
    let helper = Helper {
        class: class as usize,
        open: env.static_method(class, c"open", c"(I)J")? as usize,
        pointer: env.static_method(class, c"pointer", c"()J")? as usize,
        close: env.static_method(class, c"close", c"(J)V")? as usize,
    };
    HELPER.set(helper).ok()?;
    let before = agent.jvmti.jni_table()?;
    let table = agent.jvmti.jni_table()?;
    // SAFETY: two copies of the VM's table, which are never freed.
    unsafe { lucce_bracket_install(table.cast(), before.cast()) };
    agent.jni.store(before, Ordering::Release);
    agent.jvmti.set_jni_table(table).ok()
}

/// Before the call. 0: nothing to do afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn lucce_bracket_open(env: *mut JNIEnv) -> i64 {
    guard(0, |agent| {
        let env = agent.env(env);
        let helper = HELPER.get().filter(|_| agent.is_live() && !env.has_exception());
        helper.map_or(0, |helper| helper.enter(agent, env))
    })
}

/// After the call, which may have thrown.
#[unsafe(no_mangle)]
pub extern "C" fn lucce_bracket_close(env: *mut JNIEnv, pointer: i64) {
    if pointer == 0 {
        return;
    }
    guard((), |agent| {
        let env = agent.env(env);
        let thrown = env.take_exception();
        if let Some(helper) = HELPER.get() {
            let args = [jvalue { j: pointer }];
            env.call_void(helper.class as jclass, helper.close as jmethodID, &args);
        }
        if !thrown.is_null() {
            env.throw(thrown);
            env.forget(thrown);
        }
    });
}

impl Helper {
    fn enter(&self, agent: &Agent, env: Env) -> i64 {
        let class = self.class as jclass;
        let pointer = match native_site(agent, env) {
            0 => env.call_long(class, self.pointer as jmethodID, &[]),
            site => {
                let args = [jvalue { i: site as i32 }];
                env.call_long(class, self.open as jmethodID, &args)
            }
        };
        if env.has_exception() {
            // The stack is full: the call itself will say so.
            env.clear();
            return 0;
        }
        pointer
    }
}

/// The site of the native method that is running; 0: no Java frame, or not a native method.
fn native_site(agent: &Agent, env: Env) -> u32 {
    let Some((method, _)) = agent.jvmti.top_frame() else {
        return 0;
    };
    let resolved = agent.frames.resolve(agent, env, method);
    match resolved.kind {
        Kind::Known(id) if resolved.native => extra_site(agent, id, NATIVE),
        _ => 0,
    }
}
