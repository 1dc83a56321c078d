//! Exceptions without hooks: thrown by bytecode, by native methods and by the VM itself, as caught or uncaught.

use jvmti_bindings::sys::jni::jobject;
use lucce_jvmti::JniEnvironment;

use crate::counting::CountingParts;
use crate::events::exception::{BytecodeLocation, CAUGHT, UNCAUGHT, find_catch_type};
use crate::hookless::stack_samples::{ShownFrame, WalkPosition, with_current};
use crate::memory::counter::increment_counter;

/// Records an exception that the current thread throws.
pub fn record_exception(
    agent: CountingParts<'static>,
    env: JniEnvironment,
    (thread, exception): (jobject, jobject),
    catch: Option<BytecodeLocation>,
) {
    if count_exception(agent, env, (thread, exception), catch).is_none() {
        increment_counter(&agent.core.counts.events_dropped);
    }
}

/// `None`: the event is dropped.
fn count_exception(
    agent: CountingParts<'static>,
    env: JniEnvironment,
    (thread, exception): (jobject, jobject),
    catch: Option<BytecodeLocation>,
) -> Option<()> {
    let kind = if catch.is_some() { &CAUGHT } else { &UNCAUGHT };
    with_current(agent, |local| {
        // Without a visible frame it has no context.
        let ShownFrame::Visible(number) =
            local.find_number((env, thread), WalkPosition::default())?
        else {
            return Some(());
        };
        let event = super::find_event_type(agent, env, exception, kind)?;
        local.count_event(env, thread, (number, event), 0)?;
        let Some(catch) = catch else {
            return Some(());
        };
        let frames = &agent.stack.frames;
        let handler = frames.resolve_method(agent.stack_parts(), env, catch.0);
        match find_catch_type(agent, env, exception, (&handler, catch)) {
            Some(event) => local.count_event(env, thread, (number, event), 0),
            None => Some(()),
        }
    })?
}
