//! Classes that were loaded without the agent, into the book when one of their methods is first seen on
//! a stack.

use crate::agent::Agent;
use crate::book::{Loader, NewClass};
use crate::jvm::Jvmti;
use crate::planner::Shape;

use jvmti_bindings::sys::jni::jclass;

/// Methods that the VM leaves out of stack traces (`@Hidden`), by class: those of JDK 17 and 25. The
/// tool interface shows them, and says nothing of annotations. `*`: every prefix match.
const HIDDEN: [(&str, &[&str]); 16] = [
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
    ("java/lang/invoke/VarForm", &["getMemberName"]),
    ("java/lang/invoke/VarHandleGuards", &["guard_*"]),
    ("jdk/internal/reflect/CsMethodAccessorAdapter", &["invoke"]),
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
/// Classes that hold nothing but compiled forms of method handles.
const HOLDERS: (&str, &str) = ("java/lang/invoke/", "$Holder");

/// `None`: there are no ids left, or the VM does not say what is in the class.
pub fn add(agent: &Agent, class: jclass, loader: Loader, name: &str) -> Option<()> {
    let jvmti = agent.jvmti;
    let methods: Vec<Told> = jvmti
        .methods(class)
        .into_iter()
        .map(|method| told(jvmti, method))
        .collect::<Option<_>>()?;
    let shapes: Vec<Shape> = methods
        .iter()
        .map(|method| Shape::without_hooks(is_hidden(name, &method.name)))
        .collect();
    let methods: Vec<_> = methods
        .iter()
        .map(|told| (&*told.name, &*told.descriptor, told.access))
        .collect();
    let source = jvmti.source_file(class);
    let mut book = agent.book_mut();
    if book.class_named(loader, name).is_some() {
        // Another thread was faster.
        return Some(());
    }
    let new = NewClass {
        name,
        source: source.as_deref(),
        loader,
        methods: &methods,
        shapes: &shapes,
    };
    book.add(&new).map(drop)
}

struct Told {
    name: String,
    descriptor: String,
    access: u16,
}

fn told(jvmti: Jvmti, method: jvmti_bindings::sys::jni::jmethodID) -> Option<Told> {
    let (name, descriptor) = jvmti.method_name(method)?;
    let access = jvmti.modifiers(method);
    Some(Told {
        name,
        descriptor,
        access,
    })
}

fn is_hidden(class: &str, method: &str) -> bool {
    let matches = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(prefix) => method.starts_with(prefix),
        None => *pattern == method,
    };
    class.starts_with(HOLDERS.0) && class.ends_with(HOLDERS.1)
        || HIDDEN
            .iter()
            .any(|(owner, names)| *owner == class && names.iter().any(matches))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_methods_by_name_and_prefix() {
        assert!(is_hidden(
            "java/lang/invoke/LambdaForm$Holder",
            "identity_L"
        ));
        assert!(is_hidden("java/lang/invoke/VarHandleGuards", "guard_LL_V"));
        assert!(!is_hidden("java/lang/invoke/LambdaForm", "prepare"));
        assert!(!is_hidden("a/B$Holder", "get"));
        assert!(!is_hidden("java/lang/Thread", "run"));
    }
}
