//! Calls that reach no code of the program: if no class of the JDK is in scope, the caller need not publish a site.
//!
//! The methods cannot be overridden and call nothing on their arguments. The arguments are numbers, strings, arrays of
//! numbers, or objects that are only compared or read.
//! strings, arrays of numbers, or something that is only looked at.

use lucce_bytecode::MethodCall;

/// Final classes, and classes whose listed methods are static. Their methods are untracked if all parameter types are
/// harmless.
pub const CLASSES: [&str; 14] = [
    "java/lang/Boolean",
    "java/lang/Byte",
    "java/lang/Character",
    "java/lang/Double",
    "java/lang/Float",
    "java/lang/Integer",
    "java/lang/Long",
    "java/lang/Math",
    "java/lang/Short",
    "java/lang/StrictMath",
    "java/lang/String",
    "java/lang/StringBuffer",
    "java/lang/StringBuilder",
    "java/util/Arrays",
];

/// Exceptions: charsets, properties and threads may be the program's own classes.
const LOUD: [&str; 6] = [
    "getBoolean",
    "getInteger",
    "getLong",
    "getBytes",
    "parallelPrefix",
    "parallelSort",
];

/// Final methods that only read their arguments.
pub const METHODS: [(&str, &[&str]); 6] = [
    (
        "java/lang/Class",
        &[
            "cast",
            "getComponentType",
            "getName",
            "isArray",
            "isAssignableFrom",
            "isInstance",
            "isInterface",
            "isPrimitive",
        ],
    ),
    (
        "java/util/Objects",
        &["requireNonNull", "isNull", "nonNull"],
    ),
    ("java/util/concurrent/atomic/AtomicBoolean", &ATOMIC_VALUE),
    ("java/util/concurrent/atomic/AtomicInteger", &ATOMIC_NUMBER),
    ("java/util/concurrent/atomic/AtomicLong", &ATOMIC_NUMBER),
    ("java/util/concurrent/atomic/AtomicReference", &ATOMIC_VALUE),
];

const ATOMIC_VALUE: [&str; 6] = [
    "compareAndSet",
    "get",
    "getAndSet",
    "lazySet",
    "set",
    "weakCompareAndSet",
];

const ATOMIC_NUMBER: [&str; 12] = [
    "addAndGet",
    "compareAndSet",
    "decrementAndGet",
    "get",
    "getAndAdd",
    "getAndDecrement",
    "getAndIncrement",
    "getAndSet",
    "incrementAndGet",
    "lazySet",
    "set",
    "weakCompareAndSet",
];

/// Whether the call reaches no code outside the JDK.
pub fn is_untracked_call(call: &MethodCall<'_>) -> bool {
    let (owner, name) = (&*call.owner, &*call.name);
    if let Some((_, names)) = METHODS.iter().find(|(class, _)| *class == owner) {
        return names.contains(&name) && !call.descriptor.contains("Ljava/util/function/");
    }
    CLASSES.contains(&owner)
        && !LOUD.contains(&name)
        && !(owner == "java/lang/String" && name == "<init>" && call.descriptor.contains("[B"))
        && (name == "equals" && call.descriptor == "(Ljava/lang/Object;)Z"
            || has_harmless_parameters(&call.descriptor, owner))
}

/// Whether all parameters are numbers, strings, arrays of numbers, or of the owner's class.
fn has_harmless_parameters(descriptor: &str, owner: &str) -> bool {
    let parameters = descriptor.split(')').next().unwrap_or_default();
    let mut rest = parameters.trim_start_matches('(');
    while let Some(c) = rest.chars().next() {
        let used = match c {
            'L' => {
                let end = rest.find(';').unwrap_or(rest.len());
                let class = rest.get(1..end).unwrap_or_default();
                if class != "java/lang/String" && class != owner {
                    return false;
                }
                end + 1
            }
            '[' if rest.starts_with("[[") || rest.starts_with("[L") => return false,
            _ => 1,
        };
        rest = rest.get(used..).unwrap_or_default();
    }
    true
}

#[cfg(test)]
mod untracked_calls_tests {
    use super::*;

    fn call(
        owner: &'static str,
        name: &'static str,
        descriptor: &'static str,
    ) -> MethodCall<'static> {
        MethodCall {
            bci: 0,
            opcode: 182,
            owner: owner.into(),
            name: name.into(),
            descriptor: descriptor.into(),
        }
    }

    #[test]
    fn what_calls_nothing_that_it_is_given() {
        for (owner, name, descriptor) in [
            ("java/lang/String", "length", "()I"),
            ("java/lang/String", "equals", "(Ljava/lang/Object;)Z"),
            ("java/lang/String", "<init>", "([CII)V"),
            (
                "java/lang/StringBuilder",
                "append",
                "(Ljava/lang/String;)Ljava/lang/StringBuilder;",
            ),
            ("java/lang/Integer", "compareTo", "(Ljava/lang/Integer;)I"),
            ("java/util/Arrays", "fill", "([III)V"),
            (
                "java/util/Objects",
                "requireNonNull",
                "(Ljava/lang/Object;)Ljava/lang/Object;",
            ),
            ("java/util/concurrent/atomic/AtomicLong", "get", "()J"),
        ] {
            assert!(
                is_untracked_call(&call(owner, name, descriptor)),
                "{owner}.{name}{descriptor}"
            );
        }
    }

    #[test]
    fn what_may_call_the_program() {
        for (owner, name, descriptor) in [
            // toString, charAt, compare
            (
                "java/lang/String",
                "valueOf",
                "(Ljava/lang/Object;)Ljava/lang/String;",
            ),
            (
                "java/lang/String",
                "contains",
                "(Ljava/lang/CharSequence;)Z",
            ),
            (
                "java/lang/StringBuilder",
                "append",
                "(Ljava/lang/Object;)Ljava/lang/StringBuilder;",
            ),
            ("java/util/Arrays", "hashCode", "([Ljava/lang/Object;)I"),
            ("java/util/Arrays", "equals", "([[I[[I)Z"),
            // Charsets and properties of the program.
            ("java/lang/String", "getBytes", "(Ljava/lang/String;)[B"),
            ("java/lang/String", "<init>", "([BLjava/lang/String;)V"),
            (
                "java/lang/Integer",
                "getInteger",
                "(Ljava/lang/String;)Ljava/lang/Integer;",
            ),
            // Functions, and methods that can be overridden.
            (
                "java/util/concurrent/atomic/AtomicInteger",
                "getAndUpdate",
                "(Ljava/util/function/IntUnaryOperator;)I",
            ),
            (
                "java/util/Objects",
                "requireNonNull",
                "(Ljava/lang/Object;Ljava/util/function/Supplier;)Ljava/lang/Object;",
            ),
            ("java/util/Objects", "hashCode", "(Ljava/lang/Object;)I"),
            ("java/util/ArrayList", "size", "()I"),
        ] {
            assert!(
                !is_untracked_call(&call(owner, name, descriptor)),
                "{owner}.{name}{descriptor}"
            );
        }
    }
}
