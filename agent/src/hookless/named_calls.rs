//! Named methods without other hooks: their calls, by the VM's own stack, and the times within them.
//!
//! `session::method_hooks` puts the hooks into a running JVM.

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::ContextId;
use lucce_instrument::kinds::{CALL, NAMED_TIME};
use lucce_jvmti::{JniEnvironment, clock};

use crate::counting::CountingParts;
use crate::counting::method_times::{LONGEST_TIME, find_time_type, time_index};
use crate::hookless::call_context::{find_number_in_thread, with_current_thread};
use crate::hookless::stack_samples::{ShownFrame, with_current};
use crate::hookless::thread_storage;
use crate::memory::counter::increment_counter;
use crate::thread::open_times::OpenMethodTime;

/// Traces omit the hook's own frame, as those of all helper classes.
const OWN_FRAMES: usize = 0;

/// A named method whose hook reports a call.
#[derive(Clone, Copy)]
pub struct NamedCall {
    pub method: u32,
    pub is_timed: bool,
}

/// Counts a call that begins in the current thread. Returns what its end hands over; 0: nothing.
pub fn begin_call(agent: CountingParts<'static>, env: JniEnvironment, call: NamedCall) -> u32 {
    let begun = with_current_thread(agent, env, |thread| {
        let number = match find_number_in_thread(agent, (env, thread), OWN_FRAMES)? {
            ShownFrame::Visible(number) => number,
            // Traces omit the method.
            ShownFrame::AllHidden => return Some(0),
        };
        let event = agent.find_or_add_event_type(CALL.name, "", "")?;
        let counted = with_current(agent, |local| {
            local.count_event(env, thread, (number, event), 0)
        });
        counted.flatten()?;
        let has_time = call.is_timed && agent.core.event_mask.is_enabled(NAMED_TIME.mask_bit);
        Some(match has_time {
            true => begin_time(agent, thread, (call.method, number)),
            false => 0,
        })
    });
    begun.unwrap_or_else(|| {
        increment_counter(&agent.core.counts.events_dropped);
        0
    })
}

fn begin_time(
    agent: CountingParts<'static>,
    thread: jobject,
    (method, number): (u32, ContextId),
) -> u32 {
    thread_storage::enable_storage(agent);
    let begun = thread_storage::with_storage(agent, thread, |kept| {
        kept.open_times.begin_call(OpenMethodTime {
            method,
            number,
            since: clock::nano_time(),
        })
    });
    begun.unwrap_or(0)
}

/// Ends the time of a call of the current thread. `is_thrown`: by an exception.
pub fn end_call(agent: CountingParts<'static>, env: JniEnvironment, open: u32, is_thrown: bool) {
    let now = clock::nano_time();
    with_current_thread(agent, env, |thread| {
        let ended = thread_storage::with_existing_storage(agent, thread, |kept| {
            kept.open_times.end_call(open)
        });
        let call = ended.flatten()?;
        if !agent.core.event_mask.is_enabled(NAMED_TIME.mask_bit) {
            return None;
        }
        let passed = now.saturating_sub(call.since);
        let counted = count_time(agent, (env, thread), call.number, (passed, is_thrown));
        if counted.is_none() {
            increment_counter(&agent.core.counts.events_dropped);
        }
        counted
    });
}

fn count_time(
    agent: CountingParts<'static>,
    (env, thread): (JniEnvironment, jobject),
    number: ContextId,
    (passed, is_thrown): (u64, bool),
) -> Option<()> {
    let event = find_time_type(agent, time_index(passed, is_thrown))?;
    let longest = find_time_type(agent, LONGEST_TIME)?;
    with_current(agent, |local| {
        local.count_event(env, thread, (number, event), passed)?;
        local.keep_longest(env, thread, (number, longest), passed)
    })?
}
