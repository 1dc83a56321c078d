//! `events=exception`: exceptions thrown by bytecode, by native methods and by the VM itself, as caught or uncaught. An exception
//! that is thrown again is counted again. A caught exception is also counted by its handler, in the same context.
use jvmti_bindings::sys::jni::{jmethodID, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_bytecode::drops_exception;
use lucce_instrument::EventKindInfo;
use lucce_instrument::kinds::{CATCHES, EXCEPTION, EXCEPTIONS};
use lucce_jvmti::JniEnvironment;
use lucce_tracelog::EventTypeId;

use crate::core::EventLocation;
use crate::counting::CountingParts;
use crate::counting::counter_lookup::{
    add_counter, count_dropped_in_scope, find_counter, verified_location,
};
use crate::events::EventSource;
use crate::stack::frames::{MethodKind, ResolvedMethod};
use crate::thread::ThreadState;
use crate::thread::counter_access::current_counters;
use crate::thread::event_kind::{EventCounterRef, EventKind};
use crate::thread::recent_counters::{HandlerPlace, RecentCatch};

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
        if let Some(catch) = catch {
            count_catch(agent, env, state, (found, exception), catch);
        }
    }
}

/// Counts a caught exception by its handler, in the context of `counter`, which has counted it. The stream has the exception
/// alone.
fn count_catch(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (exception_counter, exception): (EventCounterRef, jobject),
    catch: BytecodeLocation,
) {
    let (method, bci) = catch;
    let frames = &agent.stack.frames;
    let resolved = frames.resolve_method(agent.stack_parts(), env, method);
    let handler = HandlerPlace {
        method: method as usize,
        bci,
        line: resolved.line_number(bci),
    };
    let recent = current_counters(agent.thread_parts(), env, state)
        .recent_catches
        .find_counter(exception_counter, handler);
    let counter = recent.or_else(|| {
        let event = find_catch_type(agent, env, exception, (&resolved, catch))?;
        let number = exception_counter.0.id();
        add_counter(agent, env, state, (number, event), |counters, counter| {
            counters.recent_catches.insert_counter(RecentCatch {
                exception: exception_counter,
                handler,
                counter,
            });
        })
    });
    if let Some(EventCounterRef(cell)) = counter {
        cell.count_event(0);
    }
}

/// The type of catches of an exception's class by a handler: `La/B; at a.b.C.m:12`, or `La/B; dropped at a.b.C.m:12` if the
/// handler never reads the exception. `None`: the handler belongs to code without a name.
pub fn find_catch_type(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    exception: jobject,
    (handler, (method, bci)): (&ResolvedMethod, BytecodeLocation),
) -> Option<EventTypeId> {
    if handler.class_name.is_empty() || handler.kind == MethodKind::Helper {
        return None;
    }
    let class = env.class_of(exception);
    let signature = agent.core.jvmti.class_signature(class);
    env.delete_local(class);
    let code = agent.core.jvmti.method_bytecodes(method);
    let drops = u32::try_from(bci).is_ok_and(|bci| drops_exception(&code, bci));
    let detail = format!(
        "{} {} {}.{}:{}",
        signature?,
        if drops { "dropped at" } else { "at" },
        handler.class_name.replace('/', "."),
        handler.method_name,
        handler.line_number(bci)
    );
    agent.find_or_add_event_type(CATCHES.name, CATCHES.unit, &detail)
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
