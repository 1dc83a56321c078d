//! The contexts of frames, in whichever way they are kept.

use lucce_callgraph::{ContextId, MethodId, SiteId};

use crate::core::Here;
use crate::stack::{Stack, tasks};
use crate::thread::ThreadState;

/// The context of a frame of `callee`, called from `from`. `None`: there is no number for it.
pub fn step(stack: &Stack, state: &ThreadState, from: Here, callee: MethodId) -> Option<u64> {
    let compared = stack
        .comparison
        .step_from(|| state.compared(), from, callee);
    compared.unwrap_or_else(|| {
        let caller = ContextId(from.context);
        known(stack.encoder.step(caller, from.site, from.method, callee))
    })
}

/// The context of a thread's first frame.
pub fn first(stack: &Stack, state: &ThreadState, method: MethodId) -> Option<u64> {
    let entry = (0, SiteId::ENTRY);
    let compared = stack.comparison.step(|| state.compared(), entry, method);
    compared.unwrap_or_else(|| known(tasks::first(stack, state, method)))
}

/// The number of a frame's context, which is kept as `context`.
pub fn number(stack: &Stack, state: &ThreadState, context: u64) -> ContextId {
    let compared = stack.comparison.number(stack, || state.compared(), context);
    compared.unwrap_or(ContextId(context))
}

/// The number for an event at a place; unknown if no numbers are left.
pub fn event(stack: &Stack, state: &ThreadState, here: Here) -> ContextId {
    let frame = number(stack, state, here.context);
    match frame {
        ContextId::UNKNOWN => frame,
        _ => stack.encoder.event(frame, here.site, here.method),
    }
}

fn known(id: ContextId) -> Option<u64> {
    (id != ContextId::UNKNOWN).then_some(id.0)
}
