//! Contended monitors of a JVM that the agent was attached to: entering one, and waiting.
//!
//! A virtual thread may go on on another native thread than it waited on, so what it waits for is kept with
//! it, in the tool interface's storage for threads, and its cell is looked up when it goes on. Parking has no event in
//! the tool interface.
#![allow(unsafe_code, reason = "storage by a pointer")]

use std::ptr;

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::ContextId;
use lucce_tracelog::EventTypeId;
use lucce_vm::{Env, Jvmti};

use crate::counting::Counting;
use crate::events::lock::ENTER;
use crate::memory::counter::count;
use crate::memory::gate;
use crate::stack::monitor::monitor as at_monitor;
use crate::thread::found::EventKind;
use crate::walked::sampled::with_local;

/// What a thread waits for, and since when.
#[derive(Clone, Copy)]
pub struct Waiting {
    number: ContextId,
    event: EventTypeId,
    since: u64,
}

/// Of one thread. The second may end in the first.
#[derive(Default)]
pub struct Waits {
    enter: Option<Waiting>,
    wait: Option<Waiting>,
}

/// What a thread waits for by an event of this kind.
fn of<'w>(waits: &'w mut Waits, kind: &EventKind) -> &'w mut Option<Waiting> {
    match ptr::eq(kind, &ENTER) {
        true => &mut waits.enter,
        false => &mut waits.wait,
    }
}

/// The current thread is about to wait since then for `object`.
pub fn begins(
    counting: &'static Counting,
    env: Env,
    (thread, object): (jobject, jobject),
    kind: &'static EventKind,
    since: u64,
) {
    // Where the interpreter enters a monitor it stands behind that already.
    let location = ptr::eq(kind, &ENTER).then(|| monitor(counting)).flatten();
    let number = with_local(counting, |local| local.number(env, location));
    let Some(number) = number.flatten() else {
        count(&counting.counts.events_lost);
        return;
    };
    // Without a frame it has no context.
    let Some(number) = number else { return };
    let event = super::event(counting, env, object, kind);
    let waiting = event.map(|event| Waiting {
        number,
        event,
        since,
    });
    if waiting.is_none() || set(counting, thread, kind, waiting).is_none() {
        count(&counting.counts.events_lost);
    }
}

/// It waits no longer. What has begun is forgotten, even if nothing is counted any more.
pub fn ends(
    counting: &'static Counting,
    env: Env,
    thread: jobject,
    kind: &'static EventKind,
    now: u64,
) {
    let Some(waiting) = take(counting, thread, kind).filter(|_| counting.gate.is_open(gate::LOCK))
    else {
        return;
    };
    let passed = now.saturating_sub(waiting.since);
    let event = (waiting.number, waiting.event);
    let counted = with_local(counting, |local| local.count(env, thread, event, passed));
    if counted.flatten().is_none() {
        count(&counting.counts.events_lost);
    }
}

/// The agent leaves the VM, and no event comes any more: what threads wait for is forgotten.
pub fn let_go(jvmti: Jvmti, env: Env) {
    for thread in jvmti.threads() {
        let kept = jvmti.kept(thread).filter(|kept| !kept.is_null());
        if let Some(kept) = kept
            && jvmti.keep(thread, ptr::null_mut()).is_ok()
        {
            // SAFETY: made in set(); the thread has it no more, and no callback uses it.
            drop(unsafe { Box::from_raw(kept.cast::<Waits>()) });
        }
        env.forget(thread);
    }
}

fn monitor(counting: &Counting) -> Option<i64> {
    let (method, location) = counting.jvmti.frame(0)?;
    at_monitor(&counting.jvmti.bytecodes(method), location)
}

/// `None`: the VM has no memory for it.
fn set(
    counting: &Counting,
    thread: jobject,
    kind: &EventKind,
    waiting: Option<Waiting>,
) -> Option<()> {
    let known = counting.jvmti.kept(thread)?.cast::<Waits>();
    let kept = match known.is_null() {
        true => Box::into_raw(Box::default()),
        false => known,
    };
    // SAFETY: made here, and used by callbacks of its own thread only, one after the other.
    let waits = unsafe { &mut *kept };
    *of(waits, kind) = waiting;
    if known.is_null() && counting.jvmti.keep(thread, kept.cast()).is_err() {
        // SAFETY: made above, and no other owner has it.
        drop(unsafe { Box::from_raw(kept) });
        return None;
    }
    Some(())
}

fn take(counting: &Counting, thread: jobject, kind: &EventKind) -> Option<Waiting> {
    let kept = counting.jvmti.kept(thread)?.cast::<Waits>();
    // SAFETY: null, or as in set().
    let waits = unsafe { kept.as_mut() }?;
    let taken = of(waits, kind).take();
    if waits.enter.is_none()
        && waits.wait.is_none()
        && counting.jvmti.keep(thread, ptr::null_mut()).is_ok()
    {
        // SAFETY: made in set(), and the thread has it no more.
        drop(unsafe { Box::from_raw(kept) });
    }
    taken
}
