//! An event that happens where a thread is: its place, compared with the VM's stack every so often, and its cell. What was
//! looked up last is remembered in the thread's lane (`recent`).

use jvmti_bindings::sys::jni::{jclass, jobject};
use lucce_callgraph::ContextId;
use lucce_vm::Env;

use crate::core::Here;
use crate::counting::{Counting, stream};
use crate::memory::counter::count;
use crate::stack::frames;
use crate::stack::frames::{Frame, PIECE, Walk};
use crate::stack::{contexts, here, verify};
use crate::thread::ThreadState;
use crate::thread::cells::{event_cell, lane_of};
use crate::thread::found::{EventKind, Found};
use crate::thread::recent::Recent;

impl Found {
    /// One more event, now. Only the thread that was given this, and whose state it is, may call it.
    pub fn count(self, counting: &Counting, env: Env, state: &ThreadState, value: u64) {
        let Found(cell) = self;
        cell.count(value);
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        stream::record(counting, env, state, (cell.event(), cell.id()), value);
    }
}

/// Where the current thread is, compared with the VM's own stack every so often.
pub fn verified_here(counting: &Counting, env: Env, state: &ThreadState) -> Option<Here> {
    let here = here::current(counting, env, state, 0);
    verify(counting, env, state, (here, None));
    here
}

/// With `verify=N`, every so many events: what `here` decodes to is compared with the current thread's
/// stack. `location`: where its innermost frame stands, if that is not where the VM says.
pub fn verify(
    counting: &Counting,
    env: Env,
    state: &ThreadState,
    (here, location): (Option<Here>, Option<i64>),
) {
    if let Some(here) = here
        && state.countdown.count_event(counting.options.verify)
    {
        let number = contexts::event(counting, state, here);
        let frames = Walk::new(counting, env, 256).standing_at(location);
        verify::compare_with(counting, frames, number, 0);
    }
}

/// As `verify`, where the innermost `own` frames do not count.
pub fn verify_below(
    counting: &Counting,
    env: Env,
    state: &ThreadState,
    (here, own): (Option<Here>, usize),
) {
    if let Some(here) = here
        && state.countdown.count_event(counting.options.verify)
    {
        let number = contexts::event(counting, state, here);
        let frames = Walk::new(counting, env, 256).below(own);
        verify::compare_with(counting, frames, number, 0);
    }
}

/// The current thread's cell for events of `kind` on `object`, which happen `here`. `None`: counted as
/// lost, or out of scope.
pub fn found(
    counting: &Counting,
    env: Env,
    state: &ThreadState,
    here: Option<Here>,
    what: (&'static EventKind, jobject),
) -> Option<Found> {
    let Some(here) = here else {
        lost_unless_out_of_scope(counting, env);
        return None;
    };
    let place = (here.context, here.site.0);
    let found = cell(counting, env, state, place, what, |state| {
        contexts::event(counting, state, here)
    });
    counted_as_lost(counting, found)
}

/// Where the current thread is is not known: the event is lost, unless no frame is one of traces.
pub fn lost_unless_out_of_scope(counting: &Counting, env: Env) {
    let is_hidden = |frame: Frame| frame.method.kind == frames::MethodKind::Hidden;
    if !Walk::new(counting, env, PIECE).all(is_hidden) {
        count(&counting.counts.events_lost);
    }
}

/// As `found`, for an event that happens where the thread is.
pub fn found_here(
    counting: &Counting,
    env: Env,
    state: &ThreadState,
    what: (&'static EventKind, jobject),
) -> Option<Found> {
    let here = verified_here(counting, env, state);
    found(counting, env, state, here, what)
}

/// As `found`, for an event whose number is known.
pub fn of_number(
    counting: &Counting,
    env: Env,
    state: &ThreadState,
    number: ContextId,
    what: (&'static EventKind, jobject),
) -> Option<Found> {
    let found = cell(counting, env, state, (number.0, 0), what, |_| number);
    counted_as_lost(counting, found)
}

fn counted_as_lost(counting: &Counting, found: Option<Found>) -> Option<Found> {
    if found.is_none() {
        count(&counting.counts.events_lost);
    }
    found
}

fn cell(
    counting: &Counting,
    env: Env,
    state: &ThreadState,
    place: (u64, u32),
    (kind, object): (&'static EventKind, jobject),
    number: impl FnOnce(&ThreadState) -> ContextId,
) -> Option<Found> {
    let class = match object.is_null() {
        true => object,
        false => env.class_of(object),
    };
    let known = lane_of(counting, env, state)
        .recent
        .find(env, place, kind, class);
    // The reference to the class is left to the VM, which ends it with the callback.
    known.or_else(|| {
        let number = number(state);
        let event = counting.event_type(kind.name, kind.unit, &detail(counting, class, kind))?;
        let mut lane = lane_of(counting, env, state);
        let found = Found(event_cell(counting, &mut lane, number, event)?);
        let recent = Recent::new(env, place, kind, class, found);
        lane.recent.put(env, recent);
        Some(found)
    })
}

pub fn detail(counting: &Counting, class: jclass, kind: &EventKind) -> String {
    let signature = (!class.is_null())
        .then(|| counting.jvmti.signature(class))
        .flatten();
    match signature {
        Some(signature) => format!("{signature} ({})", kind.how),
        None => format!("({})", kind.how),
    }
}
