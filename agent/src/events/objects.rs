//! `events=alloc=all`: objects that the VM creates for itself and for native code.
//!
//! The VM reports the objects that its own methods create. The agent replaces the JNI functions that create objects
//! (`c/allocate.c`). A word after the class's name marks such objects. The VM also reports objects that Java code creates by
//! native methods (`lucce_instrument::object_creation`); a hook after the call counts those. Exceptions and their traces are
//! counted with `events=alloc` already (`exception_trace.rs`).
use std::sync::OnceLock;

use jvmti_bindings::sys::jni::jobject;
use jvmti_bindings::sys::jvmti as ti;
use lucce_instrument::EventKindInfo;
use lucce_instrument::kinds::{ALLOCATIONS, OBJECTS};
use lucce_jvmti::{FieldId, JniEnvironment};

use crate::counting::CountingParts;
use crate::counting::counter_lookup::find_counter_here;
use crate::events::EventSource;
use crate::thread::ThreadState;
use crate::thread::event_kind::EventKind;
use crate::thread::lifecycle::current_state;

const fn alloc_kind(how: &'static str) -> EventKind {
    EventKind::new(&ALLOCATIONS, how)
}

static CLONE: EventKind = alloc_kind("clone");
static REFLECTION: EventKind = alloc_kind("reflection");
static JNI: EventKind = alloc_kind("JNI");
/// Objects that the VM creates for itself.
pub static VM: EventKind = alloc_kind("VM");

/// Classes of reflection: their native methods create the objects.
const REFLECTING: [&str; 3] = [
    "java/lang/reflect/",
    "jdk/internal/reflect/",
    "java/lang/Class",
];

/// Objects that the VM creates for itself and for native code.
pub struct VmObjectSource;

impl EventSource for VmObjectSource {
    fn kind(&self) -> &'static EventKindInfo {
        &OBJECTS
    }

    fn vm_events(&self) -> &'static [ti::jvmtiEvent] {
        &[ti::JVMTI_EVENT_VM_OBJECT_ALLOC]
    }

    fn add_capabilities(&self, wanted: &mut ti::jvmtiCapabilities) {
        wanted.set_can_generate_vm_object_alloc_events(true);
    }
}

/// Counts an object that the VM has created in the current thread.
pub fn count_vm_object(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    object: jobject,
    bytes: u64,
) {
    if let Some(how) = find_vm_object_kind(agent, env, object) {
        count_object(agent, env, state, (how, object), bytes);
    }
}

/// The kind of the object. `None`: a hook counts it.
fn find_vm_object_kind(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    object: jobject,
) -> Option<&'static EventKind> {
    let Some((method, _)) = agent.core.jvmti.frame_location(0) else {
        return Some(&VM);
    };
    let top = agent
        .stack
        .frames
        .resolve_method(agent.stack_parts(), env, method);
    let is_of = |prefix: &&str| top.class_name.starts_with(*prefix);
    let allocation = classify_native_method(&top.class_name, &top.method_name);
    if is_counted_by_hook(agent, env, allocation, object) {
        None
    } else if allocation == Some(NativeAllocation::Copy) {
        Some(&CLONE)
    } else if REFLECTING.iter().any(is_of) {
        Some(&REFLECTION)
    } else {
        Some(&VM)
    }
}

/// Objects of a native method that a hook in its caller counts. The VM also reports everything else that the method creates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NativeAllocation {
    Copy,
    Array,
    Instance,
    Texts,
}

fn classify_native_method(class: &str, method: &str) -> Option<NativeAllocation> {
    match (class, method) {
        ("java/lang/Object", "clone") => Some(NativeAllocation::Copy),
        ("java/lang/reflect/Array", "newArray" | "multiNewArray") => Some(NativeAllocation::Array),
        ("jdk/internal/misc/Unsafe", "allocateInstance") => Some(NativeAllocation::Instance),
        ("jdk/internal/loader/BootLoader", "getSystemPackageNames")
        | ("java/lang/NullPointerException", "getExtendedNPEMessage") => {
            Some(NativeAllocation::Texts)
        }
        (class, "newInstance0") if class.starts_with("jdk/internal/reflect/") => {
            Some(NativeAllocation::Instance)
        }
        _ => None,
    }
}

impl NativeAllocation {
    fn matches_object(
        self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        object: jobject,
    ) -> bool {
        let class = env.class_of(object);
        let signature = agent.core.jvmti.class_signature(class).unwrap_or_default();
        env.delete_local(class);
        match self {
            NativeAllocation::Copy | NativeAllocation::Texts => true,
            NativeAllocation::Array => signature.starts_with('['),
            // A class that is loaded for it needs arrays and the `Class` object.
            NativeAllocation::Instance => {
                !signature.starts_with('[') && signature != "Ljava/lang/Class;"
            }
        }
    }
}

/// Whether a hook in the caller of the native method counts the object.
fn is_counted_by_hook(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    allocation: Option<NativeAllocation>,
    object: jobject,
) -> bool {
    allocation.is_some_and(|allocation| allocation.matches_object(agent, env, object))
        && has_hook(agent, env)
}

/// Whether the caller of the innermost frame has a hook that counts the frame's objects.
fn has_hook(agent: CountingParts<'_>, env: JniEnvironment) -> bool {
    let caller = agent.core.jvmti.frame_location(1);
    caller.is_some_and(|(method, _)| {
        agent
            .stack
            .frames
            .resolve_method(agent.stack_parts(), env, method)
            .counts_what_it_makes
    })
}

fn count_object(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    what: (&'static EventKind, jobject),
    bytes: u64,
) {
    if let Some(found) = find_counter_here(agent, env, state, what) {
        found.count_event(agent, env, state, bytes);
    }
}

/// Counts a string that a JNI function has created, and its array.
pub fn count_jni_string(agent: CountingParts<'_>, env: JniEnvironment, text: jobject) {
    count_jni_object(agent, env, text);
    if let (Some(field), false) = (find_value_field(env), text.is_null()) {
        let array = env.get_object(text, field.as_raw());
        count_jni_object(agent, env, array);
        env.delete_local(array);
    }
}

/// The field `String.value`.
fn find_value_field(env: JniEnvironment) -> Option<FieldId> {
    static FIELD: OnceLock<Option<FieldId>> = OnceLock::new();
    *FIELD.get_or_init(|| {
        let class = env.find_class(c"java/lang/String")?;
        let field = env.field_id(class, c"value", c"[B");
        env.delete_local(class);
        field.map(FieldId::new)
    })
}

/// Counts an object that a JNI function has created for native code.
pub fn count_jni_object(agent: CountingParts<'_>, env: JniEnvironment, object: jobject) {
    if object.is_null() {
        return;
    }
    // Without a frame there is no context: the launcher prepares the call of `main`.
    let Some((method, _)) = agent.core.jvmti.frame_location(0) else {
        return;
    };
    let top = agent
        .stack
        .frames
        .resolve_method(agent.stack_parts(), env, method);
    // JDK 11 makes the objects of `Unsafe.allocateInstance` by a JNI function.
    let allocation = classify_native_method(&top.class_name, &top.method_name);
    if is_counted_by_hook(agent, env, allocation, object) {
        return;
    }
    let bytes = agent.core.jvmti.object_size(object).unwrap_or(0);
    if let Some(state) = current_state(agent.thread_parts(), env).get() {
        count_object(agent, env, state, (&JNI, object), bytes);
    }
}
