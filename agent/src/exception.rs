//! `events=exception`: what is thrown, by bytecode, by native methods and by the VM itself, and whether
//! a method that the thread is in catches it. An exception that is thrown again is counted again.
#![allow(unsafe_code, reason = "a callback of the JVM")]

use jvmti_bindings::sys::jni::{JNIEnv, jmethodID, jobject};
use jvmti_bindings::sys::jvmti::jvmtiEnv;

use crate::agent::Agent;
use crate::gate;
use crate::here::Here;
use crate::jvm::Env;
use crate::thread::ThreadState;
use crate::vm_events::{Kind, found, lost_unless_out_of_scope, told, verified_here};

static CAUGHT: Kind = Kind::new("exception", "", "caught");
static UNCAUGHT: Kind = Kind::new("exception", "", "uncaught");

/// A method and a bci.
type Location = (jmethodID, i64);

pub unsafe extern "system" fn thrown(
    _: *mut jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    method: jmethodID,
    location: i64,
    exception: jobject,
    catch_method: jmethodID,
    catch_location: i64,
) {
    told(gate::EXCEPTION, env, thread, |agent, env, state| {
        let catch = (!catch_method.is_null()).then_some((catch_method, catch_location));
        if is_ours(agent, env, (method, location), Ours::Rethrow) {
            if let Some(here) = state.thrown.take() {
                classify(agent, env, state, (here, exception, catch));
            }
            return;
        }
        match verified_here(agent, env, state) {
            Some(here) => classify(agent, env, state, (here, exception, catch)),
            None => lost_unless_out_of_scope(agent, env),
        }
    });
}

/// Counts it, unless a handler of the agent's own catches it: that throws it again, and then the VM tells
/// who else does.
fn classify(
    agent: &Agent,
    env: Env,
    state: &ThreadState,
    (here, exception, catch): (Here, jobject, Option<Location>),
) {
    let kind = match catch {
        Some(catch) if is_ours(agent, env, catch, Ours::Handler) => {
            state.thrown.set(Some(here));
            return;
        }
        Some(_) => &CAUGHT,
        None => &UNCAUGHT,
    };
    if let Some(found) = found(agent, env, state, Some(here), (kind, exception)) {
        found.count(agent, env, state, 0);
    }
}

/// Parts of the handlers that the agent puts into methods which the VM enters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ours {
    Handler,
    Rethrow,
}

fn is_ours(agent: &Agent, env: Env, (method, location): Location, part: Ours) -> bool {
    let resolved = agent.frames.resolve(agent, env, method);
    resolved.unwind.is_some_and(|(handler, rethrow)| {
        location
            == match part {
                Ours::Handler => handler,
                Ours::Rethrow => rethrow,
            }
    })
}
