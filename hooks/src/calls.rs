//! What a call is: one of the API, one with a bracket, one that defines a class.

use lucce_bytecode::{Alloc, AllocKind, Call};

use crate::helpers::DEFINE_CLASS_0;
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
}
