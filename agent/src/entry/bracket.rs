//! Around every JNI call of Java code: the native method's frame gets a slot, and the pointer is
//! put back afterwards. The functions themselves are in `c/bracket.c`.
#![allow(
    unsafe_code,
    reason = "installs C functions in the JNI table and is called by them"
)]

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jmethodID, jvalue};

use crate::book::NATIVE;
use crate::memory::slots::Slot;
use crate::session::Agent;
use crate::session::guard::guard;
use crate::stack::frames::MethodKind;
use crate::stack::upcall;
use crate::thread::life::current_state;
use lucce_vm::Env;

unsafe extern "C" {
    fn lucce_bracket_install(table: *mut c_void, before: *mut c_void);
}

/// Methods of the helper class, by global references that are never given back.
struct Helper {
    class: usize,
    open: usize,
    enter: usize,
    bottom: usize,
    restore: usize,
}

static HELPER: OnceLock<Helper> = OnceLock::new();

/// From now on, native code that calls Java has its frame in traces.
pub fn install(agent: &Agent, env: Env, class: jclass) -> Option<()> {
    let helper = Helper {
        class: class as usize,
        open: env.static_method(class, c"open", c"(I)J")? as usize,
        enter: env.static_method(class, c"enter", c"()J")? as usize,
        bottom: env.static_method(class, c"bottom", c"()J")? as usize,
        restore: env.static_method(class, c"restore", c"(J)V")? as usize,
    };
    HELPER.set(helper).ok()?;
    let before = agent.jvmti.jni_table()?;
    let table = agent.jvmti.jni_table()?;
    // SAFETY: two copies of the VM's table, which are never freed.
    unsafe { lucce_bracket_install(table.cast(), before.cast()) };
    agent.jni.store(before, Ordering::Release);
    agent.jvmti.set_jni_table(table).ok()
}

/// Before the call: the pointer to put back, or with bit 0 set the slot of an upcall to leave. 0:
/// nothing to do afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn lucce_bracket_open(env: *mut JNIEnv) -> i64 {
    guard(0, |agent| {
        let env = agent.env(env);
        let helper = HELPER
            .get()
            .filter(|_| agent.is_live() && !env.has_exception());
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
            let pointer = leave(agent, env, pointer);
            helper.restore(env, pointer);
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
        let pointer = match top(agent, env) {
            Top::Nothing => env.call_long(class, self.bottom as jmethodID, &[]),
            Top::Hidden => env.call_long(class, self.enter as jmethodID, &[]),
            Top::Native(site) => {
                env.call_long(class, self.open as jmethodID, &[jvalue { i: site as i32 }])
            }
            Top::Java => self.in_the_middle(agent, env),
        };
        if env.has_exception() {
            // The stack is full: the call itself will say so.
            env.clear();
            return 0;
        }
        pointer
    }

    /// Native code that the VM runs in the middle of a Java method: another agent's callback.
    fn in_the_middle(&self, agent: &Agent, env: Env) -> i64 {
        let class = self.class as jclass;
        let pointer = env.call_long(class, self.enter as jmethodID, &[]);
        let own = current_state(agent, env);
        let Some(state) = own.get() else {
            return pointer;
        };
        let slot = upcall::enter(agent, env, state, Slot::at(pointer as usize), 0);
        let slot = slot.pointer() as i64;
        self.restore(env, slot);
        slot | 1
    }

    fn restore(&self, env: Env, pointer: i64) {
        let args = [jvalue { j: pointer }];
        env.call_void(self.class as jclass, self.restore as jmethodID, &args);
    }
}

/// What to put back: see [`lucce_bracket_open`].
fn leave(agent: &Agent, env: Env, opened: i64) -> i64 {
    let slot = opened & !1;
    let own = current_state(agent, env);
    match own.get() {
        Some(state) if opened != slot => {
            upcall::leave(state, Slot::at(slot as usize)).pointer() as i64
        }
        _ => slot,
    }
}

/// The innermost Java frame.
enum Top {
    Nothing,
    /// Not shown in traces: the helper itself, or code that restores the pointer.
    Hidden,
    /// A native method of which the caller said from where it calls: its frame's site.
    Native(u32),
    /// The VM knows where its slot would be.
    Java,
}

fn top(agent: &Agent, env: Env) -> Top {
    let Some((method, _)) = agent.jvmti.frame(0) else {
        return Top::Nothing;
    };
    let resolved = agent.frames.resolve(agent, env, method);
    match resolved.kind {
        // The caller has no hooks: nothing was said before the call.
        MethodKind::Known(id) if resolved.is_announced() => {
            Top::Native(agent.extra_site(id, NATIVE))
        }
        MethodKind::Known(_) => Top::Java,
        // In the middle of it, too: it may be about to put the pointer where it belongs.
        MethodKind::Hidden if !resolved.native => Top::Java,
        _ => Top::Hidden,
    }
}
