//! What a call is: one of the API, one that parks, starts, makes an object, defines a class.

use lucce_bytecode::{Alloc, AllocKind, Call, Helper, Method, Scan};

use crate::helpers::{DEFINE_CLASS_0, event};
use crate::jdk::leaves::UNSAFE;
use crate::shape::Mark;

const CONTEXT: &str = "io/lucce/CallContext";
const SCOPE_CLASS: &str = "io/lucce/CallContext$Scope";
/// Calls of methods that programs call which a hook replaces.
const API: [(&str, &str, &str, Mark); 4] = [
    (CONTEXT, "current", "()J", Mark::Current),
    (CONTEXT, "event", "(Ljava/lang/String;J)V", Mark::Event),
    (SCOPE_CLASS, "begin", "(J)V", Mark::Scope),
    (SCOPE_CLASS, "end", "()V", Mark::ScopeEnd),
];

const INVOKESTATIC: u8 = 184;

pub fn api_mark(call: &Call<'_>) -> Option<Mark> {
    let known = API.iter().find(|(owner, name, descriptor, _)| {
        (*owner, *name, *descriptor) == (&*call.owner, &*call.name, &*call.descriptor)
            && call.opcode == INVOKESTATIC
    });
    known.map(|(.., mark)| mark.clone())
}

/// What parks the current thread: class and method, and the helper in its place. Whoever implements
/// the one of virtual threads is counted by its caller.
const PARKS: [(&str, &str, &str, Helper<'static>); 3] = [
    (
        UNSAFE,
        "park",
        "(ZJ)V",
        event("park", "(Ljdk/internal/misc/Unsafe;ZJJI)V"),
    ),
    (
        THREADS,
        "parkVirtualThread",
        "()V",
        event("park", "(Ljdk/internal/access/JavaLangAccess;JI)V"),
    ),
    (
        THREADS,
        "parkVirtualThread",
        "(J)V",
        event("park", "(Ljdk/internal/access/JavaLangAccess;JJI)V"),
    ),
];
const THREADS: &str = "jdk/internal/access/JavaLangAccess";
const IMPLEMENTS_PARKING: &str = "java/lang/";

pub fn park(class: &str, call: &Call<'_>) -> Option<Helper<'static>> {
    // Others than classes of the JDK, which have no name here, must not call these.
    if class.is_empty() || class.starts_with(IMPLEMENTS_PARKING) {
        return None;
    }
    let found = PARKS.iter().find(|(owner, name, descriptor, _)| {
        call.owner == *owner && call.name == *name && call.descriptor == *descriptor
    });
    found.map(|park| park.3)
}

/// Whether a method may wait for a lock by itself.
pub fn waits(class: &str, method: &Method<'_>, scan: &Scan<'_>) -> bool {
    const SYNCHRONIZED: u16 = 0x20;
    method.access & SYNCHRONIZED != 0
        || !scan.monitors.is_empty()
        || scan.calls.iter().any(|call| park(class, call).is_some())
}

/// In methods of these classes named `start`, a call of the method is what starts the thread.
const STARTING: [(&str, &str); 4] = [
    ("java/lang/Thread", "start0"),
    ("java/lang/VirtualThread", "submitRunContinuation"),
    ("java/lang/VirtualThread", "externalSubmitRunContinuation"),
    (
        "java/lang/VirtualThread",
        "externalSubmitRunContinuationOrThrow",
    ),
];

pub fn starts(class: &str, method: &Method<'_>, call: &Call<'_>) -> bool {
    method.name == "start" && call.owner == class && STARTING.contains(&(class, &*call.name))
}

/// Natives that call Java by other ways than JNI; all are called from their own class.
pub const BRACKETED: [(&str, &str); 4] = [
    ("jdk/internal/reflect/NativeMethodAccessorImpl", "invoke0"),
    (
        "jdk/internal/reflect/NativeConstructorAccessorImpl",
        "newInstance0",
    ),
    (
        "jdk/internal/reflect/DirectMethodHandleAccessor$NativeAccessor",
        "invoke0",
    ),
    (
        "jdk/internal/reflect/DirectConstructorHandleAccessor$NativeAccessor",
        "newInstance0",
    ),
];

/// A call of `ClassLoader.defineClass0`.
pub fn defines_hidden(call: &Call<'_>) -> bool {
    call.owner == "java/lang/ClassLoader"
        && call.name == "defineClass0"
        && call.descriptor == DEFINE_CLASS_0
}

pub fn alloc_mark(alloc: &Alloc<'_>) -> Mark {
    match alloc.kind {
        AllocKind::New => Mark::New(alloc.type_name.to_string()),
        AllocKind::MultiANewArray => Mark::Arrays(alloc.type_name.to_string()),
        _ => Mark::Array(alloc.type_name.to_string()),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Of a static method without arguments.
    pub fn call(owner: &'static str, name: &'static str) -> Call<'static> {
        Call {
            bci: 0,
            opcode: 184,
            owner: owner.into(),
            name: name.into(),
            descriptor: "()V".into(),
        }
    }

    #[test]
    fn parking_of_virtual_threads_is_counted_once() {
        let mut park = call(UNSAFE, "park");
        park.descriptor = "(ZJ)V".into();
        let found = |class| super::park(class, &park).is_some();
        assert!(found("java/util/concurrent/locks/LockSupport"));
        assert!(!found("java/lang/VirtualThread"));
    }
}
