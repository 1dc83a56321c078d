//! Operators of Reactor and RxJava: their code goes on where the program has assembled them.
//!
//! ```text
//! lambda ← MapSubscriber.onNext ← RangeSubscription.request ← … ← Thread.run      what the VM shows
//! lambda ← MapSubscriber.onNext ← ASSEMBLED ← Flux.map ← handler                  what the number decodes to
//! ```
//!
//! Constructors of operators and of their subscribers ask for the context of [`ASSEMBLED`], called where the object was
//! made. The object keeps that number. A subscriber is made by its operator, in a frame that has the operator's own
//! origin: then it shares the number. So a method of either gets its context by one transition, in Java code.
//!
//! An object without a number continues at `unknownCaller`, as do objects whose maker is not known.
use std::sync::OnceLock;

use lucce_callgraph::{ContextFrame, ContextId, MethodId};
use lucce_instrument::CLASS_INITIALIZER;
use lucce_instrument::assembly::is_signal_method;

use crate::registry::CodeRegistry;
use crate::stack::StackParts;
use crate::stack::context_memo::ContextMemo;
use crate::stack::continuations::FrameNames;
use crate::stack::marker_frames::{MarkerFrame, unknown_caller};
use crate::stack::tasks::known_context;

/// The frame between an operator's code and what made it. The decoder knows the same names.
const ASSEMBLED: (&str, &str) = ("java/lang/LucceRt$Tasks", "assembled");
/// Maximum number of assemblies in a trace. An operator may assemble itself again without limit.
const MOST_ASSEMBLIES: usize = 8;

/// The contexts of assemblies.
#[derive(Default)]
pub struct AssemblyContexts {
    /// By the context of a constructor's frame, and its method.
    known: ContextMemo,
    assembled: OnceLock<Option<MarkerFrame>>,
}

/// The frame [`ASSEMBLED`]. `None`: no ids are left.
pub fn assembled_frame(agent: StackParts<'_>) -> Option<MarkerFrame> {
    let assembled = &agent.stack.assembly.assembled;
    *assembled.get_or_init(|| MarkerFrame::register(agent, ASSEMBLED))
}

/// The context of the frame [`ASSEMBLED`] for an object, whose constructor's frame has this context. If that is unknown,
/// so is the caller of the frame. `None`: contexts of this tracking mode do not continue elsewhere.
pub fn assembly_context(
    agent: StackParts<'_>,
    context: ContextId,
    constructor: MethodId,
) -> Option<ContextId> {
    if !agent.counters.tracking.is_lazy() {
        return None;
    }
    let key = (context, constructor);
    let known = &agent.stack.assembly.known;
    // Only what is found is remembered: the next look may find more.
    known
        .find_or_compute(key, || find_assembly(agent, key))
        .or_else(|| unknown_assembly(agent))
}

fn unknown_assembly(agent: StackParts<'_>) -> Option<ContextId> {
    let assembled = assembled_frame(agent)?;
    let (root, MarkerFrame { method, site }) = unknown_caller(agent)?;
    let encoder = &agent.core.encoder;
    known_context(encoder.encode_call(root, site, method, assembled.method))
}

/// The context of a frame of `method`, whose object keeps no number.
pub fn unassembled_context(agent: StackParts<'_>, method: MethodId) -> Option<ContextId> {
    let assembled = assembled_frame(agent)?;
    let context = assembly_context(agent, ContextId::UNKNOWN, MethodId::EVENT)?;
    let encoder = &agent.core.encoder;
    known_context(encoder.encode_call(context, assembled.site, assembled.method, method))
}

fn find_assembly(agent: StackParts<'_>, key: (ContextId, MethodId)) -> Option<ContextId> {
    let assembled = assembled_frame(agent)?;
    let encoder = &agent.core.encoder;
    let frames = encoder.decode_context(key.0, key.1).ok()?;
    let is_assembled = |frame: &ContextFrame| frame.method == assembled.method;
    let at = maker_position(&agent.core.registry(), &frames)?;
    let (is_signal, is_shared) = {
        let registry = agent.core.registry();
        let maker = FrameNames::from_registry(&registry, frames.get(at)?.method)?;
        (maker.is_signal(), maker.method == CLASS_INITIALIZER)
    };
    // The maker runs for an operator that is assembled already.
    let is_own = is_signal && frames.get(at + 1).is_some_and(is_assembled);
    let assemblies = frames.iter().filter(|frame| is_assembled(frame)).count();
    // All code that needs such an object uses the one of the class: nobody has assembled it.
    if is_shared || !is_own && assemblies >= MOST_ASSEMBLIES {
        return unknown_assembly(agent);
    }
    let mut maker = key;
    for frame in frames.get(..at + usize::from(is_own))? {
        let (caller, _) = encoder.find_caller(maker.0, maker.1).ok()??;
        maker = (caller, frame.method);
    }
    let (caller, frame) = encoder.find_caller(maker.0, maker.1).ok()??;
    match is_own {
        true => Some(caller),
        false => {
            known_context(encoder.encode_call(caller, frame.site, frame.method, assembled.method))
        }
    }
}

/// The position of the frame that made the object, below the constructors of its subclasses, innermost first.
fn maker_position(registry: &CodeRegistry, frames: &[ContextFrame]) -> Option<usize> {
    let is_constructor = |frame: &ContextFrame| {
        FrameNames::from_registry(registry, frame.method)
            .is_some_and(|names| names.is_constructor())
    };
    frames.iter().position(|frame| !is_constructor(frame))
}

impl FrameNames<'_> {
    fn is_signal(&self) -> bool {
        is_signal_method(self.class, self.method)
    }
}

/// Whether traces may go on elsewhere below a frame of this method.
pub fn is_assembled_method(registry: &CodeRegistry, method: u32) -> bool {
    FrameNames::from_registry(registry, MethodId(method)).is_some_and(|names| names.is_signal())
}
