//! Events that the VM tells of: locks, exceptions, and objects that it makes for itself.
//!
//! Each is switched on and off as a whole, also while the program runs. Capabilities are asked for only
//! then: some slow the VM down. Those for exceptions the VM gives before it starts and not later.
//!
//! A callback finds out where its thread is (`here`), and the cell for that place and the class of the
//! object that it happened to. What was looked up last is remembered in the thread's lane (`recent`).

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_tracelog::EventCell;

use crate::agent::{Agent, count};
use crate::cells::{event_cell, lane_of};
use crate::frames::{self, Frame, PIECE, Walk};
use crate::here::{self, Here};
use crate::jvm::{Env, Jvmti};
use crate::natives::{guard_event, state_of};
use crate::options::Events;
use crate::recent::Recent;
use crate::stream;
use crate::thread::{OwnState, ThreadState};

use crate::{exception, lock, verify, vm_alloc};

/// What is switched on and off together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Contended monitors, and waiting for them. Parking has hooks of its own.
    Locks,
    Exceptions,
    /// Objects that the VM makes for itself and for native code.
    Objects,
}

pub const LOCKS: [ti::jvmtiEvent; 4] = [
    ti::JVMTI_EVENT_MONITOR_CONTENDED_ENTER,
    ti::JVMTI_EVENT_MONITOR_CONTENDED_ENTERED,
    ti::JVMTI_EVENT_MONITOR_WAIT,
    ti::JVMTI_EVENT_MONITOR_WAITED,
];

impl Source {
    fn events(self) -> &'static [ti::jvmtiEvent] {
        match self {
            Source::Locks => &LOCKS,
            Source::Exceptions => &[ti::JVMTI_EVENT_EXCEPTION],
            Source::Objects => &[ti::JVMTI_EVENT_VM_OBJECT_ALLOC],
        }
    }

    fn capabilities(self) -> ti::jvmtiCapabilities {
        let mut wanted = ti::jvmtiCapabilities::default();
        match self {
            Source::Locks => {
                wanted.set_can_generate_monitor_events(true);
                // Whether a method stands at a `monitorenter`.
                wanted.set_can_get_bytecodes(true);
            }
            Source::Exceptions => wanted.set_can_generate_exception_events(true),
            Source::Objects => wanted.set_can_generate_vm_object_alloc_events(true),
        }
        wanted
    }

    fn name(self) -> &'static str {
        match self {
            Source::Locks => "lock",
            Source::Exceptions => "exception",
            Source::Objects => "alloc=all",
        }
    }
}

/// The sources that `events` asks for.
pub fn wanted(events: &Events) -> impl Iterator<Item = Source> {
    [
        (Source::Locks, events.lock),
        (Source::Exceptions, events.exception),
        (Source::Objects, events.objects),
    ]
    .into_iter()
    .filter_map(|(source, wanted)| wanted.then_some(source))
}

/// Before the VM starts: what it does not give later.
///
/// # Errors
/// This VM does not give it at all.
pub fn prepare(jvmti: Jvmti, source: Source) -> Result<(), String> {
    let given = jvmti.add_capabilities(&source.capabilities());
    given.map_err(|_| format!("this VM does not tell of events={}", source.name()))
}

/// Switches a source on; at any time from `VMInit` on, from any thread. What is on stays on.
///
/// # Errors
/// The VM does not do that, or not any more: one line for the user.
pub fn start(jvmti: Jvmti, source: Source) -> Result<(), String> {
    prepare(jvmti, source).map_err(|message| message + " unless it was started with them")?;
    for event in source.events() {
        let on = jvmti.enable(*event);
        on.map_err(|_| format!("this VM does not tell of events={}", source.name()))?;
    }
    Ok(())
}

/// Switches a source off; what waits then is not counted.
pub fn stop(jvmti: Jvmti, source: Source) {
    for event in source.events() {
        // Fails only for events that were never on.
        let _ = jvmti.disable(*event);
    }
}

pub fn add_callbacks(callbacks: &mut ti::jvmtiEventCallbacks) {
    callbacks.MonitorContendedEnter = Some(lock::contended_enter);
    callbacks.MonitorContendedEntered = Some(lock::contended_entered);
    callbacks.MonitorWait = Some(lock::wait);
    callbacks.MonitorWaited = Some(lock::waited);
    callbacks.Exception = Some(exception::thrown);
    callbacks.VMObjectAlloc = Some(vm_alloc::allocated);
}

/// A kind of event, and how it came about: a word behind the class's name.
#[derive(PartialEq, Eq, Debug)]
pub struct Kind {
    pub name: &'static str,
    pub unit: &'static str,
    pub how: &'static str,
}

impl Kind {
    pub const fn new(name: &'static str, unit: &'static str, how: &'static str) -> Kind {
        Kind { name, unit, how }
    }
}

