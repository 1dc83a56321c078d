//! Operators of Reactor and RxJava: their code continues where the program has assembled them.
//!
//! An operator is an object, made by a call such as `flux.map(…)`. When somebody subscribes, it makes a subscriber; signals
//! then call methods of the subscriber, on any thread. Each of these classes gets a field for the context in which its
//! object was made. At the entry of the methods that a subscription or a signal calls, the frame's caller becomes that
//! context: see `stack/assembly` in the agent.

use lucce_bytecode::{ClassFile, ClassFileMethod, CodeInsertion, CodeScan, MethodCall, NewField};

use crate::helpers::{BEFORE_SIGNAL, CREATE_OPERATOR, PUBLISH};

/// The packages of operators and their subscribers.
const PACKAGES: [&str; 4] = [
    "reactor/core/publisher/",
    "io/reactivex/rxjava3/internal/operators/",
    "io/reactivex/rxjava3/internal/observers/",
    "io/reactivex/rxjava3/internal/subscribers/",
];
/// Methods of operators that a subscription calls.
const SUBSCRIPTIONS: [&str; 3] = ["subscribe", "subscribeOrReturn", "subscribeActual"];
/// Methods of operators and subscribers that signals call, or threads of a scheduler.
const SIGNALS: [&str; 10] = [
    "call",
    "onComplete",
    "onError",
    "onNext",
    "onSubscribe",
    "onSuccess",
    "poll",
    "request",
    "run",
    "tryOnNext",
];
/// The field with the context.
const FIELD: &str = "$lucceOrigin";
const ACC_STATIC: u16 = 0x0008;
const ACC_INTERFACE: u16 = 0x0200;

/// What a hook in these classes means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AssemblyHook {
    /// In a constructor, behind the call of the superclass's.
    Create,
    /// At the entry of a method that a subscription or a signal calls.
    Signal,
}

/// Whether a subscription or a signal calls a method of this name in this class.
#[must_use]
pub fn is_signal_method(class: &str, method: &str) -> bool {
    (SIGNALS.contains(&method) || SUBSCRIPTIONS.contains(&method)) && is_operator_class(class)
}

fn is_operator_class(class: &str) -> bool {
    // `Flux` and its kind have factories, and pass subscriptions on.
    const BASES: [&str; 3] = ["Flux", "Mono", "ParallelFlux"];
    PACKAGES.iter().any(|package| {
        class
            .strip_prefix(package)
            .is_some_and(|name| !BASES.contains(&name))
    })
}

/// Whether the class has such methods, and constructors that can keep the context.
pub(crate) fn has_assembly_hooks(class: &ClassFile<'_>) -> bool {
    let is_hooked = |method: &ClassFileMethod<'_>| is_hooked_method(class.name(), method);
    class.access() & ACC_INTERFACE == 0
        && is_operator_class(class.name())
        && class.methods().iter().any(is_hooked)
}

/// Whether a method of a class with hooks has one at its entry.
pub(crate) fn is_hooked_method(class: &str, method: &ClassFileMethod<'_>) -> bool {
    method.access & ACC_STATIC == 0
        && method.code.is_some()
        && is_signal_method(class, &method.name)
}

/// Whether the call is the one that initializes the object of a constructor, which then keeps the context. The class has
/// hooks.
pub(crate) fn creates_operator(
    class: &ClassFile<'_>,
    (method, scan): (&ClassFileMethod<'_>, &CodeScan<'_>),
    call: &MethodCall<'_>,
) -> bool {
    let Some(parent) = class.super_name().filter(|_| method.name == "<init>") else {
        return false;
    };
    let is_super = |call: &MethodCall<'_>| call.name == "<init>" && call.owner == parent;
    let first = scan.calls.iter().find(|call| is_super(call));
    // An argument of that call may be such an object too. Fields get theirs behind it.
    let descriptor = format!("L{parent};");
    let makes_parent = || {
        let mut made = scan.allocations.iter();
        made.any(|made| made.bci < call.bci && made.type_name == descriptor)
    };
    first.is_some_and(|first| first.bci == call.bci) && !makes_parent()
}

/// Returns the insertions of a hook.
pub(crate) fn assembly_insertions(hook: AssemblyHook, site: i32) -> Vec<CodeInsertion<'static>> {
    match hook {
        AssemblyHook::Create => vec![
            CodeInsertion::Mark {
                helper: PUBLISH,
                site,
            },
            CodeInsertion::AfterStore {
                helper: CREATE_OPERATOR,
                site,
                field: FIELD,
            },
        ],
        AssemblyHook::Signal => vec![CodeInsertion::MarkOwnField {
            helper: BEFORE_SIGNAL,
            site,
            field: FIELD,
        }],
    }
}

/// Returns the fields to add to this class.
pub(crate) fn assembly_fields(class: &ClassFile<'_>) -> Option<NewField<'static>> {
    const PRIVATE_TRANSIENT_SYNTHETIC: u16 = 0x1082;
    has_assembly_hooks(class).then_some(NewField {
        name: FIELD,
        descriptor: "J",
        access: PRIVATE_TRANSIENT_SYNTHETIC,
    })
}

#[cfg(test)]
mod assembly_tests {
    use super::*;

    #[test]
    fn signals_are_methods_of_operators_alone() {
        assert!(is_signal_method(
            "reactor/core/publisher/FluxMap$MapSubscriber",
            "onNext"
        ));
        assert!(is_signal_method(
            "reactor/core/publisher/FluxMap",
            "subscribeOrReturn"
        ));
        assert!(!is_signal_method(
            "reactor/core/publisher/Flux",
            "subscribe"
        ));
        assert!(!is_signal_method(
            "reactor/core/publisher/FluxMap",
            "<init>"
        ));
        assert!(!is_signal_method("com/acme/Flux", "onNext"));
    }
}
