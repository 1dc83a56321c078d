//! `events=alloc=all`: objects that no bytecode makes. The VM tells of those that its own methods make,
//! for reflection, say; JNI functions that make one are replaced (`c/allocate.c`); and calls of native
//! methods that compiled code does without, such as `Object.clone`, have a hook behind them. Marked by
//! a word behind the class's name.
#![allow(
    unsafe_code,
    reason = "a callback of the JVM, and of C functions in the JNI table"
)]

use std::ffi::c_void;

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jlong, jobject};
use jvmti_bindings::sys::jvmti::jvmtiEnv;
use lucce_callgraph::{ContextId, MethodId};

use crate::acting;
use crate::agent::Agent;
use crate::book::What;
use crate::gate;
use crate::jvm::Env;
use crate::memory::{SLOT, slot_site};
use crate::natives::{current_state, guard_event};
use crate::thread::ThreadState;
use crate::vm_events::{Kind, found_here, of_number, told, told_by_hook};

const fn kind(how: &'static str) -> Kind {
    Kind::new("alloc", "bytes", how)
}

static CLONE: Kind = kind("clone");
static REFLECTION: Kind = kind("reflection");
static JNI: Kind = kind("JNI");
static VM: Kind = kind("VM");

/// By the class whose native method makes the object.
const REFLECTING: [&str; 3] = [
    "java/lang/reflect/",
    "jdk/internal/reflect/",
    "java/lang/Class",
];

pub unsafe extern "system" fn allocated(
    _: *mut jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    _: jclass,
    bytes: i64,
) {
    told(gate::OBJECTS, env, thread, |agent, env, state| {
        let bytes = u64::try_from(bytes).unwrap_or(0);
        if let Some(how) = how(agent, env, thread) {
            made(agent, env, state, (how, object, bytes));
        }
    });
}

/// `None`: a hook counts it.
fn how(agent: &Agent, env: Env, thread: jobject) -> Option<&'static Kind> {
    let Some((method, _)) = agent.jvmti.frame(0) else {
        return Some(&VM);
    };
    let top = agent.frames.resolve(agent, env, method);
    let is_of = |prefix: &&str| top.class_name.starts_with(*prefix);
    let is = |class: &str, method: &str| (&*top.class_name, &*top.method_name) == (class, method);
    let is_clone = is("java/lang/Object", "clone");
    if (is_clone || is("java/lang/reflect/Array", "newArray")) && has_hook(agent, env, thread) {
        None
    } else if is_clone {
        Some(&CLONE)
    } else if REFLECTING.iter().any(is_of) {
        Some(&REFLECTION)
    } else {
        Some(&VM)
    }
}

/// Whether the innermost frame was called before a hook that counts what it makes. Such natives run no
/// Java code, so the thread's pointer is what it was when they were called, and the caller's slot tells.
fn has_hook(agent: &Agent, env: Env, thread: jobject) -> bool {
    let (Some(fields), Some((caller, _))) = (agent.fields.get(), agent.jvmti.frame(1)) else {
        return false;
    };
    let field = fields.pointer.id();
    let pointer = acting::holder(agent, env, thread, |thread| env.get_long(thread, field)) as usize;
    let Some(slot) = pointer.checked_sub(SLOT) else {
        return false;
    };
    let caller = agent.frames.resolve(agent, env, caller).id();
    let book = agent.book();
    let site = book.site(slot_site(slot));
    site.is_some_and(|site| site.what == What::Making && Some(MethodId(site.method)) == caller)
}

fn made(
    agent: &Agent,
    env: Env,
    state: &mut ThreadState,
    (kind, object, bytes): (&'static Kind, jobject, u64),
) {
    if let Some(found) = found_here(agent, env, state, (kind, object)) {
        found.count(agent, env, state, bytes);
    }
}

/// A JNI function has made an object for native code.
#[unsafe(no_mangle)]
pub extern "C" fn lucce_allocated(env: *mut JNIEnv, object: jobject) {
    if object.is_null() {
        return;
    }
    guard_event(gate::OBJECTS, |agent| {
        let env = agent.env(env);
        let bytes = agent.jvmti.object_size(object).unwrap_or(0);
        // Without a frame there is no context: the launcher prepares the call of `main`.
        let state = agent.jvmti.frame(0).and_then(|_| current_state(agent, env));
        if let Some(state) = state {
            made(agent, env, state, (&JNI, object, bytes));
        }
    });
}

/// A native method that has a hook behind it has made an object in the context `number`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_made0(
    env: *mut JNIEnv,
    _: jclass,
    ts: jlong,
    number: jlong,
    object: jobject,
    reflected: u8,
) {
    told_by_hook(gate::OBJECTS, env, (ts, object), |agent, env, state| {
        let bytes = agent.jvmti.object_size(object).unwrap_or(0);
        let number = ContextId(number as u64);
        let kind = if reflected == 0 { &CLONE } else { &REFLECTION };
        if let Some(found) = of_number(agent, env, state, number, (kind, object)) {
            found.count(agent, env, state, bytes);
        }
    });
}

unsafe extern "C" {
    fn lucce_allocate_install(table: *mut c_void, before: *mut c_void);
}

/// From now on, objects that native code makes are counted; for good.
pub fn install(agent: &Agent) -> Option<()> {
    let before = agent.jvmti.jni_table()?;
    let table = agent.jvmti.jni_table()?;
    // SAFETY: two copies of the VM's table, which are never freed.
    unsafe { lucce_allocate_install(table.cast(), before.cast()) };
    agent.jvmti.set_jni_table(table).ok()
}
