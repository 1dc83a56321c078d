//! Methods that the VM omits from stack traces.
//!
//! An agent without class files needs this list: JVMTI shows the methods, but no annotations.
//!
//! Origin: all methods of `java.base` with `@Hidden` in the class files of JDK 11, 17 and 25. A test compares the list.

/// Methods with `@Hidden` in JDK 17 and 25, by class. A pattern is a name, a name with its descriptor, or a prefix of a
/// name with `*`.
pub const HIDDEN: [(&str, &[&str]); 15] = [
    ("java/lang/ScopedValue$Carrier", &["runWith"]),
    ("java/lang/Thread", &["runWith"]),
    ("java/lang/VirtualThread$VThreadContinuation$1", &["run"]),
    (
        "java/lang/VirtualThread",
        &["yieldContinuation", "postPinnedEvent"],
    ),
    ("java/lang/invoke/Invokers", &["checkVarHandleGenericType"]),
    (
        "java/lang/invoke/LambdaForm$NamedFunction",
        &["invokeWithArguments*"],
    ),
    (
        "java/lang/invoke/LambdaForm",
        &["interpretName", "interpretWithArguments"],
    ),
    (
        "java/lang/invoke/MethodHandleImpl$CountingWrapper",
        &["getTarget", "maybeStopCounting"],
    ),
    (
        "java/lang/invoke/MethodHandleImpl",
        &[
            "guardWithCatch",
            "isCompileConstant",
            "loop",
            "prepend",
            "profileBoolean",
            "selectAlternative",
            "tableSwitch",
            "tryFinally",
        ],
    ),
    ("java/lang/invoke/VarHandleGuards", &["guard_*"]),
    (
        "jdk/internal/reflect/CsMethodAccessorAdapter",
        &["invoke(Ljava/lang/Object;[Ljava/lang/Object;Ljava/lang/Class;)Ljava/lang/Object;"],
    ),
    (
        "jdk/internal/reflect/DirectConstructorHandleAccessor",
        &["invokeImpl"],
    ),
    (
        "jdk/internal/reflect/DirectMethodHandleAccessor",
        &["invokeImpl"],
    ),
    (
        "jdk/internal/vm/Continuation",
        &["enter", "enter0", "yield", "yield0"],
    ),
    (
        "java/security/AccessController",
        &["executePrivileged", "ensureMaterializedForStackWalk"],
    ),
];
/// Hidden in one JDK only.
const HIDDEN_17: (&str, &[&str]) = ("java/security/AccessController", &["wrapException"]);
const HIDDEN_25: (&str, &[&str]) = ("java/lang/invoke/VarForm", &["getMemberName"]);
/// Not hidden in JDK 11.
const SHOWN_IN_11: [&str; 2] = [
    "java/lang/invoke/Invokers",
    "java/lang/invoke/VarHandleGuards",
];
/// Classes that hold only compiled forms of method handles.
const HOLDERS: (&str, &str) = ("java/lang/invoke/", "$Holder");

/// Whether the VM omits the method from stack traces. `release`: the JDK's feature version, such as 17.
pub fn is_hidden(release: u32, class: &str, method: &str, descriptor: &str) -> bool {
    let matches = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(prefix) => method.starts_with(prefix),
        None => pattern
            .strip_prefix(method)
            .is_some_and(|rest| rest.is_empty() || rest == descriptor),
    };
    let own = if release < 21 { HIDDEN_17 } else { HIDDEN_25 };
    if release < 17 && SHOWN_IN_11.contains(&class) {
        return false;
    }
    class.starts_with(HOLDERS.0) && class.ends_with(HOLDERS.1)
        || HIDDEN
            .iter()
            .chain([&own])
            .any(|(owner, names)| *owner == class && names.iter().any(matches))
}

#[cfg(test)]
mod hidden_tests {
    use super::*;

    #[test]
    fn hidden_methods_by_name_and_prefix() {
        let hidden = |class, method| is_hidden(17, class, method, "()V");
        assert!(hidden("java/lang/invoke/LambdaForm$Holder", "identity_L"));
        assert!(hidden("java/lang/invoke/VarHandleGuards", "guard_LL_V"));
        assert!(!hidden("java/lang/invoke/LambdaForm", "prepare"));
        assert!(!hidden("a/B$Holder", "get"));
        assert!(!hidden("java/lang/Thread", "run"));
        let guard = "java/lang/invoke/VarHandleGuards";
        assert!(!is_hidden(11, guard, "guard_LL_V", "()V"));
    }
}
