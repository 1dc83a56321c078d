//! Kotlin's continuations: where the state of a suspended call is created, and where it continues.
//!
//! A continuation keeps the context of its constructor's frame, in a field that is added to the base class. Whoever
//! resumes it, its frames then continue at the caller that the suspended call had: see `stack/continuations` in the
//! agent.

use lucce_bytecode::{CodeInsertion, MethodCall, NewField};

use crate::helpers::{BEFORE_RESTRICTED, BEFORE_RESUME, CREATE_CONTINUATION};

/// The base class of all continuations that the Kotlin compiler makes.
pub const CONTINUATION: &str = "kotlin/coroutines/jvm/internal/BaseContinuationImpl";
/// The method that runs a continuation and, when that has ended, the continuations of its callers.
pub const RESUME: &str = "resumeWith";
/// Continuations of generators. Their consumer calls them directly, so its frames are their callers.
const RESTRICTED: &str = "kotlin/coroutines/jvm/internal/RestrictedContinuationImpl";
/// The field of [`CONTINUATION`] with the context.
const FIELD: &str = "$lucceOrigin";

/// All builders of coroutines that run concurrently to their caller call this method.
pub const STARTS_COROUTINE: (&str, &str) = ("kotlinx/coroutines/AbstractCoroutine", "start");

/// Whether the logical callers of suspended calls depend on this class. It is in scope whatever the user selects.
#[must_use]
pub fn is_continuation_class(class: &str) -> bool {
    [CONTINUATION, RESTRICTED, STARTS_COROUTINE.0].contains(&class)
}

/// What a call in the classes of continuations means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContinuationCall {
    /// In the constructor of each continuation.
    Create,
    /// In the constructor of a generator's continuation, before `Create`.
    CreateRestricted,
    /// A continuation is about to run.
    Resume,
}

/// Returns what a call in this method means; `None`: nothing.
pub(crate) fn find_continuation_call(
    (class, method): (&str, &str),
    call: &MethodCall<'_>,
) -> Option<ContinuationCall> {
    match (class, method, &*call.owner, &*call.name) {
        (CONTINUATION, "<init>", "java/lang/Object", "<init>") => Some(ContinuationCall::Create),
        (RESTRICTED, "<init>", CONTINUATION, "<init>") => Some(ContinuationCall::CreateRestricted),
        (CONTINUATION, RESUME, CONTINUATION, "invokeSuspend") => Some(ContinuationCall::Resume),
        _ => None,
    }
}

/// Returns the hooks of the call.
pub(crate) fn continuation_insertion(call: ContinuationCall, site: i32) -> CodeInsertion<'static> {
    match call {
        ContinuationCall::Create => CodeInsertion::AfterStore {
            helper: CREATE_CONTINUATION,
            site,
            field: FIELD,
        },
        ContinuationCall::CreateRestricted => CodeInsertion::Mark {
            helper: BEFORE_RESTRICTED,
            site,
        },
        ContinuationCall::Resume => CodeInsertion::MarkReceiverField {
            helper: BEFORE_RESUME,
            site,
            field: FIELD,
        },
    }
}

/// Returns the fields to add to this class.
pub(crate) fn continuation_fields(class: &str) -> Option<NewField<'static>> {
    // The class is serializable, and its default version ignores private transient fields.
    const PRIVATE_TRANSIENT_SYNTHETIC: u16 = 0x1082;
    (class == CONTINUATION).then_some(NewField {
        name: FIELD,
        descriptor: "J",
        access: PRIVATE_TRANSIENT_SYNTHETIC,
    })
}
