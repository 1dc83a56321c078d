//! Brackets around every JNI call of Java code: the native method's frame gets a slot, and the pointer is restored
//! afterwards. The replacing functions are in `c/bracket.c`.
#![allow(
    unsafe_code,
    reason = "installs C functions in the JNI table and is called by them"
)]

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jmethodID, jvalue};

use crate::memory::slots::Slot;
use crate::registry::NATIVE_LINE;
use crate::session::Agent;
use crate::session::guard::guard_callback;
use crate::stack::frames::MethodKind;
use crate::stack::vm_entry;
use crate::thread::lifecycle::current_state;
use lucce_jvmti::JniEnvironment;

unsafe extern "C" {
    fn lucce_bracket_install(table: *mut c_void, before: *mut c_void);
}

/// Methods of the helper class, by global references that are never deleted.
struct BracketMethods {
    class: usize,
    open: usize,
    enter: usize,
    bottom: usize,
    restore: usize,
}

static BRACKET_METHODS: OnceLock<BracketMethods> = OnceLock::new();

/// Installs the brackets: from now on traces contain native methods that call Java.
pub fn install_brackets(agent: &Agent, env: JniEnvironment, class: jclass) -> Option<()> {
    let helper = BracketMethods {
        class: class as usize,
        open: env.static_method_id(class, c"openNativeFrame", c"(I)J")? as usize,
        enter: env.static_method_id(class, c"enter", c"()J")? as usize,
        bottom: env.static_method_id(class, c"enterFromNative", c"()J")? as usize,
        restore: env.static_method_id(class, c"restore", c"(J)V")? as usize,
    };
    BRACKET_METHODS.set(helper).ok()?;
    let before = agent.core.jvmti.jni_table()?;
    let table = agent.core.jvmti.jni_table()?;
    // SAFETY: two copies of the VM's table, which are never freed.
    unsafe { lucce_bracket_install(table.cast(), before.cast()) };
    agent.core.jni.store(before, Ordering::Release);
    agent.core.jvmti.set_jni_table(table).ok()
}

/// Before the call. Returns the pointer to restore, or with bit 0 set the slot of a VM entry to leave. 0: nothing to
/// do afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn lucce_bracket_open(env: *mut JNIEnv) -> i64 {
    guard_callback(0, |agent| {
        let env = agent.core.jni_env(env);
        let helper = BRACKET_METHODS
            .get()
            .filter(|_| agent.core.is_live() && !env.has_exception());
        helper.map_or(0, |helper| helper.enter_call(agent, env))
    })
}

/// After the call, which may have thrown.
#[unsafe(no_mangle)]
pub extern "C" fn lucce_bracket_close(env: *mut JNIEnv, pointer: i64) {
    if pointer == 0 {
        return;
    }
    guard_callback((), |agent| {
        let env = agent.core.jni_env(env);
        let thrown = env.take_exception();
        if let Some(helper) = BRACKET_METHODS.get() {
            let pointer = leave_call(agent, env, pointer);
            helper.restore_pointer(env, pointer);
        }
        if !thrown.is_null() {
            env.throw_exception(thrown);
            env.delete_local(thrown);
        }
    });
}

impl BracketMethods {
    fn enter_call(&self, agent: &Agent, env: JniEnvironment) -> i64 {
        let class = self.class as jclass;
        let pointer = match innermost_frame(agent, env) {
            InnermostFrame::Nothing => env.call_long(class, self.bottom as jmethodID, &[]),
            InnermostFrame::Hidden => env.call_long(class, self.enter as jmethodID, &[]),
            InnermostFrame::Native(site) => {
                env.call_long(class, self.open as jmethodID, &[jvalue { i: site as i32 }])
            }
            InnermostFrame::Java => self.enter_vm_callback(agent, env),
        };
        if env.has_exception() {
            // The stack is full. The call itself will report that.
            env.clear_exception();
            return 0;
        }
        pointer
    }

    /// Enters native code that the VM runs in the middle of a Java method: a callback of another agent.
    fn enter_vm_callback(&self, agent: &Agent, env: JniEnvironment) -> i64 {
        let class = self.class as jclass;
        let pointer = env.call_long(class, self.enter as jmethodID, &[]);
        let own = current_state(agent.thread_parts(), env);
        let Some(state) = own.get() else {
            return pointer;
        };
        let slot = vm_entry::enter_frame(
            agent.stack_parts(),
            env,
            state,
            Slot::from_pointer(pointer as usize),
            0,
        );
        let slot = slot.pointer() as i64;
        self.restore_pointer(env, slot);
        slot | 1
    }

    fn restore_pointer(&self, env: JniEnvironment, pointer: i64) {
        let args = [jvalue { j: pointer }];
        env.call_void(self.class as jclass, self.restore as jmethodID, &args);
    }
}

/// The pointer to restore: see [`lucce_bracket_open`].
fn leave_call(agent: &Agent, env: JniEnvironment, opened: i64) -> i64 {
    let slot = opened & !1;
    let own = current_state(agent.thread_parts(), env);
    match own.get() {
        Some(state) if opened != slot => {
            vm_entry::leave_frame(state, Slot::from_pointer(slot as usize)).pointer() as i64
        }
        _ => slot,
    }
}

/// The innermost Java frame.
enum InnermostFrame {
    Nothing,
    /// Not shown in traces: the helper itself, or code that restores the pointer.
    Hidden,
    /// A native method whose caller has published its call site; with the site for the native frame.
    Native(u32),
    /// The VM must be asked for the position of its slot.
    Java,
}

fn innermost_frame(agent: &Agent, env: JniEnvironment) -> InnermostFrame {
    let Some((method, _)) = agent.core.jvmti.frame_location(0) else {
        return InnermostFrame::Nothing;
    };
    let resolved = agent
        .stack
        .frames
        .resolve_method(agent.stack_parts(), env, method);
    match resolved.kind {
        // If the caller has no hooks, nothing was published before the call.
        MethodKind::Known(id) if resolved.is_located_by_caller() => {
            InnermostFrame::Native(agent.core.find_or_add_site(id, NATIVE_LINE))
        }
        MethodKind::Known(_) => InnermostFrame::Java,
        // Also in the middle of such a method, which may be about to restore the pointer.
        MethodKind::Hidden if !resolved.native => InnermostFrame::Java,
        _ => InnermostFrame::Hidden,
    }
}
