//! Contended monitors of a JVM that the agent was attached to: entering one, and waiting.
//!
//! A virtual thread may go on on another native thread than it waited on, so what it waits for is kept with
//! it, in the tool interface's storage for threads, and its cell is looked up when it goes on. Parking has no event in
//! the tool interface.
#![allow(unsafe_code, reason = "callbacks of the JVM, and storage by a pointer")]

use std::ptr;

use jvmti_bindings::sys::jni::{JNIEnv, jlong, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_tracelog::EventTypeId;

use super::sampled::with_local;
use crate::agent::{Agent, count};
use crate::jvm::Env;
use crate::lock::{ENTER, WAIT};
use crate::natives::{guard, guard_event};
use crate::vm_events::{Kind, detail};
use crate::{arrival, clock, gate};

pub fn add_callbacks(callbacks: &mut ti::jvmtiEventCallbacks) {
    callbacks.MonitorContendedEnter = Some(contended_enter);
    callbacks.MonitorContendedEntered = Some(contended_entered);
    callbacks.MonitorWait = Some(wait);
    callbacks.MonitorWaited = Some(waited);
}

/// What a thread waits for, and since when.
#[derive(Clone, Copy)]
struct Waiting {
    number: ContextId,
    event: EventTypeId,
    since: u64,
}

/// Of one thread. The second may end in the first.
#[derive(Default)]
struct Waits {
    enter: Option<Waiting>,
    wait: Option<Waiting>,
}

type Which = fn(&mut Waits) -> &mut Option<Waiting>;

fn enter(waits: &mut Waits) -> &mut Option<Waiting> {
    &mut waits.enter
}

fn notified(waits: &mut Waits) -> &mut Option<Waiting> {
    &mut waits.wait
}

unsafe extern "system" fn contended_enter(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
) {
    begins(env, (thread, object), &ENTER, enter);
}

unsafe extern "system" fn contended_entered(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    _: jobject,
) {
    ends(env, thread, enter);
}

unsafe extern "system" fn wait(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    _: jlong,
) {
    begins(env, (thread, object), &WAIT, notified);
}

unsafe extern "system" fn waited(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    _: jobject,
    _: u8,
) {
    ends(env, thread, notified);
}

fn begins(
    env: *mut JNIEnv,
    (thread, object): (jobject, jobject),
    kind: &'static Kind,
    which: Which,
) {
    let since = clock::nano_time();
    guard_event(gate::LOCK, |agent| {
        let env = agent.env(env);
        // Where the interpreter enters a monitor it stands behind that already.
        let location = ptr::eq(kind, &ENTER).then(|| monitor(agent)).flatten();
        let number = with_local(|local| local.number(agent, env, location));
        let Some(number) = number.flatten() else {
            count(&agent.counts.events_lost);
            return;
        };
        // Without a frame it has no context.
        let Some(number) = number else { return };
        let event = event(agent, env, object, kind);
        let waiting = event.map(|event| Waiting {
            number,
            event,
            since,
        });
        if waiting.is_none() || set(agent, thread, which, waiting).is_none() {
            count(&agent.counts.events_lost);
        }
    });
}

fn monitor(agent: &Agent) -> Option<i64> {
    let (method, location) = agent.jvmti.frame(0)?;
    arrival::monitor(&agent.jvmti.bytecodes(method), location)
}

fn event(agent: &Agent, env: Env, object: jobject, kind: &'static Kind) -> Option<EventTypeId> {
    let class = match object.is_null() {
        true => object,
        false => env.class_of(object),
    };
    let event = agent.event_type(kind.name, kind.unit, &detail(agent, class, kind));
    env.forget(class);
    event
}

fn ends(env: *mut JNIEnv, thread: jobject, which: Which) {
    let now = clock::nano_time();
    // What has begun is forgotten, even if nothing is counted any more.
    guard((), |agent| {
        let Some(waiting) = take(agent, thread, which).filter(|_| agent.gate.is_open(gate::LOCK))
        else {
            return;
        };
        let env = agent.env(env);
        let passed = now.saturating_sub(waiting.since);
        let event = (waiting.number, waiting.event);
        let counted = with_local(|local| local.count(agent, env, thread, event, passed));
        if counted.flatten().is_none() {
            count(&agent.counts.events_lost);
        }
    });
}

/// `None`: the VM has no memory for it.
fn set(agent: &Agent, thread: jobject, which: Which, waiting: Option<Waiting>) -> Option<()> {
    let known = agent.jvmti.kept(thread)?.cast::<Waits>();
    let kept = match known.is_null() {
        true => Box::into_raw(Box::default()),
        false => known,
    };
    // SAFETY: made here, and used by callbacks of its own thread only, one after the other.
    let waits = unsafe { &mut *kept };
    *which(waits) = waiting;
    if known.is_null() && agent.jvmti.keep(thread, kept.cast()).is_err() {
        // SAFETY: made above, and nobody else has it.
        drop(unsafe { Box::from_raw(kept) });
        return None;
    }
    Some(())
}

fn take(agent: &Agent, thread: jobject, which: Which) -> Option<Waiting> {
    let kept = agent.jvmti.kept(thread)?.cast::<Waits>();
    // SAFETY: null, or as in set().
    let waits = unsafe { kept.as_mut() }?;
    let taken = which(waits).take();
    if waits.enter.is_none()
        && waits.wait.is_none()
        && agent.jvmti.keep(thread, ptr::null_mut()).is_ok()
    {
        // SAFETY: made in set(), and the thread has it no more.
        drop(unsafe { Box::from_raw(kept) });
    }
    taken
}
