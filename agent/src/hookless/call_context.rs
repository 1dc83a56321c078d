//! What programs ask for by `CallContext` and the native interface where no class has hooks: the VM is asked for the stack
//! each time.

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::ContextId;
use lucce_jvmti::JniEnvironment;

use crate::counting::AgentCounting;
use crate::counting::event_types::program_kind_name;
use crate::hookless::stack_samples::{WalkPosition, with_current};
use crate::hookless::thread_storage::{self, CallContextScope};
use crate::memory::counter::increment_counter;
use crate::thread::tag_scope;
use crate::thread::tags::TagSet;

/// The number of where the current thread is, whose innermost `own` frames do not count. `None`: that is not known, or
/// no frame is shown.
pub fn find_number(
    counting: &'static AgentCounting,
    env: JniEnvironment,
    own: usize,
) -> Option<ContextId> {
    find_shown_number(counting, env, own).flatten()
}

/// As [`find_number`]. `None`: it is not known; without any: no frame is shown.
pub fn find_shown_number(
    counting: &'static AgentCounting,
    env: JniEnvironment,
    own: usize,
) -> Option<Option<ContextId>> {
    let shown = with_current_thread(counting, env, |thread| {
        Some(find_number_in_thread(counting, (env, thread), own))
    });
    // The VM makes the object of a thread that is about to begin.
    shown.unwrap_or_else(|| counting.jvmti.frame_location(0).is_none().then_some(None))
}

fn find_number_in_thread(
    counting: &'static AgentCounting,
    whose: (JniEnvironment, jobject),
    own: usize,
) -> Option<Option<ContextId>> {
    let spot = WalkPosition {
        own,
        location: None,
    };
    with_current(counting, |local| local.find_number(whose, spot))?
}

/// An event of the program's own there; its number. `None`: it is lost.
pub fn count_program_event(
    counting: &'static AgentCounting,
    env: JniEnvironment,
    (kind, value): (&str, i64),
    own: usize,
) -> Option<ContextId> {
    let counted = with_current_thread(counting, env, |thread| {
        let number = find_number_in_thread(counting, (env, thread), own)??;
        let event = counting.find_or_add_event_type(&program_kind_name(kind), "", "")?;
        let value = u64::try_from(value).unwrap_or(0);
        with_current(counting, |local| {
            local.count_event(env, thread, (number, event), value)
        })??;
        Some(number)
    });
    if counted.is_none() {
        increment_counter(&counting.counts.events_dropped);
    }
    counted
}

/// From now on the current thread counts under one more tag. The number by which that is closed; 0: it is as it was.
pub fn open_tag(counting: &'static AgentCounting, env: JniEnvironment, tag: (&str, &str)) -> u64 {
    thread_storage::enable_storage(counting);
    let number = with_current_thread(counting, env, |thread| {
        let opened = thread_storage::with_storage(counting, thread, |kept| {
            tag_scope::push_tag(counting, &mut kept.tags, tag)
        });
        let (number, sets) = opened.flatten()?;
        release_tag_counters(counting, sets);
        Some(number)
    });
    number.unwrap_or(0)
}

/// What was opened with this number is closed, and what was opened since.
pub fn close_tag(counting: &'static AgentCounting, env: JniEnvironment, number: u64) {
    with_current_thread(counting, env, |thread| {
        let closed = thread_storage::with_existing_storage(counting, thread, |kept| {
            tag_scope::pop_tag(&mut kept.tags, number)
        });
        release_tag_counters(counting, closed.flatten()?);
        Some(())
    });
}

/// Lanes of the tags that hold no more are free for other threads.
fn release_tag_counters(counting: &'static AgentCounting, (from, to): (TagSet, TagSet)) {
    if from != to {
        let _ = with_current(counting, |local| local.release_counters(from));
    }
}

/// The method that has called the innermost `own` ones goes on from where `find_number` was taken, until its scope ends.
pub fn begin_scope(
    counting: &'static AgentCounting,
    env: JniEnvironment,
    number: ContextId,
    own: usize,
) {
    thread_storage::enable_storage(counting);
    with_current_thread(counting, env, |thread| {
        let depth = with_current(counting, |local| local.count_frames(own)).flatten()?;
        thread_storage::with_storage(counting, thread, |kept| {
            // Frames of that depth and beyond are new ones.
            kept.scopes.retain(|scope| scope.depth < depth);
            kept.scopes.push(CallContextScope { depth, number });
        })
    });
}

/// The innermost scope of the current thread ends.
pub fn end_scope(counting: &'static AgentCounting, env: JniEnvironment) {
    with_current_thread(counting, env, |thread| {
        thread_storage::with_existing_storage(counting, thread, |kept| kept.scopes.pop()).flatten()
    });
}

fn with_current_thread<T>(
    counting: &AgentCounting,
    env: JniEnvironment,
    body: impl FnOnce(jobject) -> Option<T>,
) -> Option<T> {
    let thread = counting.jvmti.current_thread()?;
    let done = body(thread);
    env.delete_local(thread);
    done
}
