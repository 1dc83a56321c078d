//! Contexts of frames: numbers of the graph, or the values that the tracking keeps instead.

use lucce_callgraph::{ContextId, MethodId, SiteId};

use crate::core::EventLocation;
use crate::stack::{StackParts, tasks};
use crate::thread::ThreadState;

/// The context of a frame of `callee`, called from `from`. `None`: it has no number.
pub fn step_context(
    agent: StackParts<'_>,
    state: &ThreadState,
    from: EventLocation,
    callee: MethodId,
) -> Option<u64> {
    let place = (from.context, from.site);
    agent
        .counters
        .tracking
        .step_to_callee(&state.tracking, place, callee, || {
            let caller = ContextId(from.context);
            let encoder = &agent.core.encoder;
            known_context(encoder.encode_call(caller, from.site, from.method, callee))
        })
}

/// The context of a thread's first frame.
pub fn first_context(agent: StackParts<'_>, state: &ThreadState, method: MethodId) -> Option<u64> {
    let entry = (0, SiteId::ENTRY);
    agent
        .counters
        .tracking
        .step_to_callee(&state.tracking, entry, method, || {
            known_context(tasks::first_context(agent, state, method))
        })
}

/// The number of a frame's context. `context` is the value that the tracking mode keeps for the frame.
pub fn context_number(agent: StackParts<'_>, state: &ThreadState, context: u64) -> ContextId {
    agent
        .counters
        .tracking
        .resolve_number(agent.core, &state.tracking, context)
}

/// The number of an event at `here`. [`ContextId::UNKNOWN`] if no numbers are left.
pub fn event_number(agent: StackParts<'_>, state: &ThreadState, here: EventLocation) -> ContextId {
    let frame = context_number(agent, state, here.context);
    match frame {
        ContextId::UNKNOWN => frame,
        _ => agent
            .core
            .encoder
            .encode_event(frame, here.site, here.method),
    }
}

fn known_context(id: ContextId) -> Option<u64> {
    (id != ContextId::UNKNOWN).then_some(id.0)
}
