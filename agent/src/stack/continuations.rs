//! Kotlin's coroutines: behind a suspension, a trace goes on at the callers that the suspended call had.
//!
//! A suspended call has left its thread's stack. A dispatcher runs the rest of it later, on any thread:
//!
//! ```text
//! leaf ← leaf$1.invokeSuspend ← resumeWith ← DispatchedTask.run ← Worker.run          what the VM shows
//! leaf ← leaf$1.invokeSuspend ← resumeWith ← service ← handler                         what the number decodes to
//! ```
//!
//! The state of the call, `leaf$1`, is created when the call begins. Its constructor's frame has a context, and the
//! object keeps that number. The callers of the constructor are `leaf`, whose frame continues, and the callers of
//! `leaf`. So the frame of `resumeWith` gets the context of a call from there, as `Scope.run` does.
//!
//! The builders of coroutines (`launch`, `async`) create a continuation in the same way. There the submission frame
//! of [`super::tasks`] comes between: the code that starts a coroutine is its origin, not its caller.
//!
//! If a continuation keeps no number, the trace ends with the frame of `unknown_caller`.
use lucce_callgraph::{ContextFrame, ContextId, MethodId};
use lucce_instrument::continuations::{CONTINUATION, RESUME, STARTS_COROUTINE};

use crate::registry::CodeRegistry;
use crate::stack::StackParts;
use crate::stack::context_memo::ContextMemo;
use crate::stack::marker_frames::{MarkerFrame, unknown_caller};
use crate::stack::tasks::{known_context, submitted_context};

/// The parameter of the constructor of [`CONTINUATION`].
const CONSTRUCTOR: (&str, &str) = ("<init>", "(Lkotlin/coroutines/Continuation;)V");
/// Packages of the code between a coroutine's builder and its first continuation.
const LIBRARIES: [&str; 2] = ["kotlin/coroutines/", "kotlinx/coroutines/"];
/// Methods of a lambda's class that create its continuation and call it.
const BEGINS_LAMBDA: [&str; 2] = ["create", "invoke"];
/// Maximum number of suspended calls in a trace. A call that never ends may suspend in itself without limit.
const MOST_SUSPENSIONS: usize = 64;

/// The contexts of resumed frames.
#[derive(Default)]
pub struct ContinuationContexts {
    /// By the number that a continuation keeps, and the resuming method.
    resumed: ContextMemo,
}

/// The context of the frame of `resume`, which runs a continuation that keeps `number`. `None`: contexts of this
/// tracking mode do not continue elsewhere.
pub fn resumed_context(
    agent: StackParts<'_>,
    number: ContextId,
    resume: MethodId,
) -> Option<ContextId> {
    if !agent.counters.tracking.is_lazy() {
        return None;
    }
    let resumed = &agent.stack.continuations.resumed;
    resumed.find_or_compute((number, resume), || {
        find_suspended_call(agent, number, resume)
            .and_then(|call| call.step_into(agent, resume))
            .or_else(|| step_from_unknown(agent, resume))
    })
}

/// The frame that called a suspended method, or that starts a coroutine.
struct LogicalCaller {
    context: ContextId,
    frame: ContextFrame,
    /// Whether it starts a coroutine.
    is_origin: bool,
}

impl LogicalCaller {
    fn step_into(self, agent: StackParts<'_>, resume: MethodId) -> Option<ContextId> {
        let LogicalCaller { context, frame, .. } = self;
        let encoder = &agent.core.encoder;
        match self.is_origin {
            true => {
                let number = known_context(encoder.encode_event(context, frame.site, frame.method));
                submitted_context(agent, number?, resume)
            }
            false => known_context(encoder.encode_call(context, frame.site, frame.method, resume)),
        }
    }
}

fn step_from_unknown(agent: StackParts<'_>, resume: MethodId) -> Option<ContextId> {
    let (root, MarkerFrame { method, site }) = unknown_caller(agent)?;
    known_context(agent.core.encoder.encode_call(root, site, method, resume))
}

/// The logical caller of the continuation that keeps `number`. `None`: it is not known, or too many calls are
/// suspended.
fn find_suspended_call(
    agent: StackParts<'_>,
    number: ContextId,
    resume: MethodId,
) -> Option<LogicalCaller> {
    let constructor = find_constructor(&agent.core.registry(), resume)?;
    let frames = agent
        .core
        .encoder
        .decode_context(number, constructor)
        .ok()?;
    let (at, is_origin) = {
        let registry = agent.core.registry();
        let names: Vec<FrameNames<'_>> = frames
            .iter()
            .map(|frame| FrameNames::from_registry(&registry, frame.method))
            .collect::<Option<_>>()?;
        let suspended = names.iter().filter(|names| names.is_resume()).count();
        if suspended >= MOST_SUSPENSIONS {
            return None;
        }
        let at = caller_position(&names);
        (at, is_started(names.get(at..)?))
    };
    let mut context = (number, constructor);
    for frame in frames.get(..at)? {
        let (caller, _) = agent
            .core
            .encoder
            .find_caller(context.0, context.1)
            .ok()??;
        context = (caller, frame.method);
    }
    let (context, frame) = agent
        .core
        .encoder
        .find_caller(context.0, context.1)
        .ok()??;
    Some(LogicalCaller {
        context,
        frame,
        is_origin,
    })
}

