//! `CallContext` and the native interface without hooks: each call walks the VM's stack.

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::ContextId;
use lucce_jvmti::JniEnvironment;

use crate::counting::CountingParts;
use crate::counting::event_types::program_kind_name;
use crate::hookless::stack_samples::{ShownFrame, WalkPosition, with_current};
use crate::hookless::thread_storage::{self, CallContextScope};
use crate::memory::counter::increment_counter;
use crate::thread::tag_scope;
use crate::thread::tags::TagSet;

/// The context number of the current thread, without its innermost `own` frames. `None`: it is unknown, or traces omit all
/// frames.
pub fn find_number(
    agent: CountingParts<'static>,
    env: JniEnvironment,
    own: usize,
) -> Option<ContextId> {
    match find_shown_number(agent, env, own)? {
        ShownFrame::Visible(number) => Some(number),
        ShownFrame::AllHidden => None,
    }
}

/// Like [`find_number`]. `None`: it is unknown.
pub fn find_shown_number(
    agent: CountingParts<'static>,
    env: JniEnvironment,
    own: usize,
) -> Option<ShownFrame<ContextId>> {
    let shown = with_current_thread(agent, env, |thread| {
        Some(find_number_in_thread(agent, (env, thread), own))
    });
    // The VM creates the object of a thread that is about to begin.
    shown.unwrap_or_else(|| {
        let has_no_frame = agent.core.jvmti.frame_location(0).is_none();
        has_no_frame.then_some(ShownFrame::AllHidden)
    })
}

pub(super) fn find_number_in_thread(
    agent: CountingParts<'static>,
    whose: (JniEnvironment, jobject),
    own: usize,
) -> Option<ShownFrame<ContextId>> {
    let spot = WalkPosition {
        own,
        location: None,
    };
    with_current(agent, |local| local.find_number(whose, spot))?
}

/// Counts an event of the program at this location, and returns its number. `None`: it is dropped.
pub fn count_program_event(
    agent: CountingParts<'static>,
    env: JniEnvironment,
    (kind, value): (&str, i64),
    own: usize,
) -> Option<ContextId> {
    let counted = with_current_thread(agent, env, |thread| {
        let ShownFrame::Visible(number) = find_number_in_thread(agent, (env, thread), own)? else {
            return None;
        };
        let event = agent.find_or_add_event_type(&program_kind_name(kind), "", "")?;
        let value = u64::try_from(value).unwrap_or(0);
        with_current(agent, |local| {
            local.count_event(env, thread, (number, event), value)
        })??;
        Some(number)
    });
    if counted.is_none() {
        increment_counter(&agent.core.counts.events_dropped);
    }
    counted
}

/// Adds a tag to the current thread. Returns the number that closes it; 0: nothing has changed.
pub fn open_tag(agent: CountingParts<'static>, env: JniEnvironment, tag: (&str, &str)) -> u64 {
    thread_storage::enable_storage(agent);
    let number = with_current_thread(agent, env, |thread| {
        let opened = thread_storage::with_storage(agent, thread, |kept| {
            tag_scope::push_tag(agent.thread_parts(), &mut kept.tags, tag)
        });
        let (number, sets) = opened.flatten()?;
        release_tag_counters(agent, sets);
        Some(number)
    });
    number.unwrap_or(0)
}

/// Closes the tag with this number and all tags opened since.
pub fn close_tag(agent: CountingParts<'static>, env: JniEnvironment, number: u64) {
    with_current_thread(agent, env, |thread| {
        let closed = thread_storage::with_existing_storage(agent, thread, |kept| {
            tag_scope::pop_tag(&mut kept.tags, number)
        });
        release_tag_counters(agent, closed.flatten()?);
        Some(())
    });
}

/// Releases the counters of tags that are no longer open, for other threads.
fn release_tag_counters(agent: CountingParts<'static>, (from, to): (TagSet, TagSet)) {
    if from != to {
        let _ = with_current(agent, |local| local.release_counters(from));
    }
}

/// The method that called the innermost `own` frames continues from the context `number`, until its scope ends.
pub fn begin_scope(
    agent: CountingParts<'static>,
    env: JniEnvironment,
    number: ContextId,
    own: usize,
) {
    thread_storage::enable_storage(agent);
    with_current_thread(agent, env, |thread| {
        let depth = with_current(agent, |local| local.count_frames(own)).flatten()?;
        thread_storage::with_storage(agent, thread, |kept| {
            // Frames at this depth or above are new ones.
            kept.scopes.retain(|scope| scope.depth < depth);
            kept.scopes.push(CallContextScope { depth, number });
        })
    });
}

/// Ends the innermost scope of the current thread.
pub fn end_scope(agent: CountingParts<'static>, env: JniEnvironment) {
    with_current_thread(agent, env, |thread| {
        thread_storage::with_existing_storage(agent, thread, |kept| kept.scopes.pop()).flatten()
    });
}

pub(super) fn with_current_thread<T>(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    body: impl FnOnce(jobject) -> Option<T>,
) -> Option<T> {
    let thread = agent.core.jvmti.current_thread()?;
    let done = body(thread);
    env.delete_local(thread);
    done
}
