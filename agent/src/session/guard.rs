//! Guards of every function that the VM calls. A panic is counted, reported with its place, and answered with a neutral
//! value.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use jvmti_bindings::sys::jni::{JNIEnv, jobject};
use lucce_jvmti::JniEnvironment;

use crate::core::agent_use::AgentUseGuard;
use crate::memory::counter::increment_counter;
use crate::options::LogLevel;
use crate::session::Agent;
use crate::thread::lifecycle::state_of;
use crate::thread::{OwnState, ThreadState};

thread_local! {
    /// Number of nested functions of the agent on this thread.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The place of the thread's last panic inside the agent: file and line.
    static PANIC_PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Number of panics that are reported one by one.
const MAX_REPORTED_PANICS: u64 = 20;

/// A panic that did not reach the VM.
#[derive(PartialEq, Eq, Debug)]
struct CaughtPanic {
    /// File and line.
    place: String,
    message: String,
}

/// Makes panics inside guards leave their place for the report. Other panics are printed as usual.
pub fn install_panic_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let earlier = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if DEPTH.try_with(Cell::get).unwrap_or(0) == 0 {
                return earlier(info);
            }
            let place = info
                .location()
                .map(|at| format!("{}:{}", at.file(), at.line()));
            // If the thread's data is gone, the panic is reported without its place.
            let _ = PANIC_PLACE.try_with(|last| *last.borrow_mut() = place);
        }));
    });
}

/// Runs `body` as a function of the agent on this thread.
fn catch_panic<T>(body: impl FnOnce() -> T) -> Result<T, CaughtPanic> {
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(body));
    DEPTH.set(DEPTH.get() - 1);
    done.map_err(|payload| {
        let place = PANIC_PLACE.try_with(RefCell::take).ok().flatten();
        CaughtPanic {
            place: place.unwrap_or_else(|| "an unknown place".into()),
            message: panic_message(&*payload),
        }
    })
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let fixed = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    fixed
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

#[cold]
fn report_panic(agent: &Agent, caught: &CaughtPanic) {
    agent.core.count_panic();
    if increment_counter(&agent.core.counts.panics) < MAX_REPORTED_PANICS {
        let CaughtPanic { place, message } = caught;
        let text = format!(
            "the agent failed at {place}: {message}; the program goes on, the event is not counted. Please report this."
        );
        // Must not unwind into the VM either.
        let _ = catch_panic(|| agent.core.report_message(LogLevel::Error, &text));
    }
}

/// Runs a callback of the VM. A panic is a bug of the agent, not of the program.
pub fn guard_callback<T>(otherwise: T, body: impl FnOnce(&'static Agent) -> T) -> T {
    let _inside = AgentUseGuard::enter();
    let Some(agent) = Agent::get() else {
        return otherwise;
    };
    catch_panic(|| body(agent)).unwrap_or_else(|caught| {
        report_panic(agent, &caught);
        otherwise
    })
}

/// Like [`guard_callback`], for an event of a kind that the event mask enables. Events that the agent itself causes are ignored.
pub fn guard_event(kind: u64, body: impl FnOnce(&'static Agent)) {
    guard_callback((), |agent| {
        if DEPTH.get() == 1 && agent.core.is_live() && agent.core.event_mask.is_enabled(kind) {
            body(agent);
        }
    });
}

/// Handles an event of the current thread that the VM reports, if the event mask enables its kind.
pub fn guard_vm_event(
    kind: u64,
    env: *mut JNIEnv,
    thread: jobject,
    body: impl FnOnce(&'static Agent, JniEnvironment, &ThreadState),
) {
    guard_event(kind, |agent| {
        let env = agent.core.jni_env(env);
        if let Some(state) = state_of(agent.thread_parts(), env, thread).get() {
            body(agent, env, state);
        }
    });
}

/// Handles an event on `object` that a hook reports; `own` is the current thread's state.
pub fn guard_hook_event(
    kind: u64,
    env: *mut JNIEnv,
    (own, object): (OwnState, jobject),
    body: impl FnOnce(&'static Agent, JniEnvironment, &ThreadState),
) {
    guard_event(kind, |agent| {
        if let (Some(state), false) = (own.get(), object.is_null()) {
            body(agent, agent.core.jni_env(env), state);
        }
    });
}

#[cfg(test)]
mod guard_tests {
    use super::*;

    #[test]
    fn a_caught_panic_has_its_place_and_message() {
        install_panic_hook();
        let fails = |number: u32| match number {
            7 => panic!("no room for {number}"),
            number => number,
        };
        let line = line!() - 3;
        assert_eq!(catch_panic(|| fails(5)), Ok(5));
        let expected = CaughtPanic {
            place: format!("{}:{line}", file!()),
            message: "no room for 7".into(),
        };
        assert_eq!(catch_panic(|| fails(7)), Err(expected));
        assert_eq!(DEPTH.get(), 0);
        // The place of a standard function's panic is its caller's.
        let cell = RefCell::new(0);
        let _borrowed = cell.borrow();
        let caught = catch_panic(|| drop(cell.borrow_mut())).unwrap_err();
        assert_eq!(caught.place, format!("{}:{}", file!(), line!() - 1));
        // A panic inside another guard is the inner guard's.
        let nested = catch_panic(|| catch_panic(|| fails(7)).is_err());
        assert_eq!(nested, Ok(true));
    }
}
