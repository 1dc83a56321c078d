//! Contended monitors of a JVM that the agent was attached to: entering one, and waiting.
//!
//! A virtual thread may go on on another native thread than it waited on, so what it waits for is kept with
//! it, and its cell is looked up when it goes on. Parking has no event in the tool interface.

use std::ptr;

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::ContextId;
use lucce_tracelog::EventTypeId;
use lucce_vm::Env;

use crate::counting::Counting;
use crate::events::lock::ENTER;
use crate::memory::counter::count;
use crate::memory::gate;
use crate::stack::monitor::monitor as at_monitor;
use crate::thread::found::EventKind;
use crate::walked::kept;
use crate::walked::sampled::{Spot, with_local};

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

impl Waits {
    pub fn is_empty(&self) -> bool {
        self.enter.is_none() && self.wait.is_none()
    }
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
    let spot = Spot { own: 0, location };
    let number = with_local(counting, |local| local.number((env, thread), spot));
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
    let kept = kept::with(counting, thread, |kept| {
        *of(&mut kept.waits, kind) = waiting;
    });
    if waiting.is_none() || kept.is_none() {
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
    let taken = kept::with_known(counting, thread, |kept| of(&mut kept.waits, kind).take());
    let is_counted = counting.gate.is_open(gate::LOCK);
    let Some(waiting) = taken.flatten().filter(|_| is_counted) else {
        return;
    };
    let passed = now.saturating_sub(waiting.since);
    let event = (waiting.number, waiting.event);
    let counted = with_local(counting, |local| local.count(env, thread, event, passed));
    if counted.flatten().is_none() {
        count(&counting.counts.events_lost);
    }
}

fn monitor(counting: &Counting) -> Option<i64> {
    let (method, location) = counting.jvmti.frame(0)?;
    at_monitor(&counting.jvmti.bytecodes(method), location)
}
