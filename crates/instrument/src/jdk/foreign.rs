//! `java.lang.foreign`: the hidden classes by which Java code calls C functions, and C code calls Java methods.
//!
//! `BindingSpecializer` (JDK 21, 25) makes one class for each function type. Each has one method, which converts
//! arguments and result. C code calls an *upcall stub* below a downcall, below a native method, or on a native thread
//! without Java frames. JDK 17 has no such classes.

use lucce_bytecode::MethodCall;

use crate::instrumentation::FrameKind;

const DOWNCALL_STUB: &str = "jdk/internal/foreign/abi/DowncallStub";
const UPCALL_STUB: &str = "jdk/internal/foreign/abi/UpcallStub";
const METHOD: &str = "invoke";

/// Returns the frame kind of a stub's method. `class`: its `role_name`. `None`: the method is no stub.
pub fn stub_frame(class: &str, method: &str) -> Option<FrameKind> {
    match class {
        DOWNCALL_STUB if method == METHOD => Some(FrameKind::Downcall),
        UPCALL_STUB if method == METHOD => Some(FrameKind::Upcall),
        _ => None,
    }
}

/// Whether this call in a downcall stub calls the C function.
pub fn calls_function(call: &MethodCall<'_>) -> bool {
    (&*call.owner, &*call.name) == ("java/lang/invoke/MethodHandle", "invokeExact")
}

#[cfg(test)]
mod foreign_tests {
    use super::*;
    use crate::api_calls::api_calls_tests::call;

    #[test]
    fn only_the_methods_of_stubs_have_frames_of_their_own() {
        assert_eq!(
            stub_frame(DOWNCALL_STUB, "invoke"),
            Some(FrameKind::Downcall)
        );
        assert_eq!(stub_frame(UPCALL_STUB, "invoke"), Some(FrameKind::Upcall));
        assert_eq!(stub_frame(UPCALL_STUB, "<clinit>"), None);
        // The role name of a class of the program is empty.
        assert_eq!(stub_frame("", "invoke"), None);
        assert!(calls_function(&call(
            "java/lang/invoke/MethodHandle",
            "invokeExact"
        )));
        assert!(!calls_function(&call(
            "java/lang/invoke/MethodHandle",
            "invoke"
        )));
    }
}
