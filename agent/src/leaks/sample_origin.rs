//! Where a sampled object was allocated, and the event that a stream gets for it.

use jvmti_bindings::sys::jni::jclass;
use lucce_callgraph::ContextId;
use lucce_jvmti::JniEnvironment;

use crate::counting::{CountingParts, stream};
use crate::hookless::call_context;
use crate::hookless::stack_samples::ShownFrame;
use crate::leaks::sampled_objects::AllocationOrigin;
use crate::stack::current_location::{self, AllocationPlace};
use crate::stack::{contexts, verify};
use crate::thread::lifecycle::current_state;

/// The kind of followed objects.
const LEAK: &str = "leak";

/// The current thread's context. `Err`: the object is not the program's: it comes from a hook's slow path, or from the VM, where
/// no frame is visible.
pub fn current_context(
    agent: CountingParts<'static>,
    env: JniEnvironment,
) -> Result<Option<ContextId>, NotProgramContext> {
    if agent.core.is_hookless() {
        return match call_context::find_shown_number(agent, env, 0) {
            Some(ShownFrame::Visible(number)) => Ok(Some(number)),
            Some(ShownFrame::AllHidden) => Err(NotProgramContext),
            None => Ok(None),
        };
    }
    let own = current_state(agent.thread_parts(), env);
    let Some(state) = own.get() else {
        let has_frames = agent.core.jvmti.frame_location(0).is_some();
        return has_frames.then_some(None).ok_or(NotProgramContext);
    };
    match current_location::locate_allocation(agent.stack_parts(), env, state) {
        AllocationPlace::Ours | AllocationPlace::Nowhere => Err(NotProgramContext),
        AllocationPlace::Unknown => Ok(None),
        AllocationPlace::Here(here) => {
            let number = contexts::event_number(agent.stack_parts(), state, here);
            if state.countdown.count_event(agent.core.options.verify) {
                verify::compare_number(agent.stack_parts(), env, number, 0);
            }
            Ok(Some(number))
        }
    }
}

/// The object is not the program's.
pub struct NotProgramContext;

/// The context and type of an object. `None`: one of them is unknown.
pub fn allocation_origin(
    agent: CountingParts<'_>,
    context: Option<ContextId>,
    class: jclass,
) -> Option<AllocationOrigin> {
    let context = context?;
    let of = agent.core.jvmti.class_signature(class)?;
    (context != ContextId::UNKNOWN).then(|| AllocationOrigin {
        context,
        descriptor: of.into(),
    })
}

/// With `stream=on`, writes a followed object as an event.
pub fn stream_sample(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    place: &AllocationOrigin,
    size: u64,
) {
    if agent.core.streamer.is_none() {
        return;
    }
    let event = agent.find_or_add_event_type(LEAK, "bytes", &place.descriptor);
    let own = current_state(agent.thread_parts(), env);
    if let (Some(event), Some(state)) = (event, own.get()) {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        stream::record_event(agent, env, state, (event, place.context), size);
    }
}
