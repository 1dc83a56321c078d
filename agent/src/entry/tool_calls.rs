//! JVMTI functions that debuggers and other agents call, followed by work of the agent.
//!
//! | function | effect that the agent must handle |
//! |---|---|
//! | `PopFrame`, `ForceEarlyReturn…` | ends a frame without its exit hook: see `stack::forced_frame_end` |
//! | `RedefineClasses`, `RetransformClasses` | methods get other code, and the VM forgets its breakpoints: see `classes::method_watch` |
//!
//! All agents share the table of these functions, and JVMTI has no other way to observe the calls.
#![allow(
    unsafe_code,
    reason = "functions of the tool interface, and their table"
)]

use std::slice;
use std::sync::OnceLock;

use jvmti_bindings::sys::jni::{jclass, jdouble, jfloat, jint, jlong, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_jvmti::tool_table::{ToolTable, replace_function};
use lucce_jvmti::{JniEnvironment, VmHandle};

use crate::session::Agent;
use crate::session::guard::guard_callback;
use crate::stack::forced_frame_end::end_innermost;

/// The original functions.
struct OriginalFunctions {
    table: ToolTable,
    vm: VmHandle,
}

// SAFETY: a copy of a table of functions, which any thread may call.
unsafe impl Send for OriginalFunctions {}
// SAFETY: the copy is never changed, and any thread may call its functions.
unsafe impl Sync for OriginalFunctions {}

static ORIGINALS: OnceLock<OriginalFunctions> = OnceLock::new();

/// Replaces the functions in the table. `None`: the VM does not let the agent write there.
pub fn install_tool_functions(agent: &Agent, env: JniEnvironment) -> Option<()> {
    let table = agent.core.jvmti.writable_table()?;
    let originals = OriginalFunctions {
        // SAFETY: the VM's own table; its functions are only replaced one by one, each with one store.
        table: unsafe { std::ptr::read(table) },
        vm: env.vm()?,
    };
    ORIGINALS.set(originals).ok()?;
    macro_rules! replace {
        ($($name:ident: $type:ident = $function:ident),* $(,)?) => {
            $(
                let function: ti::$type = $function;
                // SAFETY: the address is in the table, whose functions have the prototype that was just named.
                unsafe { replace_function((&raw mut (*table).$name).cast(), function as usize) };
            )*
        };
    }
    replace! {
        PopFrame: JvmtiPopFrameFn = pop_frame,
        ForceEarlyReturnObject: JvmtiForceEarlyReturnObjectFn = return_object,
        ForceEarlyReturnInt: JvmtiForceEarlyReturnIntFn = return_int,
        ForceEarlyReturnLong: JvmtiForceEarlyReturnLongFn = return_long,
        ForceEarlyReturnFloat: JvmtiForceEarlyReturnFloatFn = return_float,
        ForceEarlyReturnDouble: JvmtiForceEarlyReturnDoubleFn = return_double,
        ForceEarlyReturnVoid: JvmtiForceEarlyReturnVoidFn = return_void,
        RedefineClasses: JvmtiRedefineClassesFn = redefine_classes,
        RetransformClasses: JvmtiRetransformClassesFn = retransform_classes,
    }
    Some(())
}

/// Calls the original function, and then `behind` if the VM succeeded.
macro_rules! call_original {
    ($name:ident($env:ident $(, $argument:expr)*), $behind:expr) => {{
        let original = ORIGINALS.get().and_then(|originals| originals.table.$name);
        let Some(original) = original else {
            return ti::jvmtiError::INTERNAL;
        };
        // SAFETY: the arguments are the caller's, for the function that it has called.
        let code = unsafe { original($env $(, $argument)*) };
        if code == ti::jvmtiError::NONE {
            $behind;
        }
        code
    }};
}

/// Runs `body` with the calling thread's environment.
fn with_agent(body: impl FnOnce(&'static Agent, JniEnvironment)) {
    guard_callback((), |agent| {
        let env = ORIGINALS
            .get()
            .and_then(|originals| originals.vm.thread_env());
        if let Some(env) = env.filter(|_| agent.core.is_live()) {
            body(agent, agent.core.jni_env(env));
        }
    });
}

/// The innermost frame of the thread ends. Null: the current thread.
fn end_frame(thread: jobject) {
    with_agent(|agent, env| {
        if !thread.is_null() {
            return end_innermost(agent.stack_parts(), env, thread);
        }
        if let Some(current) = agent.core.jvmti.current_thread() {
            end_innermost(agent.stack_parts(), env, current);
            env.delete_local(current);
        }
    });
}

unsafe extern "system" fn pop_frame(env: *mut ti::jvmtiEnv, thread: jobject) -> ti::jvmtiError {
    call_original!(PopFrame(env, thread), end_frame(thread))
}

unsafe extern "system" fn return_object(
    env: *mut ti::jvmtiEnv,
    thread: jobject,
    value: jobject,
) -> ti::jvmtiError {
    call_original!(
        ForceEarlyReturnObject(env, thread, value),
        end_frame(thread)
    )
}

unsafe extern "system" fn return_int(
    env: *mut ti::jvmtiEnv,
    thread: jobject,
    value: jint,
) -> ti::jvmtiError {
    call_original!(ForceEarlyReturnInt(env, thread, value), end_frame(thread))
}

unsafe extern "system" fn return_long(
    env: *mut ti::jvmtiEnv,
    thread: jobject,
    value: jlong,
) -> ti::jvmtiError {
    call_original!(ForceEarlyReturnLong(env, thread, value), end_frame(thread))
}

unsafe extern "system" fn return_float(
    env: *mut ti::jvmtiEnv,
    thread: jobject,
    value: jfloat,
) -> ti::jvmtiError {
    call_original!(ForceEarlyReturnFloat(env, thread, value), end_frame(thread))
}

unsafe extern "system" fn return_double(
    env: *mut ti::jvmtiEnv,
    thread: jobject,
    value: jdouble,
) -> ti::jvmtiError {
    call_original!(
        ForceEarlyReturnDouble(env, thread, value),
        end_frame(thread)
    )
}

unsafe extern "system" fn return_void(env: *mut ti::jvmtiEnv, thread: jobject) -> ti::jvmtiError {
    call_original!(ForceEarlyReturnVoid(env, thread), end_frame(thread))
}

unsafe extern "system" fn redefine_classes(
    env: *mut ti::jvmtiEnv,
    count: jint,
    definitions: *const ti::jvmtiClassDefinition,
) -> ti::jvmtiError {
    call_original!(
        RedefineClasses(env, count, definitions),
        // SAFETY: the caller has `count` definitions, and the VM has read them.
        forget_changed_classes(
            unsafe { iter_array(count, definitions) }.map(|definition| definition.klass)
        )
    )
}

unsafe extern "system" fn retransform_classes(
    env: *mut ti::jvmtiEnv,
    count: jint,
    classes: *const jclass,
) -> ti::jvmtiError {
    call_original!(
        RetransformClasses(env, count, classes),
        // SAFETY: the caller has `count` classes, and the VM has read them.
        forget_changed_classes(unsafe { iter_array(count, classes) }.copied())
    )
}

/// # Safety
/// `first` points to `count` elements.
unsafe fn iter_array<'g, T>(count: jint, first: *const T) -> slice::Iter<'g, T> {
    match usize::try_from(count) {
        // SAFETY: the caller passes `count` elements at `first`, which is not null.
        Ok(count) if !first.is_null() => unsafe { slice::from_raw_parts(first, count) }.iter(),
        _ => [].iter(),
    }
}

/// Forgets what was read of classes that have new code now.
fn forget_changed_classes(classes: impl Iterator<Item = jclass>) {
    with_agent(|agent, env| {
        agent.stack.forget_code();
        classes.for_each(|class| {
            agent
                .classes
                .method_watch
                .handle_changed(agent.class_parts(), env, class)
        });
    });
}