/// The constructor of the class whose method resumes continuations.
fn find_constructor(registry: &CodeRegistry, resume: MethodId) -> Option<MethodId> {
    let class = registry.class(registry.method(resume.0)?.class)?;
    let (name, descriptor) = CONSTRUCTOR;
    registry.find_method(class, name, descriptor).map(MethodId)
}

/// Class and name of a frame's method.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameNames<'r> {
    pub class: &'r str,
    pub method: &'r str,
}

impl<'r> FrameNames<'r> {
    pub fn from_registry(registry: &'r CodeRegistry, method: MethodId) -> Option<FrameNames<'r>> {
        let method = registry.method(method.0)?;
        Some(FrameNames {
            class: registry.name_text(registry.class(method.class)?.name),
            method: registry.name_text(method.name),
        })
    }

    pub fn is_constructor(&self) -> bool {
        self.method == "<init>"
    }

    fn is_resume(&self) -> bool {
        (self.class, self.method) == (CONTINUATION, RESUME)
    }
}

/// The position of the caller in the frames below the constructor of [`CONTINUATION`], innermost first: behind the
/// constructors of its subclasses, and behind what continues: the method whose class encloses that of the
/// continuation, or for a lambda the methods of its class that begin it.
fn caller_position(frames: &[FrameNames<'_>]) -> usize {
    let constructors = frames.iter().take_while(|frame| frame.is_constructor());
    let constructors = constructors.count();
    let class = frames.get(..constructors).and_then(<[_]>::last);
    let suspended = class.zip(frames.get(constructors));
    let Some((of, next)) = suspended else {
        return constructors;
    };
    if of.class != next.class {
        return constructors + usize::from(of.class.starts_with(next.class));
    }
    let begins =
        |frame: &&FrameNames<'_>| frame.class == of.class && BEGINS_LAMBDA.contains(&frame.method);
    let behind = frames.iter().skip(constructors);
    constructors + behind.take_while(begins).count()
}

/// Whether these callers of a continuation's first frame start a coroutine.
fn is_started(frames: &[FrameNames<'_>]) -> bool {
    let is_library = |frame: &&FrameNames<'_>| {
        LIBRARIES
            .iter()
            .any(|package| frame.class.starts_with(package))
            && frame.method != "invokeSuspend"
    };
    frames
        .iter()
        .take_while(is_library)
        .any(|frame| (frame.class, frame.method) == STARTS_COROUTINE)
}

/// Whether traces go on elsewhere below a frame of this method.
pub fn is_resume_method(registry: &CodeRegistry, method: u32) -> bool {
    FrameNames::from_registry(registry, MethodId(method)).is_some_and(|names| names.is_resume())
}

#[cfg(test)]
mod continuations_tests {
    use super::*;

    fn names(frames: &[&'static str]) -> Vec<FrameNames<'static>> {
        let split = |text: &&'static str| {
            let (class, method) = text.rsplit_once('.').unwrap();
            FrameNames { class, method }
        };
        frames.iter().map(split).collect()
    }

    #[test]
    fn a_suspended_call_continues_at_its_caller() {
        let frames = names(&[
            "kotlin/coroutines/jvm/internal/ContinuationImpl.<init>",
            "CoKt$leaf$1.<init>",
            "CoKt.leaf",
            "CoKt.service",
            "kotlinx/coroutines/AbstractCoroutine.start",
        ]);
        let at = caller_position(&frames);
        assert_eq!(at, 3);
        // It was called, whatever has started its callers.
        assert!(!is_started(&frames[at..]));
    }

    #[test]
    fn a_builder_is_an_origin() {
        let frames = names(&[
            "kotlin/coroutines/jvm/internal/ContinuationImpl.<init>",
            "kotlin/coroutines/jvm/internal/SuspendLambda.<init>",
            "CoKt$main$1.<init>",
            "CoKt$main$1.create",
            "CoKt$main$1.invoke",
            "kotlin/coroutines/intrinsics/IntrinsicsKt.createCoroutineUnintercepted",
            "kotlinx/coroutines/CoroutineStart.invoke",
            "kotlinx/coroutines/AbstractCoroutine.start",
            "kotlinx/coroutines/BuildersKt.launch",
            "CoKt.main",
        ]);
        let at = caller_position(&frames);
        assert_eq!(at, 5);
        assert!(is_started(&frames[at..]));
        // `withContext` calls its block.
        let block = names(&[
            "kotlinx/coroutines/BuildersKt.withContext",
            "CoKt.search",
            "kotlinx/coroutines/AbstractCoroutine.start",
        ]);
        assert!(!is_started(&block));
        // A block that the library runs in a coroutine of its own.
        let nested = names(&[
            "kotlinx/coroutines/BuildersKt.withContext",
            "kotlinx/coroutines/flow/FlowKt$1.invokeSuspend",
            "kotlinx/coroutines/AbstractCoroutine.start",
        ]);
        assert!(!is_started(&nested));
    }

    /// The continuation's class is in scope, the class of the suspended method is not.
    #[test]
    fn a_frame_of_another_class_is_the_caller() {
        let frames = names(&["a/B$leaf$1.<init>", "other/Caller.call"]);
        assert_eq!(caller_position(&frames), 1);
        assert_eq!(caller_position(&[]), 0);
    }
}
