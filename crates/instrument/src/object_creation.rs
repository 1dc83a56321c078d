//! Calls that make an object without an allocation instruction.
//!
//! | call | what makes the object | JDK |
//! |---|---|---|
//! | `Object.clone`, by `super.clone()` and of arrays | a native method, C1 and C2 by code of their own | 17, 21, 25 |
//! | `clone` of any other class | `Object.clone`, if the class has no method of its own | 17, 21, 25 |
//! | `Array.newArray` | a native method, C2 | 17, 21, 25 |
//! | `Array.multiNewArray` | a native method | 17, 21, 25 |
//! | `Unsafe.allocateInstance` | a native method, C2; behind every handle of a constructor, so behind every lambda that captures | 17, 21, 25 |
//! | `Unsafe.allocateUninitializedArray` | bytecode of `Unsafe`, which has no hooks, and C2; behind strings that are concatenated | 17, 21, 25 |
//! | `NullPointerException.getExtendedNPEMessage`, `BootLoader.getSystemPackageNames` | native methods: a text, an array of texts | 17, 21, 25 |
//! | `Thread.getStackTrace0` | a native method: an array of `StackTraceElement`s | 21, 25 |
//! | `newInstance0` of reflection | a native method | 17, 21, 25, by class: [`MAKING`] |
//!
//! Origin: all methods of `java.base` that return a reference and are native or have the annotation
//! `IntrinsicCandidate`, from the class files of these JDKs. Not in the list are:
//!
//! - Natives that return looked-up values (members, addresses, files) and make objects on the way, or that may return
//!   existing objects: `alloc=all` counts those.
//! - Methods with allocating bytecode that the compilers replace: see `INTRINSICS`.
//! - `BigInteger.implMultiplyToLen`, where C2 makes an array only if it was given none; it has no hooks.
//! - `DualPivotQuicksort.partition` (25), which makes an array of two numbers for each part that it sorts; it has no
//!   hooks.

use lucce_bytecode::{ClassFile, CodeScan, MethodCall};

use crate::api_calls::allocation_site_kind;
use crate::instrumentation::{HookPlace, HookSiteKind, ObjectCreation};
use crate::jdk::intrinsics::find_intrinsic;
use crate::jdk::leaf_methods::UNSAFE;

const ARRAY: &str = "java/lang/reflect/Array";

/// Natives that make an object and call its constructor, by calling class: in JDK 17, and in 21 for early calls; in 21
/// and 25.
pub const MAKING: &str = "newInstance0";

/// Returns which objects the call makes; `None`: the call is not in the table above.
pub fn object_creation(call: &MethodCall<'_>) -> Option<ObjectCreation> {
    let (owner, name, descriptor) = (&*call.owner, &*call.name, &*call.descriptor);
    match (owner, name) {
        (_, "clone") if descriptor == "()Ljava/lang/Object;" => clone_creation(call.opcode, owner),
        (ARRAY, "newArray") => Some(ObjectCreation::Reflected),
        (ARRAY, "multiNewArray") => Some(ObjectCreation::All),
        (UNSAFE, "allocateInstance" | "allocateUninitializedArray") => Some(ObjectCreation::Object),
        ("java/lang/NullPointerException", "getExtendedNPEMessage")
        | ("jdk/internal/loader/BootLoader", "getSystemPackageNames")
        | ("java/lang/Thread", "getStackTrace0") => Some(ObjectCreation::Texts),
        _ => None,
    }
}

/// Whether the VM records by this call where an exception is made, in arrays of its own (JDK 17, 21, 25).
pub fn fills_stack_trace(call: &MethodCall<'_>) -> bool {
    (&*call.owner, &*call.name, &*call.descriptor)
        == (
            "java/lang/Throwable",
            "fillInStackTrace",
            "(I)Ljava/lang/Throwable;",
        )
}

/// Returns the local that may hold the message, at the call in constructors of `Throwable` that records the trace.
pub fn message_local(
    class: &str,
    method: &str,
    descriptor: &str,
    call: &MethodCall<'_>,
) -> Option<u8> {
    let notes = (class, method) == ("java/lang/Throwable", "<init>")
        && (&*call.name, &*call.descriptor) == ("fillInStackTrace", "()Ljava/lang/Throwable;");
    // Local 0 is the exception itself, not a text.
    notes.then(|| u8::from(descriptor != "()V"))
}

fn clone_creation(opcode: u8, owner: &str) -> Option<ObjectCreation> {
    const INVOKEVIRTUAL: u8 = 182;
    const INVOKESPECIAL: u8 = 183;
    match opcode {
        _ if owner.starts_with('[') => Some(ObjectCreation::Object),
        INVOKESPECIAL if owner == "java/lang/Object" => Some(ObjectCreation::Object),
        INVOKEVIRTUAL => Some(ObjectCreation::Clone),
        _ => None,
    }
}

/// Returns the allocations of a method that traces omit.
pub fn unseen_places(class: &ClassFile<'_>, scan: &CodeScan<'_>) -> Vec<HookPlace> {
    /// Before this class-file version, code cannot load class constants.
    const NAMES_CLASSES: u16 = 49;
    if class.major() < NAMES_CLASSES {
        return Vec::new();
    }
    let places = scan.allocations.iter().map(|alloc| HookPlace {
        bci: alloc.bci,
        kind: allocation_site_kind(alloc),
    });
    let called = scan.calls.iter().filter_map(|call| {
        let copies = || {
            find_intrinsic(&call.owner, &call.name, &call.descriptor).map(HookSiteKind::Intrinsic)
        };
        let mark = object_creation(call)
            .map(HookSiteKind::Creation)
            .or_else(copies)?;
        Some(HookPlace {
            bci: call.bci,
            kind: mark,
        })
    });
    let mut places: Vec<HookPlace> = places.chain(called).collect();
    places.sort_by_key(|place| place.bci);
    places
}

#[cfg(test)]
mod object_creation_tests {
    use super::*;

    #[test]
    fn whoever_calls_the_method_of_object_clones() {
        let clone = |opcode, owner: &'static str| {
            object_creation(&MethodCall {
                bci: 0,
                opcode,
                owner: owner.into(),
                name: "clone".into(),
                descriptor: "()Ljava/lang/Object;".into(),
            })
        };
        assert_eq!(clone(183, "java/lang/Object"), Some(ObjectCreation::Object));
        assert_eq!(clone(182, "[I"), Some(ObjectCreation::Object));
        // An overriding method may be called, which calls this one.
        assert_eq!(clone(182, "java/lang/Object"), Some(ObjectCreation::Clone));
        assert_eq!(clone(182, "a/B"), Some(ObjectCreation::Clone));
        assert_eq!(clone(183, "a/B"), None);
    }
}
