//! Allocating methods for which the JIT compiler may substitute its own code.

use lucce_bytecode::HelperMethod;

use crate::helpers::allocation;

/// An allocating method for which the JIT compiler may substitute its own code, without hooks.
///
/// The caller counts the allocation, whether the compiler substituted the method or not.
pub struct Intrinsic {
    pub class: &'static str,
    pub name: &'static str,
    pub descriptor: &'static str,
    /// The descriptor of the allocated type.
    pub allocates: &'static str,
    pub counting_helper: HelperMethod<'static>,
    /// The method that it calls to allocate.
    pub allocator: Option<&'static str>,
}

/// The n-th intrinsic (from 0) has the reserved site n + 1.
pub const INTRINSICS: [Intrinsic; 3] = [
    Intrinsic {
        class: "java/util/Arrays",
        name: "copyOf",
        descriptor: "([Ljava/lang/Object;ILjava/lang/Class;)[Ljava/lang/Object;",
        allocates: "[Ljava/lang/Object;",
        counting_helper: allocation("countCopy", "([Ljava/lang/Object;JI)V"),
        allocator: None,
    },
    Intrinsic {
        class: "java/util/Arrays",
        name: "copyOfRange",
        descriptor: "([Ljava/lang/Object;IILjava/lang/Class;)[Ljava/lang/Object;",
        allocates: "[Ljava/lang/Object;",
        counting_helper: allocation("countCopy", "([Ljava/lang/Object;JI)V"),
        allocator: None,
    },
    Intrinsic {
        class: "java/lang/StringUTF16",
        name: "toBytes",
        descriptor: "([CII)[B",
        allocates: "[B",
        counting_helper: allocation("countCopy", "([BJI)V"),
        allocator: Some("newBytesFor"),
    },
];

/// Returns the index in [`INTRINSICS`] of a method.
pub fn find_intrinsic(class: &str, name: &str, descriptor: &str) -> Option<usize> {
    INTRINSICS
        .iter()
        .position(|i| i.class == class && i.name == name && i.descriptor == descriptor)
}
