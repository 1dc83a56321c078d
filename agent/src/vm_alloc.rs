//! `events=alloc=all`: objects that the VM makes for itself and for native code. The VM tells of those that its own
//! methods make; JNI functions that make one are replaced (`c/allocate.c`). Marked by a word behind the class's
//! name. The VM also tells of what Java code has natives make (`planner/making.rs`): those have a hook behind them.
//! Exceptions and their traces are counted with `events=alloc` already (`thrown.rs`).
#![allow(
    unsafe_code,
    reason = "a callback of the JVM, and of C functions in the JNI table"
)]

use std::ffi::c_void;
use std::sync::OnceLock;

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jobject};
use jvmti_bindings::sys::jvmti::jvmtiEnv;

use crate::agent::{Agent, Field};
use crate::gate;
use crate::jvm::Env;
use crate::natives::{current_state, guard_event};
use crate::thread::{OwnState, ThreadState};
use crate::vm_events::{Kind, found_here, told};

const fn kind(how: &'static str) -> Kind {
    Kind::new("alloc", "bytes", how)
}

static CLONE: Kind = kind("clone");
static REFLECTION: Kind = kind("reflection");
static JNI: Kind = kind("JNI");
pub static VM: Kind = kind("VM");

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
        if let Some(how) = how(agent, env, object) {
            made(agent, env, state, (how, object, bytes));
        }
    });
}

/// `None`: a hook counts it.
fn how(agent: &Agent, env: Env, object: jobject) -> Option<&'static Kind> {
    let Some((method, _)) = agent.jvmti.frame(0) else {
        return Some(&VM);
    };
    let top = agent.frames.resolve(agent, env, method);
    let is_of = |prefix: &&str| top.class_name.starts_with(*prefix);
    let made = made_by(&top.class_name, &top.method_name);
    if made.is_some_and(|made| made.is(agent, env, object)) && has_hook(agent, env) {
        None
    } else if made == Some(Made::Copy) {
        Some(&CLONE)
    } else if REFLECTING.iter().any(is_of) {
        Some(&REFLECTION)
    } else {
        Some(&VM)
    }
}

/// What a native method makes that its caller counts. Whatever else the VM makes meanwhile it tells of, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Made {
    Copy,
    Array,
    Instance,
    Texts,
}

fn made_by(class: &str, method: &str) -> Option<Made> {
    match (class, method) {
        ("java/lang/Object", "clone") => Some(Made::Copy),
        ("java/lang/reflect/Array", "newArray" | "multiNewArray") => Some(Made::Array),
        ("jdk/internal/misc/Unsafe", "allocateInstance") => Some(Made::Instance),
        ("jdk/internal/loader/BootLoader", "getSystemPackageNames")
        | ("java/lang/NullPointerException", "getExtendedNPEMessage") => Some(Made::Texts),
        (class, "newInstance0") if class.starts_with("jdk/internal/reflect/") => {
            Some(Made::Instance)
        }
        _ => None,
    }
}

impl Made {
    fn is(self, agent: &Agent, env: Env, object: jobject) -> bool {
        let class = env.class_of(object);
        let signature = agent.jvmti.signature(class).unwrap_or_default();
        env.forget(class);
        match self {
            Made::Copy | Made::Texts => true,
            Made::Array => signature.starts_with('['),
            // What a class needs that is loaded for it are arrays, and the class.
            Made::Instance => !signature.starts_with('[') && signature != "Ljava/lang/Class;",
        }
    }
}

/// Whether whoever has called the innermost frame counts what that makes.
fn has_hook(agent: &Agent, env: Env) -> bool {
    let caller = agent.jvmti.frame(1);
    caller.is_some_and(|(method, _)| {
        agent
            .frames
            .resolve(agent, env, method)
            .counts_what_it_makes
    })
}

fn made(
    agent: &Agent,
    env: Env,
    state: &ThreadState,
    (kind, object, bytes): (&'static Kind, jobject, u64),
) {
    if let Some(found) = found_here(agent, env, state, (kind, object)) {
        found.count(agent, env, state, bytes);
    }
}

/// A JNI function has made an object for native code.
#[unsafe(no_mangle)]
pub extern "C" fn lucce_allocated(env: *mut JNIEnv, object: jobject) {
    guard_event(gate::OBJECTS, |agent| {
        made_by_jni(agent, agent.env(env), object);
    });
}

/// A JNI function has made a text, and the array that holds it.
#[unsafe(no_mangle)]
pub extern "C" fn lucce_allocated_text(env: *mut JNIEnv, text: jobject) {
    guard_event(gate::OBJECTS, |agent| {
        let env = agent.env(env);
        made_by_jni(agent, env, text);
        if let (Some(field), false) = (text_field(env), text.is_null()) {
            let array = env.get_object(text, field.id());
            made_by_jni(agent, env, array);
            env.forget(array);
        }
    });
}

/// `String.value`.
fn text_field(env: Env) -> Option<Field> {
    static FIELD: OnceLock<Option<Field>> = OnceLock::new();
    *FIELD.get_or_init(|| {
        let class = env.find_class(c"java/lang/String")?;
        let field = env.field(class, c"value", c"[B");
        env.forget(class);
        field.map(Field::new)
    })
}

fn made_by_jni(agent: &Agent, env: Env, object: jobject) {
    if object.is_null() {
        return;
    }
    let bytes = agent.jvmti.object_size(object).unwrap_or(0);
    // Without a frame there is no context: the launcher prepares the call of `main`.
    let own = match agent.jvmti.frame(0) {
        None => OwnState::NONE,
        Some(_) => current_state(agent, env),
    };
    if let Some(state) = own.get() {
        made(agent, env, state, (&JNI, object, bytes));
    }
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
