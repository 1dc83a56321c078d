//! An event that happens where a thread is: its place, compared with the VM's stack every so often, and its cell. What was
//! looked up last is remembered in the thread's lane (`recent`).

use jvmti_bindings::sys::jni::{jclass, jobject};
use lucce_callgraph::ContextId;
use lucce_jvmti::JniEnvironment;

use crate::core::EventLocation;
use crate::counting::{AgentCounting, stream};
use crate::memory::counter::increment_counter;
use crate::stack::frames;
use crate::stack::frames::{PIECE, ResolvedFrame, StackWalk};
use crate::stack::{contexts, current_location, verify};
use crate::thread::ThreadState;
use crate::thread::counter_access::{current_counters, event_counter};
use crate::thread::event_kind::{EventCounterRef, EventKind};
use crate::thread::recent_counters::RecentCounter;

impl EventCounterRef {
    /// One more event, now. Only the thread that was given this, and whose state it is, may call it.
    pub fn count_event(
        self,
        counting: &AgentCounting,
        env: JniEnvironment,
        state: &ThreadState,
        value: u64,
    ) {
        let EventCounterRef(cell) = self;
        cell.count_event(value);
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        stream::record_event(counting, env, state, (cell.event_type(), cell.id()), value);
    }
}

/// Where the current thread is, compared with the VM's own stack every so often.
pub fn verified_location(
    counting: &AgentCounting,
    env: JniEnvironment,
    state: &ThreadState,
) -> Option<EventLocation> {
    let here = current_location::locate_current(counting, env, state, 0);
    verify_location(counting, env, state, (here, None));
    here
}

/// With `verify=N`, every so many events: what `here` decodes to is compared with the current thread's
/// stack. `location`: where its innermost frame stands, if that is not where the VM says.
pub fn verify_location(
    counting: &AgentCounting,
    env: JniEnvironment,
    state: &ThreadState,
    (here, location): (Option<EventLocation>, Option<i64>),
) {
    if let Some(here) = here
        && state.countdown.count_event(counting.options.verify)
    {
        let number = contexts::event_number(counting, state, here);
        let frames = StackWalk::new(counting, env, 256).with_innermost_location(location);
        verify::compare_frames(counting, frames, number, 0);
    }
}

/// As `verify_location`, where the innermost `own` frames do not count.
pub fn verify_location_below(
    counting: &AgentCounting,
    env: JniEnvironment,
    state: &ThreadState,
    (here, own): (Option<EventLocation>, usize),
) {
    if let Some(here) = here
        && state.countdown.count_event(counting.options.verify)
    {
        let number = contexts::event_number(counting, state, here);
        let frames = StackWalk::new(counting, env, 256).without_own_frames(own);
        verify::compare_frames(counting, frames, number, 0);
    }
}

/// The current thread's cell for events of `kind` on `object`, which happen `here`. `None`: counted as
/// lost, or out of scope.
pub fn find_counter(
    counting: &AgentCounting,
    env: JniEnvironment,
    state: &ThreadState,
    here: Option<EventLocation>,
    what: (&'static EventKind, jobject),
) -> Option<EventCounterRef> {
    let Some(here) = here else {
        count_dropped_in_scope(counting, env);
        return None;
    };
    let place = (here.context, here.site.0);
    let found = find_or_add_counter(counting, env, state, place, what, |state| {
        contexts::event_number(counting, state, here)
    });
    count_if_dropped(counting, found)
}

/// Where the current thread is is not known: the event is lost, unless no frame is one of traces.
pub fn count_dropped_in_scope(counting: &AgentCounting, env: JniEnvironment) {
    let is_hidden = |frame: ResolvedFrame| frame.method.kind == frames::MethodKind::Hidden;
    if !StackWalk::new(counting, env, PIECE).all(is_hidden) {
        increment_counter(&counting.counts.events_dropped);
    }
}

/// As `find_counter`, for an event that happens where the thread is.
pub fn find_counter_here(
    counting: &AgentCounting,
    env: JniEnvironment,
    state: &ThreadState,
    what: (&'static EventKind, jobject),
) -> Option<EventCounterRef> {
    let here = verified_location(counting, env, state);
    find_counter(counting, env, state, here, what)
}

/// As `find_counter`, for an event whose number is known.
pub fn find_counter_by_number(
    counting: &AgentCounting,
    env: JniEnvironment,
    state: &ThreadState,
    number: ContextId,
    what: (&'static EventKind, jobject),
) -> Option<EventCounterRef> {
    let found = find_or_add_counter(counting, env, state, (number.0, 0), what, |_| number);
    count_if_dropped(counting, found)
}

fn count_if_dropped(
    counting: &AgentCounting,
    found: Option<EventCounterRef>,
) -> Option<EventCounterRef> {
    if found.is_none() {
        increment_counter(&counting.counts.events_dropped);
    }
    found
}

fn find_or_add_counter(
    counting: &AgentCounting,
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
    let known = current_counters(counting, env, state)
        .recent
        .find_counter(env, place, kind, class);
    // The reference to the class is left to the VM, which ends it with the callback.
    known.or_else(|| {
        let number = number(state);
        let event = counting.find_or_add_event_type(
            kind.name,
            kind.unit,
            &event_detail(counting, class, kind),
        )?;
        let mut lane = current_counters(counting, env, state);
        let found = EventCounterRef(event_counter(counting, &mut lane, number, event)?);
        let recent = RecentCounter::new(env, place, kind, class, found);
        lane.recent.insert_counter(env, recent);
        Some(found)
    })
}

pub fn event_detail(counting: &AgentCounting, class: jclass, kind: &EventKind) -> String {
    let signature = (!class.is_null())
        .then(|| counting.jvmti.class_signature(class))
        .flatten();
    match signature {
        Some(signature) => format!("{signature} ({})", kind.how),
        None => format!("({})", kind.how),
    }
}
