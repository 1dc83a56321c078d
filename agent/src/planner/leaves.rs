//! Methods of the JDK that run no Java code that could ask for a context.

use lucce_bytecode::Call;

/// Where entries are counted its methods are no leaves: without the compiler they call others.
pub const MATH: &str = "java/lang/Math";
pub const UNSAFE: &str = "jdk/internal/misc/Unsafe";
/// The one method of Unsafe that runs a program's code.
pub const INVOKE_CLEANER: &str = "invokeCleaner";

/// Methods that run no Java code that could ask for a context, whatever their arguments:
/// natives that do not call back, and intrinsics. `None`: every method of the class.
const LEAVES: [(&str, Option<&[&str]>); 6] = [
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
        "java/lang/Math",
        Some(&[
            "abs", "max", "min", "sqrt", "ceil", "floor", "fma", "sin", "cos",
        ]),
    ),
    (
        "java/lang/Float",
        Some(&["floatToRawIntBits", "intBitsToFloat"]),
    ),
];

pub fn is_leaf_call(call: &Call<'_>) -> bool {
    is_leaf(&call.owner, &call.name)
}

/// Whether nothing is said before calls of this method.
pub fn is_leaf(class: &str, method: &str) -> bool {
    LEAVES.iter().any(|(owner, names)| {
        *owner == class
            && names.is_none_or(|names| names.contains(&method))
            && !(class == UNSAFE && method == INVOKE_CLEANER)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::calls::tests::call;

    #[test]
    fn calls_that_cannot_lead_to_an_event_are_not_marked() {
        assert!(is_leaf_call(&call("java/lang/Object", "<init>")));
        assert!(is_leaf_call(&call(UNSAFE, "putLong")));
        assert!(!is_leaf_call(&call("java/lang/Object", "toString")));
        assert!(!is_leaf_call(&call("java/lang/Math", "addExact")));
    }
}
