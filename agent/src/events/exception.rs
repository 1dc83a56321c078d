//! `events=exception`: exceptions thrown by bytecode, by native methods and by the VM itself, as caught or uncaught. An exception
//! that is thrown again is counted again.
use jvmti_bindings::sys::jni::{jmethodID, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_instrument::EventKindInfo;
use lucce_instrument::kinds::{EXCEPTION, EXCEPTIONS};
use lucce_jvmti::JniEnvironment;

use crate::core::EventLocation;
use crate::counting::CountingParts;
use crate::counting::counter_lookup::{count_dropped_in_scope, find_counter, verified_location};
use crate::events::EventSource;
use crate::thread::ThreadState;
use crate::thread::event_kind::EventKind;

/// A method of the thread's stack catches the exception.
pub static CAUGHT: EventKind = EventKind::new(&EXCEPTIONS, "caught");
/// No method of the thread's stack catches the exception.
pub static UNCAUGHT: EventKind = EventKind::new(&EXCEPTIONS, "uncaught");

/// Exceptions that the VM reports.
pub struct ExceptionSource;

impl EventSource for ExceptionSource {
    fn kind(&self) -> &'static EventKindInfo {
        &EXCEPTION
    }

    fn vm_events(&self) -> &'static [ti::jvmtiEvent] {
        &[ti::JVMTI_EVENT_EXCEPTION]
    }

    fn add_capabilities(&self, wanted: &mut ti::jvmtiCapabilities) {
        wanted.set_can_generate_exception_events(true);
    }
}

/// A method and a bci.
pub type BytecodeLocation = (jmethodID, i64);

/// Counts an exception thrown at `thrown`. `catch`: the place that will catch it.
pub fn count_exception(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (exception, thrown): (jobject, BytecodeLocation),
    catch: Option<BytecodeLocation>,
) {
    if is_handler_part(agent, env, thrown, HandlerPart::Rethrow) {
        if let Some(here) = state.rethrown_at.take() {
            count_by_catch(agent, env, state, (here, exception), catch);
        }
        return;
    }
    match verified_location(agent, env, state) {
        Some(here) => count_by_catch(agent, env, state, (here, exception), catch),
        None => count_dropped_in_scope(agent, env),
    }
}

/// Counts the exception, unless a handler of the agent catches it. That handler throws it again, and then the VM reports the
/// next handler.
fn count_by_catch(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (here, exception): (EventLocation, jobject),
    catch: Option<BytecodeLocation>,
) {
    let kind = match catch {
        Some(catch) if is_handler_part(agent, env, catch, HandlerPart::Handler) => {
            state.rethrown_at.set(Some(here));
            return;
        }
        Some(_) => &CAUGHT,
        None => &UNCAUGHT,
    };
    if let Some(found) = find_counter(agent, env, state, Some(here), (kind, exception)) {
        found.count_event(agent, env, state, 0);
    }
}

/// Parts of the handlers that the agent inserts into methods that the VM enters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HandlerPart {
    Handler,
    Rethrow,
}

fn is_handler_part(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    (method, location): BytecodeLocation,
    part: HandlerPart,
) -> bool {
    let resolved = agent
        .stack
        .frames
        .resolve_method(agent.stack_parts(), env, method);
    resolved.unwind.is_some_and(|(handler, rethrow)| {
        location
            == match part {
                HandlerPart::Handler => handler,
                HandlerPart::Rethrow => rethrow,
            }
    })
}
