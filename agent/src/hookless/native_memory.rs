//! Memory outside of the heap without hooks: the VM walks the stack of the thread that allocates it.

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::ContextId;
use lucce_jvmti::JniEnvironment;

use crate::counting::CountingParts;
use crate::hookless::call_context::{find_number_in_thread, with_current_thread};
use crate::hookless::stack_samples::{ShownFrame, with_current};
use crate::memory::counter::increment_counter;
use crate::thread::event_kind::EventKind;

/// Counts memory that the current thread has allocated. `None`: the context is unknown.
pub fn count_allocation(
    agent: CountingParts<'static>,
    env: JniEnvironment,
    (kind, bytes): (&'static EventKind, u64),
) -> Option<ContextId> {
    with_current_thread(agent, env, |thread| {
        let counted = count_in_thread(agent, (env, thread), (kind, bytes));
        if counted.is_none() {
            increment_counter(&agent.core.counts.events_dropped);
        }
        counted?
    })
}

/// `None`: the event is dropped; `Some(None)`: the thread has no frame that traces show.
fn count_in_thread(
    agent: CountingParts<'static>,
    (env, thread): (JniEnvironment, jobject),
    (kind, bytes): (&'static EventKind, u64),
) -> Option<Option<ContextId>> {
    let ShownFrame::Visible(number) = find_number_in_thread(agent, (env, thread), 0)? else {
        return Some(None);
    };
    let event = super::find_event_type(agent, env, std::ptr::null_mut(), kind)?;
    let counter = (number, event);
    with_current(agent, |local| {
        local.count_event(env, thread, counter, bytes)
    })??;
    Some(Some(number))
}
