//! Methods of the JDK that run no Java code that can ask for a context.

use lucce_bytecode::MethodCall;

use crate::helpers::{HELPER_PREFIX, INHERITED};

pub const UNSAFE: &str = "jdk/internal/misc/Unsafe";
/// The one method of Unsafe that runs a program's code.
pub const INVOKE_CLEANER: &str = "invokeCleaner";

/// Methods that, whatever their arguments, run no Java code that has hooks or can ask for a context: natives that do
/// not call back.
///
/// `None`: every method of the class. Methods of `Math` are not listed: in the interpreter most of them call others.
pub const LEAVES: [(&str, Option<&[&str]>); 6] = [
    (UNSAFE, None),
    ("java/lang/Object", Some(&["<init>", "getClass"])),
    ("java/lang/Thread", Some(&["currentThread", "onSpinWait"])),
    (
        "java/lang/System",
        Some(&[
            "arraycopy",
            "nanoTime",
            "currentTimeMillis",
            "identityHashCode",
        ]),
    ),
    (
        "java/lang/Double",
        Some(&["doubleToRawLongBits", "longBitsToDouble"]),
    ),
    (
        "java/lang/Float",
        Some(&["floatToRawIntBits", "intBitsToFloat"]),
    ),
];

/// Whether the callee is a leaf method. A call of the helper class is an earlier hook.
pub fn is_leaf_call(call: &MethodCall<'_>) -> bool {
    is_leaf(&call.owner, &call.name)
        || call.owner.starts_with(HELPER_PREFIX)
        || call.name.starts_with(INHERITED)
}

/// Whether the callee is an integer method that calls nothing; known before its class is loaded. Entries are counted.
pub fn is_arithmetic(call: &MethodCall<'_>) -> bool {
    call.owner == "java/lang/Math"
        && matches!(&*call.name, "abs" | "max" | "min")
        && matches!(&*call.descriptor, "(I)I" | "(J)J" | "(II)I" | "(JJ)J")
}

/// Whether the callee reads a field of Flight Recorder, or is a native of it that calls nothing.
///
/// The methods that Flight Recorder's inserted code calls before an event call only these: see `recorder`.
pub fn is_recorder_leaf(call: &MethodCall<'_>) -> bool {
    const NATIVES: [&str; 5] = [
        "counterTime",
        "flush",
        "getClassId",
        "getStackTraceId",
        "getThreadId",
    ];
    const GETTERS: [&str; 6] = [
        "getThresholdTicks",
        "getStackTraceEnabled",
        "getStackTraceOffset",
        "isCommittable",
        "isRegistered",
        // JDK 11.
        "isCommitable",
    ];
    match &*call.owner {
        "jdk/jfr/internal/JVM" => NATIVES.contains(&&*call.name),
        "jdk/jfr/internal/PlatformEventType" => GETTERS.contains(&&*call.name),
        _ => false,
    }
}

/// Whether callers of this method publish no site.
pub fn is_leaf(class: &str, method: &str) -> bool {
    LEAVES.iter().any(|(owner, names)| {
        *owner == class
            && names.is_none_or(|names| names.contains(&method))
            && !(class == UNSAFE && method == INVOKE_CLEANER)
    })
}

/// Whether the callee is a leaf in the JDKs in which it is native.
///
/// `Unsafe`, which has no hooks, asks a class for its component type, and that method asks this one.
pub fn is_native_leaf(call: &MethodCall<'_>) -> bool {
    (&*call.owner, &*call.name) == ("java/lang/Class", "isArray")
}

#[cfg(test)]
mod leaf_methods_tests {
    use super::*;
    use crate::api_calls::api_calls_tests::call;

    #[test]
    fn calls_that_cannot_lead_to_an_event_are_not_marked() {
        assert!(is_leaf_call(&call("java/lang/Object", "<init>")));
        assert!(is_leaf_call(&call(UNSAFE, "putLong")));
        assert!(is_leaf_call(&call("java/lang/LucceRtNoop", "noop")));
        assert!(!is_leaf_call(&call("java/lang/Object", "toString")));
        assert!(!is_leaf_call(&call("java/lang/Math", "addExact")));
        assert!(!is_leaf_call(&call("java/lang/Math", "ceil")));
    }

    #[test]
    fn of_numbers_only_integers_are_compared_without_a_call() {
        let max = |descriptor: &'static str| MethodCall {
            descriptor: descriptor.into(),
            ..call("java/lang/Math", "max")
        };
        assert!(is_arithmetic(&max("(II)I")) && is_arithmetic(&max("(JJ)J")));
        assert!(!is_arithmetic(&max("(DD)D")) && !is_arithmetic(&call("java/lang/Math", "ceil")));
    }
}
