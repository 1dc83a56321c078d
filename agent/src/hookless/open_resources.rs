//! Resources without other hooks: their openings, by the VM's own stack.
//!
//! `session::method_hooks` puts the hooks into a running JVM.

use jvmti_bindings::sys::jni::jobject;
use lucce_jvmti::JniEnvironment;

use crate::counting::CountingParts;
use crate::events::open::{OPENING, follow_resource, is_open};
use crate::hookless::call_context::{find_number_in_thread, with_current_thread};
use crate::hookless::find_event_type;
use crate::hookless::stack_samples::{ShownFrame, with_current};
use crate::memory::counter::increment_counter;

/// Traces omit the hook's own frame, as those of all helper classes.
const OWN_FRAMES: usize = 0;

/// The current thread has opened the object.
pub fn open_resource(agent: CountingParts<'static>, env: JniEnvironment, object: jobject) {
    if is_open(agent, object) {
        return;
    }
    let counted = with_current_thread(agent, env, |thread| {
        let number = match find_number_in_thread(agent, (env, thread), OWN_FRAMES)? {
            ShownFrame::Visible(number) => number,
            // Traces omit the method.
            ShownFrame::AllHidden => return Some(()),
        };
        let event = find_event_type(agent, env, object, &OPENING)?;
        with_current(agent, |local| {
            let id = local.find_thread_id(env, thread);
            follow_resource(agent, env, object, (number, event), id.unwrap_or_default())?;
            local.count_event(env, thread, (number, event), 0)
        })?
    });
    if counted.is_none() {
        increment_counter(&agent.core.counts.events_dropped);
    }
}
