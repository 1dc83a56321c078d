//! Frames that no program has. They stand between a frame and callers that are not on its stack, or that are not known.

use std::sync::OnceLock;

use lucce_callgraph::{ContextId, MethodId, SiteId};
use lucce_instrument::MethodInstrumentation;

use crate::registry::{ClassDefinition, ClassLoaderId, NO_LINE};
use crate::stack::StackParts;

/// The outermost frame of a trace whose logical callers are not known. The decoder knows the same names.
const UNKNOWN_CALLER: (&str, &str) = ("java/lang/LucceRt$Tasks", "unknownCaller");
/// Stands between the outermost frame whose logical caller is not known, and the frames of its thread. The decoder knows
/// the same names.
const THREAD_CALLER: (&str, &str) = ("java/lang/LucceRt$Tasks", "threadCaller");

/// The frames that say that a caller is not known, each registered at its first use.
#[derive(Default)]
pub struct UnknownCallers {
    unknown_caller: OnceLock<Option<MarkerFrame>>,
    thread_caller: OnceLock<Option<MarkerFrame>>,
}

impl UnknownCallers {
    /// Whether this is the method of the frame of [`unknown_caller`].
    pub fn is_unknown_caller(&self, method: MethodId) -> bool {
        let unknown = self.unknown_caller.get().copied().flatten();
        unknown.is_some_and(|unknown| unknown.method == method)
    }
}

/// The outermost frame of a trace whose logical callers are not known, and its context. `None`: no ids are left.
pub fn unknown_caller(agent: StackParts<'_>) -> Option<(ContextId, MarkerFrame)> {
    let unknown = &agent.stack.unknown_callers.unknown_caller;
    let frame = (*unknown.get_or_init(|| MarkerFrame::register(agent, UNKNOWN_CALLER)))?;
    let root = agent.core.encoder.root_context(frame.method);
    (root != ContextId::UNKNOWN).then_some((root, frame))
}

/// The frame before those of a thread, whose callee has another caller, which is not known. `None`: no ids are left.
pub fn thread_caller(agent: StackParts<'_>) -> Option<MarkerFrame> {
    let thread_caller = &agent.stack.unknown_callers.thread_caller;
    *thread_caller.get_or_init(|| MarkerFrame::register(agent, THREAD_CALLER))
}

/// A frame that no program has, such as the separating frame.
#[derive(Clone, Copy)]
pub struct MarkerFrame {
    pub method: MethodId,
    pub site: SiteId,
}

impl MarkerFrame {
    /// Registers the class and method with these names. `None`: no ids are left.
    pub fn register(agent: StackParts<'_>, (class, method): (&str, &str)) -> Option<MarkerFrame> {
        let ids = agent.core.registry_mut().add_class(&ClassDefinition {
            name: class,
            source: None,
            loader: ClassLoaderId::BOOT,
            methods: &[(method, "()V", 0)],
            instrumentations: &[MethodInstrumentation::without_hooks(false)],
        })?;
        let site = agent.core.find_or_add_site(ids.first_method, NO_LINE);
        (site != 0).then_some(MarkerFrame {
            method: MethodId(ids.first_method),
            site: SiteId(site),
        })
    }
}
