//! `events=alloc=all`: objects that the VM makes for itself and for native code. The VM tells of those that its own
//! methods make; JNI functions that make one are replaced (`c/allocate.c`). Marked by a word behind the class's
//! name. The VM also tells of what Java code has natives make (`hooks::making`): those have a hook behind them.
//! Exceptions and their traces are counted with `events=alloc` already (`thrown.rs`).
use std::sync::OnceLock;

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_hooks::Kind;
use lucce_hooks::kinds::OBJECTS;
use lucce_vm::{Env, Field};

use crate::counting::Counting;
use crate::counting::found::found_here;
use crate::events::{Door, EventSource};
use crate::thread::found::EventKind;
use crate::thread::life::current_state;
use crate::thread::{OwnState, ThreadState};

const fn kind(how: &'static str) -> EventKind {
    EventKind::new("alloc", "bytes", how)
}

static CLONE: EventKind = kind("clone");
static REFLECTION: EventKind = kind("reflection");
static JNI: EventKind = kind("JNI");
pub static VM: EventKind = kind("VM");

/// By the class whose native method makes the object.
const REFLECTING: [&str; 3] = [
    "java/lang/reflect/",
    "jdk/internal/reflect/",
    "java/lang/Class",
];

/// Objects that the VM makes for itself and for native code.
pub struct Objects;

impl EventSource for Objects {
    fn kind(&self) -> &'static Kind {
        &OBJECTS
    }

    fn events(&self) -> &'static [ti::jvmtiEvent] {
        &[ti::JVMTI_EVENT_VM_OBJECT_ALLOC]
    }

    fn capabilities(&self, wanted: &mut ti::jvmtiCapabilities) {
        wanted.set_can_generate_vm_object_alloc_events(true);
    }
}

pub fn callbacks<D: Door>(callbacks: &mut ti::jvmtiEventCallbacks) {
    callbacks.VMObjectAlloc = Some(made_by_vm::<D>);
}

extern "system" fn made_by_vm<D: Door>(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    _: jclass,
    bytes: i64,
) {
    D::told(OBJECTS.gate, env, thread, |counting, env, state| {
        let bytes = u64::try_from(bytes).unwrap_or(0);
        allocated(counting, env, state, object, bytes);
    });
}

/// The VM has made `object` in the current thread.
fn allocated(counting: &Counting, env: Env, state: &ThreadState, object: jobject, bytes: u64) {
    if let Some(how) = how(counting, env, object) {
        made(counting, env, state, (how, object, bytes));
    }
}

/// `None`: a hook counts it.
fn how(counting: &Counting, env: Env, object: jobject) -> Option<&'static EventKind> {
    let Some((method, _)) = counting.jvmti.frame(0) else {
        return Some(&VM);
    };
    let top = counting.frames.resolve(counting, env, method);
    let is_of = |prefix: &&str| top.class_name.starts_with(*prefix);
    let made = made_by(&top.class_name, &top.method_name);
    if made.is_some_and(|made| made.is(counting, env, object)) && has_hook(counting, env) {
        None
    } else if made == Some(Made::Copy) {
        Some(&CLONE)
    } else if REFLECTING.iter().any(is_of) {
        Some(&REFLECTION)
    } else {
        Some(&VM)
    }
}

/// What a native method makes that its caller counts. The VM tells of everything else that it makes meanwhile, too.
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
    fn is(self, counting: &Counting, env: Env, object: jobject) -> bool {
        let class = env.class_of(object);
        let signature = counting.jvmti.signature(class).unwrap_or_default();
        env.forget(class);
        match self {
            Made::Copy | Made::Texts => true,
            Made::Array => signature.starts_with('['),
            // What a class needs that is loaded for it are arrays, and the class.
            Made::Instance => !signature.starts_with('[') && signature != "Ljava/lang/Class;",
        }
    }
}

/// Whether the caller of the innermost frame counts what that frame makes.
fn has_hook(counting: &Counting, env: Env) -> bool {
    let caller = counting.jvmti.frame(1);
    caller.is_some_and(|(method, _)| {
        counting
            .frames
            .resolve(counting, env, method)
            .counts_what_it_makes
    })
}

fn made(
    counting: &Counting,
    env: Env,
    state: &ThreadState,
    (kind, object, bytes): (&'static EventKind, jobject, u64),
) {
    if let Some(found) = found_here(counting, env, state, (kind, object)) {
        found.count(counting, env, state, bytes);
    }
}

/// A JNI function has made a text, and the array that holds it.
pub fn text_made_by_jni(counting: &Counting, env: Env, text: jobject) {
    made_by_jni(counting, env, text);
    if let (Some(field), false) = (text_field(env), text.is_null()) {
        let array = env.get_object(text, field.id());
        made_by_jni(counting, env, array);
        env.forget(array);
    }
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

/// A JNI function has made an object for native code.
pub fn made_by_jni(counting: &Counting, env: Env, object: jobject) {
    if object.is_null() {
        return;
    }
    let bytes = counting.jvmti.object_size(object).unwrap_or(0);
    // Without a frame there is no context: the launcher prepares the call of `main`.
    let own = match counting.jvmti.frame(0) {
        None => OwnState::NONE,
        Some(_) => current_state(counting, env),
    };
    if let Some(state) = own.get() {
        made(counting, env, state, (&JNI, object, bytes));
    }
}