/// A cell.
#[derive(Clone, Copy, Debug)]
pub struct Found(&'static EventCell);

impl Found {
    /// One more event, now. Only the thread that was given this, and whose state it is, may call it.
    pub fn count(self, agent: &Agent, env: Env, state: &ThreadState, value: u64) {
        let Found(cell) = self;
        cell.count(value);
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        stream::record(agent, env, state, (cell.event(), cell.id()), value);
    }
}

/// The VM tells the current thread of an event of this kind of the gate.
pub fn told(
    kind: u64,
    env: *mut JNIEnv,
    thread: jobject,
    body: impl FnOnce(&'static Agent, Env, &ThreadState),
) {
    guard_event(kind, |agent| {
        let env = agent.env(env);
        if let Some(state) = state_of(agent, env, thread).get() {
            body(agent, env, state);
        }
    });
}

/// A hook tells of an event on `object`; `own` is the current thread's state.
pub fn told_by_hook(
    kind: u64,
    env: *mut JNIEnv,
    (own, object): (OwnState, jobject),
    body: impl FnOnce(&'static Agent, Env, &ThreadState),
) {
    guard_event(kind, |agent| {
        if let (Some(state), false) = (own.get(), object.is_null()) {
            body(agent, agent.env(env), state);
        }
    });
}

/// Where the current thread is, compared with the VM's own stack every so often.
pub fn verified_here(agent: &Agent, env: Env, state: &ThreadState) -> Option<Here> {
    let here = here::current(agent, env, state, 0);
    verify(agent, env, state, (here, None));
    here
}

/// With `verify=N`, every so many events: what `here` decodes to is compared with the current thread's
/// stack. `location`: where its innermost frame stands, if that is not where the VM says.
pub fn verify(
    agent: &Agent,
    env: Env,
    state: &ThreadState,
    (here, location): (Option<Here>, Option<i64>),
) {
    if let Some(here) = here
        && state.must_verify(agent.options.verify)
    {
        let number = here.number(agent, state);
        let frames = Walk::new(agent, env, 256).standing_at(location);
        verify::compare_with(agent, frames, number, 0);
    }
}

/// As `verify`, where the innermost `own` frames do not count.
pub fn verify_below(
    agent: &Agent,
    env: Env,
    state: &ThreadState,
    (here, own): (Option<Here>, usize),
) {
    if let Some(here) = here
        && state.must_verify(agent.options.verify)
    {
        let number = here.number(agent, state);
        let frames = Walk::new(agent, env, 256).below(own);
        verify::compare_with(agent, frames, number, 0);
    }
}

/// The current thread's cell for events of `kind` on `object`, which happen `here`. `None`: counted as
/// lost, or out of scope.
pub fn found(
    agent: &Agent,
    env: Env,
    state: &ThreadState,
    here: Option<Here>,
    what: (&'static Kind, jobject),
) -> Option<Found> {
    let Some(here) = here else {
        lost_unless_out_of_scope(agent, env);
        return None;
    };
    let place = (here.context, here.site.0);
    let found = cell(agent, env, state, place, what, |state| {
        here.number(agent, state)
    });
    counted_as_lost(agent, found)
}

/// Nobody knows where the current thread is: the event is lost, unless no frame is one of traces.
pub fn lost_unless_out_of_scope(agent: &Agent, env: Env) {
    let is_hidden = |frame: Frame| frame.method.kind == frames::Kind::Hidden;
    if !Walk::new(agent, env, PIECE).all(is_hidden) {
        count(&agent.counts.events_lost);
    }
}

/// The same for an event that happens where the thread is.
pub fn found_here(
    agent: &Agent,
    env: Env,
    state: &ThreadState,
    what: (&'static Kind, jobject),
) -> Option<Found> {
    let here = verified_here(agent, env, state);
    found(agent, env, state, here, what)
}

/// The same for an event whose number is known.
pub fn of_number(
    agent: &Agent,
    env: Env,
    state: &ThreadState,
    number: ContextId,
    what: (&'static Kind, jobject),
) -> Option<Found> {
    let found = cell(agent, env, state, (number.0, 0), what, |_| number);
    counted_as_lost(agent, found)
}

fn counted_as_lost(agent: &Agent, found: Option<Found>) -> Option<Found> {
    if found.is_none() {
        count(&agent.counts.events_lost);
    }
    found
}

fn cell(
    agent: &Agent,
    env: Env,
    state: &ThreadState,
    place: (u64, u32),
    (kind, object): (&'static Kind, jobject),
    number: impl FnOnce(&ThreadState) -> ContextId,
) -> Option<Found> {
    let class = match object.is_null() {
        true => object,
        false => env.class_of(object),
    };
    let known = lane_of(agent, env, state)
        .recent
        .find(env, place, kind, class);
    // The reference to the class is left to the VM, which ends it with the callback.
    known.or_else(|| {
        let number = number(state);
        let event = agent.event_type(kind.name, kind.unit, &detail(agent, class, kind))?;
        let mut lane = lane_of(agent, env, state);
        let found = Found(event_cell(agent, &mut lane, number, event)?);
        let recent = Recent::new(env, place, kind, class, found);
        lane.recent.put(env, recent);
        Some(found)
    })
}

pub fn detail(agent: &Agent, class: jclass, kind: &Kind) -> String {
    let signature = (!class.is_null())
        .then(|| agent.jvmti.signature(class))
        .flatten();
    match signature {
        Some(signature) => format!("{signature} ({})", kind.how),
        None => format!("({})", kind.how),
    }
}
