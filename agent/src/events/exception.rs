//! `events=exception`: what is thrown, by bytecode, by native methods and by the VM itself, and whether
//! a method that the thread is in catches it. An exception that is thrown again is counted again.
use jvmti_bindings::sys::jni::{JNIEnv, jmethodID, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_hooks::Kind;
use lucce_hooks::kinds::EXCEPTION;
use lucce_vm::Env;

use crate::core::Here;
use crate::counting::Counting;
use crate::counting::found::{found, lost_unless_out_of_scope, verified_here};
use crate::events::{Door, EventSource};
use crate::thread::ThreadState;
use crate::thread::found::EventKind;

pub static CAUGHT: EventKind = EventKind::new("exception", "", "caught");
pub static UNCAUGHT: EventKind = EventKind::new("exception", "", "uncaught");

pub struct Exceptions;

impl EventSource for Exceptions {
    fn kind(&self) -> &'static Kind {
        &EXCEPTION
    }

    fn events(&self) -> &'static [ti::jvmtiEvent] {
        &[ti::JVMTI_EVENT_EXCEPTION]
    }

    fn capabilities(&self, wanted: &mut ti::jvmtiCapabilities) {
        wanted.set_can_generate_exception_events(true);
    }
}

pub fn callbacks<D: Door>(callbacks: &mut ti::jvmtiEventCallbacks) {
    callbacks.Exception = Some(raised::<D>);
}

extern "system" fn raised<D: Door>(
    _: *mut ti::jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    method: jmethodID,
    location: i64,
    exception: jobject,
    catch_method: jmethodID,
    catch_location: i64,
) {
    D::told(EXCEPTION.gate, env, thread, |counting, env, state| {
        let catch = (!catch_method.is_null()).then_some((catch_method, catch_location));
        thrown(counting, env, state, (exception, (method, location)), catch);
    });
}

/// A method and a bci.
type Location = (jmethodID, i64);

/// `exception` is thrown at `thrown`; `catch`: where it will be caught.
fn thrown(
    counting: &Counting,
    env: Env,
    state: &ThreadState,
    (exception, thrown): (jobject, Location),
    catch: Option<Location>,
) {
    if is_ours(counting, env, thrown, Ours::Rethrow) {
        if let Some(here) = state.thrown.take() {
            classify(counting, env, state, (here, exception, catch));
        }
        return;
    }
    match verified_here(counting, env, state) {
        Some(here) => classify(counting, env, state, (here, exception, catch)),
        None => lost_unless_out_of_scope(counting, env),
    }
}

/// Counts it, unless a handler of the agent's own catches it: that throws it again, and then the VM tells
/// who else does.
fn classify(
    counting: &Counting,
    env: Env,
    state: &ThreadState,
    (here, exception, catch): (Here, jobject, Option<Location>),
) {
    let kind = match catch {
        Some(catch) if is_ours(counting, env, catch, Ours::Handler) => {
            state.thrown.set(Some(here));
            return;
        }
        Some(_) => &CAUGHT,
        None => &UNCAUGHT,
    };
    if let Some(found) = found(counting, env, state, Some(here), (kind, exception)) {
        found.count(counting, env, state, 0);
    }
}

/// Parts of the handlers that the agent puts into methods which the VM enters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ours {
    Handler,
    Rethrow,
}

fn is_ours(counting: &Counting, env: Env, (method, location): Location, part: Ours) -> bool {
    let resolved = counting.frames.resolve(counting, env, method);
    resolved.unwind.is_some_and(|(handler, rethrow)| {
        location
            == match part {
                Ours::Handler => handler,
                Ours::Rethrow => rethrow,
            }
    })
}
