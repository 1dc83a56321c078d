//! Defined classes without hooks.

use jvmti_bindings::sys::jni::jobject;
use lucce_jvmti::JniEnvironment;

use crate::counting::CountingParts;
use crate::events::class::DefinedClass;
use crate::hookless::stack_samples::{ShownFrame, WalkPosition, with_current};
use crate::memory::counter::increment_counter;

/// Records a class that the current thread has defined.
pub fn record_class(
    agent: CountingParts<'static>,
    env: JniEnvironment,
    thread: jobject,
    class: &DefinedClass,
) {
    let counted = with_current(agent, |local| {
        // Without a visible frame it has no context.
        let ShownFrame::Visible(number) =
            local.find_number((env, thread), WalkPosition::default())?
        else {
            return Some(());
        };
        let event = super::find_event_type(agent, env, class.loader, class.kind)?;
        local.count_event(env, thread, (number, event), class.bytes.into())?;
        match class.follow(agent, env, number) {
            Some(loader) => local.count_event(env, thread, (number, loader), 0),
            None => Some(()),
        }
    });
    if counted.flatten().is_none() {
        increment_counter(&agent.core.counts.events_dropped);
    }
}
