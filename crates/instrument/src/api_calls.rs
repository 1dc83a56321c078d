//! Classifies call sites: calls of lucce's API, natives that call back into Java, and definitions of hidden classes.

use lucce_bytecode::{AllocationInstruction, AllocationOpcode, MethodCall};

use crate::helpers::ClassDefinitionCall;
use crate::helpers::{DEFINE_ANONYMOUS_CLASS, DEFINE_CLASS_0};
use crate::instrumentation::HookSiteKind;
use crate::jdk::leaf_methods::UNSAFE;

const CONTEXT: &str = "io/lucce/CallContext";
const SCOPE_CLASS: &str = "io/lucce/CallContext$Scope";
/// Methods of lucce's API whose calls a hook replaces.
const API: [(&str, &str, &str, HookSiteKind); 4] = [
    (CONTEXT, "current", "()J", HookSiteKind::Current),
    (
        CONTEXT,
        "event",
        "(Ljava/lang/String;J)V",
        HookSiteKind::Event,
    ),
    (SCOPE_CLASS, "begin", "(J)V", HookSiteKind::Scope),
    (SCOPE_CLASS, "end", "()V", HookSiteKind::ScopeEnd),
];

const INVOKESTATIC: u8 = 184;

/// Returns the site kind of a call of lucce's API; `None`: it is another call.
pub fn api_site_kind(call: &MethodCall<'_>) -> Option<HookSiteKind> {
    let entry = API.iter().find(|(owner, name, descriptor, _)| {
        (*owner, *name, *descriptor) == (&*call.owner, &*call.name, &*call.descriptor)
            && call.opcode == INVOKESTATIC
    });
    entry.map(|(.., mark)| mark.clone())
}

/// Natives that call Java other than through JNI, by calling class and name. All are called from their own class only.
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

/// Returns the method by which the call defines a hidden class, or in JDK 11 one that is anonymous for the VM; `None`: it is
/// another call.
pub fn hidden_definition(call: &MethodCall<'_>) -> Option<ClassDefinitionCall> {
    match (&*call.owner, &*call.name, &*call.descriptor) {
        ("java/lang/ClassLoader", "defineClass0", DEFINE_CLASS_0) => {
            Some(ClassDefinitionCall::Hidden)
        }
        (UNSAFE, "defineAnonymousClass", DEFINE_ANONYMOUS_CLASS) => {
            Some(ClassDefinitionCall::Anonymous)
        }
        _ => None,
    }
}

/// Returns the site kind of an allocation instruction.
pub fn allocation_site_kind(alloc: &AllocationInstruction<'_>) -> HookSiteKind {
    match alloc.kind {
        AllocationOpcode::New => HookSiteKind::New(alloc.type_name.to_string()),
        AllocationOpcode::MultiANewArray => HookSiteKind::Arrays(alloc.type_name.to_string()),
        _ => HookSiteKind::Array(alloc.type_name.to_string()),
    }
}

#[cfg(test)]
pub mod api_calls_tests {
    use super::*;

    /// Returns a call of a static method without arguments.
    pub fn call(owner: &'static str, name: &'static str) -> MethodCall<'static> {
        MethodCall {
            bci: 0,
            opcode: 184,
            owner: owner.into(),
            name: name.into(),
            descriptor: "()V".into(),
        }
    }
}
