//! Finds the counter for an event at the current thread's location, and counts.
//!
//! With `verify=N`, every N-th location is compared with the VM's stack. The last look-ups are cached with the thread's counters
//! (`thread::recent_counters`).

use jvmti_bindings::sys::jni::{jclass, jobject};
use lucce_callgraph::ContextId;
use lucce_jvmti::JniEnvironment;
use lucce_tracelog::EventTypeId;

use crate::core::EventLocation;
use crate::counting::{CountingParts, stream};
use crate::memory::counter::increment_counter;
use crate::stack::frames;
use crate::stack::frames::{PIECE, ResolvedFrame, StackWalk};
use crate::stack::{contexts, current_location, verify};
use crate::thread::ThreadState;
use crate::thread::counter_access::{current_counters, event_counter};
use crate::thread::event_kind::{EventCounterRef, EventKind};
use crate::thread::recent_counters::RecentCounter;
use crate::thread::thread_counters::ThreadCounters;

impl EventCounterRef {
    /// Counts one event now. Only the thread that found this counter may call it, with its own state.
    pub fn count_event(
        self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: &ThreadState,
        value: u64,
    ) {
        let EventCounterRef(cell) = self;
        cell.count_event(value);
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        stream::record_event(agent, env, state, (cell.event_type(), cell.id()), value);
    }
}

/// The location of the current thread, compared with the VM's stack every N events.
pub fn verified_location(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
) -> Option<EventLocation> {
    let here = current_location::locate_current(agent.stack_parts(), env, state, 0);
    verify_location(agent, env, state, (here, None));
    here
}

/// With `verify=N`, compares the trace of `here` with the current thread's stack every N events. `location`: the bci of the
/// innermost frame, if the VM's differs.
pub fn verify_location(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (here, location): (Option<EventLocation>, Option<i64>),
) {
    if let Some(here) = here
        && state.countdown.count_event(agent.core.options.verify)
    {
        let number = contexts::event_number(agent.stack_parts(), state, here);
        let frames =
            StackWalk::new(agent.stack_parts(), env, 256).with_innermost_location(location);
        verify::compare_frames(agent.stack_parts(), frames, number, 0);
    }
}

/// Like `verify_location`, without the innermost `own` frames.
pub fn verify_location_below(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (here, own): (Option<EventLocation>, usize),
) {
    if let Some(here) = here
        && state.countdown.count_event(agent.core.options.verify)
    {
        let number = contexts::event_number(agent.stack_parts(), state, here);
        let frames = StackWalk::new(agent.stack_parts(), env, 256).without_own_frames(own);
        verify::compare_frames(agent.stack_parts(), frames, number, 0);
    }
}

/// The current thread's counter for events of `kind` on `object` at `here`. `None`: the event counts as dropped, or is out of
/// scope.
pub fn find_counter(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    here: Option<EventLocation>,
    what: (&'static EventKind, jobject),
) -> Option<EventCounterRef> {
    let Some(here) = here else {
        count_dropped_in_scope(agent, env);
        return None;
    };
    let place = (here.context, here.site.0);
    let counter = find_or_add_counter(agent, env, state, place, what, |state| {
        contexts::event_number(agent.stack_parts(), state, here)
    });
    count_if_dropped(agent, counter)
}

/// Counts an event of unknown location as dropped, unless traces omit all frames of the thread.
pub fn count_dropped_in_scope(agent: CountingParts<'_>, env: JniEnvironment) {
    let is_hidden = |frame: ResolvedFrame| frame.method.kind == frames::MethodKind::Hidden;
    if !StackWalk::new(agent.stack_parts(), env, PIECE).all(is_hidden) {
        increment_counter(&agent.core.counts.events_dropped);
    }
}

/// Like `find_counter`, at the current thread's location.
pub fn find_counter_here(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    what: (&'static EventKind, jobject),
) -> Option<EventCounterRef> {
    let here = verified_location(agent, env, state);
    find_counter(agent, env, state, here, what)
}

/// Like `find_counter`, for an event with a known context number.
pub fn find_counter_by_number(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    number: ContextId,
    what: (&'static EventKind, jobject),
) -> Option<EventCounterRef> {
    let counter = find_or_add_counter(agent, env, state, (number.0, 0), what, |_| number);
    count_if_dropped(agent, counter)
}

fn count_if_dropped(
    agent: CountingParts<'_>,
    counter: Option<EventCounterRef>,
) -> Option<EventCounterRef> {
    if counter.is_none() {
        increment_counter(&agent.core.counts.events_dropped);
    }
    counter
}

fn find_or_add_counter(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    place: (u64, u32),
    (kind, object): (&'static EventKind, jobject),
    number: impl FnOnce(&ThreadState) -> ContextId,
) -> Option<EventCounterRef> {
    let class = match object.is_null() {
        true => object,
        false => env.class_of(object),
    };
    let recent = current_counters(agent.thread_parts(), env, state)
        .recent
        .find_counter(env, place, kind, class);
    // The VM deletes the local reference to the class after the callback.
    recent.or_else(|| {
        let number = number(state);
        let event = agent.find_or_add_event_type(
            kind.name,
            kind.unit,
            &event_detail(agent, class, kind),
        )?;
        add_counter(agent, env, state, (number, event), |counters, counter| {
            let recent = RecentCounter::new(env, place, kind, class, counter);
            counters.recent.insert_counter(env, recent);
        })
    })
}

/// The current thread's counter of a context and a type, which `remember` adds to its recent counters. `None`: the context is
/// unknown, or the log is full.
pub fn add_counter(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (number, event): (ContextId, EventTypeId),
    remember: impl FnOnce(&mut ThreadCounters, EventCounterRef),
) -> Option<EventCounterRef> {
    let parts = agent.thread_parts();
    let mut counters = current_counters(parts, env, state);
    let counter = EventCounterRef(event_counter(parts, &mut counters, number, event)?);
    remember(&mut counters, counter);
    Some(counter)
}

/// The detail of an event type: the class's descriptor, if there is a class, and the kind's word.
pub fn event_detail(agent: CountingParts<'_>, class: jclass, kind: &EventKind) -> String {
    let signature = (!class.is_null())
        .then(|| agent.core.jvmti.class_signature(class))
        .flatten();
    match signature {
        Some(signature) => format!("{signature} ({})", kind.how),
        None => format!("({})", kind.how),
    }
}
