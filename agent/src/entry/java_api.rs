//! Native methods of the Java API: `io.lucce.CallContext`, `Allocations`, `ThreadCounts` and `AgentStatus`.
#![allow(
    unsafe_code,
    reason = "a function that the JVM calls, exported by name"
)]

use jvmti_bindings::sys::jni::{JNIEnv, jboolean, jclass, jint, jlong, jobject, jvalue};
use lucce_callgraph::ContextId;
use lucce_filter::PatternList;
use lucce_jvmti::JniEnvironment;

use crate::counting::event_types::{MOST_OF_KIND, count_program_event};
use crate::counting::own_lines::sum_by_own_line;
use crate::events::allocation_marks::{self, EndedMark, MarkStart};
use crate::hookless::call_context;
use crate::memory::counter::increment_counter;
use crate::memory::event_mask;
use crate::options::{LogLevel, StartDelay};
use crate::session::Agent;
use crate::session::delay;
use crate::session::event_totals::count_dropped_events;
use crate::session::guard::guard_callback;
use crate::session::marks::{self, MarkEffect};
use crate::session::status;
use crate::stack::StackParts;
use crate::stack::trace::StackElement;
use crate::stack::{contexts, current_location, trace};
use crate::thread::lifecycle::{current_state, state_of};
use crate::thread::tags::{self, TagSet};
use crate::thread::{OwnState, ThreadState, tag_scope};

/// `CallContext.decode0`: the trace of a number.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_CallContext_decode0(
    env: *mut JNIEnv,
    _: jclass,
    id: jlong,
) -> jobject {
    object_for_number(env, id, trace::decode_trace, stack_trace_array)
}

/// `CallContext.contentId0`: the content id of a number's trace.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_CallContext_contentId0(
    env: *mut JNIEnv,
    _: jclass,
    id: jlong,
) -> jobject {
    object_for_number(env, id, trace::decode_trace, |env, elements| {
        env.new_string(&trace::stack_id(elements).to_string())
    })
}

/// Makes an object from a number's frames. If the number is invalid: null, and an exception with the reason is
/// pending.
fn object_for_number(
    env: *mut JNIEnv,
    id: jlong,
    frames: fn(StackParts<'_>, ContextId) -> Result<Vec<StackElement>, String>,
    made: impl FnOnce(JniEnvironment, &[StackElement]) -> Option<jobject>,
) -> jobject {
    guard_callback(std::ptr::null_mut(), |agent| {
        // With brackets, because constructors of the elements and of the exception are entered.
        let env = JniEnvironment::new(env, std::ptr::null());
        let number = ContextId(id as u64);
        let refuse = |why: String| {
            let text = format!("{number} is not a context number: {why}");
            env.throw_new(c"java/lang/IllegalArgumentException", &text);
        };
        // The registry's lock is released when the elements' constructors run.
        let elements = frames(agent.stack_parts(), number).map_err(refuse).ok();
        let object = elements.and_then(|elements| made(env, &elements));
        object.unwrap_or(std::ptr::null_mut())
    })
}

/// Frames of the query itself: `current0` and `current`.
const ASKING_FRAMES: usize = 2;

/// `CallContext.current0`: the number of the context that called `current` without a hook.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_CallContext_current0(env: *mut JNIEnv, _: jclass) -> jlong {
    guard_callback(0, |agent| {
        let number = current_number(agent, agent.core.jni_env(env), ASKING_FRAMES);
        number.map_or(0, |number| number.0 as jlong)
    })
}

/// `CallContext.event0`: an event in the context that called `event` without a hook.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_CallContext_event0(
    env: *mut JNIEnv,
    _: jclass,
    kind: jobject,
    value: jlong,
) {
    guard_callback((), |agent| {
        if agent.core.event_mask.is_enabled(event_mask::OWN) {
            record_own_event(agent, agent.core.jni_env(env), (kind, value), ASKING_FRAMES);
        }
    });
}

/// `current` in code whose hooks are disabled; frames of the helper do not count. If the location is unknown, it
/// returns 0 and counts a dropped event.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_currentContextFromVm(
    env: *mut JNIEnv,
    _: jclass,
) -> jlong {
    guard_callback(0, |agent| {
        let number = current_number(agent, agent.core.jni_env(env), 0);
        if number == Some(ContextId::UNKNOWN) {
            increment_counter(&agent.core.counts.events_dropped);
        }
        number.map_or(0, |number| number.0 as jlong)
    })
}

/// `event` in such code. Returns its number.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_countEventFromVm(
    env: *mut JNIEnv,
    _: jclass,
    kind: jobject,
    value: jlong,
) -> jlong {
    guard_callback(0, |agent| {
        record_own_event(agent, agent.core.jni_env(env), (kind, value), 0).0 as jlong
    })
}

/// The number of the current thread's context, without the innermost `own` frames. `None`: nothing is recorded in the
/// thread.
fn current_number(agent: &'static Agent, env: JniEnvironment, own: usize) -> Option<ContextId> {
    if agent.core.is_hookless() {
        let number = || {
            call_context::find_number(agent.counting_parts(), env, own)
                .unwrap_or(ContextId::UNKNOWN)
        };
        return agent.core.is_live().then(number);
    }
    let state = current_state(agent.thread_parts(), env);
    let state = state.get().filter(|_| agent.core.is_live())?;
    let here = current_location::locate_current(agent.stack_parts(), env, state, own);
    Some(here.map_or(ContextId::UNKNOWN, |here| {
        contexts::event_number(agent.stack_parts(), state, here)
    }))
}

/// Counts an event of the program in that context. Returns its number.
fn record_own_event(
    agent: &'static Agent,
    env: JniEnvironment,
    (kind, value): (jobject, jlong),
    own: usize,
) -> ContextId {
    if agent.core.is_hookless() {
        let event = || {
            let kind = env.read_string(kind, MOST_OF_KIND);
            call_context::count_program_event(agent.counting_parts(), env, (&kind, value), own)
        };
        let counted = (agent.core.is_live() && !kind.is_null())
            .then(event)
            .flatten();
        return counted.unwrap_or(ContextId::UNKNOWN);
    }
    let own_state = current_state(agent.thread_parts(), env);
    let number = current_number(agent, env, own).filter(|_| !kind.is_null());
    let (Some(state), Some(number)) = (own_state.get(), number) else {
        return ContextId::UNKNOWN;
    };
    let _ = count_program_event(agent.counting_parts(), env, state, number, kind, value);
    number
}

/// `CallContext.tag0`: opens one more tag for the current thread. Returns the number that closes it; 0: the tags did
/// not change.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_CallContext_tag0(
    env: *mut JNIEnv,
    _: jclass,
    key: jobject,
    value: jobject,
) -> jlong {
    guard_callback(0, |agent| {
        if key.is_null() || value.is_null() {
            return 0;
        }
        let env = agent.core.jni_env(env);
        // One unit more than the limit, so that longer texts are recognized.
        let [key, value] = [key, value].map(|text| env.read_string(text, tags::LONGEST + 1));
        if key.is_empty() || key.encode_utf16().count() > tags::LONGEST {
            return 0;
        }
        if agent.core.is_hookless() {
            return match agent.core.is_live() {
                true => {
                    call_context::open_tag(agent.counting_parts(), env, (&key, &value)) as jlong
                }
                false => 0,
            };
        }
        let number = with_switched_counters(agent, env, |state| {
            tag_scope::open_tag(agent.thread_parts(), env, state, (&key, &value))
        });
        number.map_or(0, |number| number as jlong)
    })
}

/// `CallContext.Scope.tags0`: the current thread's tags, as a number; 0: none, or tags belong to threads.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_CallContext_00024Scope_tags0(
    env: *mut JNIEnv,
    _: jclass,
) -> jint {
    guard_callback(0, |agent| {
        let env = agent.core.jni_env(env);
        let state = current_state(agent.thread_parts(), env);
        let tags = state
            .get()
            .map(|state| tag_scope::captured_tags(agent.thread_parts(), state));
        tags.map_or(0, |tags| tags.number() as jint)
    })
}

/// `CallContext.Scope.openTags0`: the thread continues under the tags with this number. Returns what `untag0` closes.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_CallContext_00024Scope_openTags0(
    env: *mut JNIEnv,
    _: jclass,
    tags: jint,
) -> jlong {
    guard_callback(0, |agent| {
        let env = agent.core.jni_env(env);
        let set = TagSet::from_number(tags as u32);
        let number = with_switched_counters(agent, env, |state| {
            tag_scope::open_captured_tags(agent.thread_parts(), env, state, set)
        });
        number.map_or(0, |number| number as jlong)
    })
}

/// `CallContext.isRequest0`: whether `requests=auto` has a request open in the current thread.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_CallContext_isRequest0(
    env: *mut JNIEnv,
    _: jclass,
) -> jboolean {
    guard_callback(0, |agent| {
        let env = agent.core.jni_env(env);
        if agent.core.is_hookless() || !agent.core.is_live() {
            return 0;
        }
        let state = current_state(agent.thread_parts(), env);
        let request = state.get().and_then(|state| state.request.get());
        jboolean::from(request.is_some())
    })
}

/// `CallContext.ready0`: the program is ready; with `delay=ready` counting begins.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_CallContext_ready0(_: *mut JNIEnv, _: jclass) {
    guard_callback((), |agent| {
        if agent.core.options.delay == Some(StartDelay::Ready) {
            delay::begin_counting(agent);
        }
    });
}

/// `CallContext.mark0`: writes a mark of this name into the log. An invalid name changes nothing.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_CallContext_mark0(env: *mut JNIEnv, _: jclass, name: jobject) {
    guard_callback((), |agent| {
        let env = agent.core.jni_env(env);
        if !agent.core.is_live() {
            return;
        }
        // One unit more than the limit, so that longer names are recognized.
        let name = env.read_string(name, marks::LONGEST_NAME + 1);
        if let Err(message) = marks::write_mark(agent, &name, MarkEffect::Named) {
            agent.core.report_message(LogLevel::Warn, &message);
        }
    });
}

/// `CallContext.untag0`: closes the tag with this number, and all tags opened after it.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_CallContext_untag0(
    env: *mut JNIEnv,
    _: jclass,
    number: jlong,
) {
    guard_callback((), |agent| {
        let env = agent.core.jni_env(env);
        if agent.core.is_hookless() {
            return call_context::close_tag(agent.counting_parts(), env, number as u64);
        }
        with_switched_counters(agent, env, |state| {
            tag_scope::close_tag(agent.thread_parts(), env, state, number as u64);
        });
    });
}

/// Frames of the query itself, called by the scope's method: `begin0` and `begin`.
const BEGINNING_FRAMES: usize = 2;

/// `CallContext.Scope.begin0`: the method that called `begin` continues the context of the captured number. Called
/// only if classes have no hooks; hooks replace calls of `begin`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_CallContext_00024Scope_begin0(
    env: *mut JNIEnv,
    _: jclass,
    id: jlong,
) {
    guard_callback((), |agent| {
        if agent.core.is_hookless() && agent.core.is_live() {
            let number = ContextId(id as u64);
            call_context::begin_scope(
                agent.counting_parts(),
                agent.core.jni_env(env),
                number,
                BEGINNING_FRAMES,
            );
        }
    });
}

/// `CallContext.Scope.end0`: the method has its own callers again.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_CallContext_00024Scope_end0(env: *mut JNIEnv, _: jclass) {
    guard_callback((), |agent| {
        if agent.core.is_hookless() {
            call_context::end_scope(agent.counting_parts(), agent.core.jni_env(env));
        }
    });
}

/// Runs `go_on`, which may switch the current thread's counters, and publishes their index. `None`: they cannot be
/// switched.
pub(super) fn with_switched_counters<T>(
    agent: &Agent,
    env: JniEnvironment,
    go_on: impl FnOnce(&ThreadState) -> T,
) -> Option<T> {
    // If tracking is not lazy, the index of other counters is meaningless.
    if !agent.core.is_live() || !agent.counters.tracking.is_lazy() || env.has_exception() {
        return None;
    }
    let thread = agent.core.jvmti.current_thread()?;
    let own: OwnState = state_of(agent.thread_parts(), env, thread);
    let done = own.get().map(|state| {
        let before = state.index_address();
        agent
            .marks
            .leave_counters(agent.counting_parts(), env, state);
        let done = go_on(state);
        agent
            .marks
            .enter_counters(agent.counting_parts(), env, state);
        if state.index_address() != before
            && let Some(fields) = agent.core.fields.get()
        {
            env.set_long(
                thread,
                fields.events.as_raw(),
                state.index_address() as jlong,
            );
        }
        done
    });
    env.delete_local(thread);
    done
}

fn stack_trace_array(env: JniEnvironment, elements: &[StackElement]) -> Option<jobject> {
    let class = env.find_class(c"java/lang/StackTraceElement")?;
    let constructor = env.method_id(
        class,
        c"<init>",
        c"(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;I)V",
    )?;
    let array = env.new_objects(class, jint::try_from(elements.len()).ok()?)?;
    for (index, element) in elements.iter().enumerate() {
        let object = element.to_java_object(env, class, constructor)?;
        env.set_element(array, index as jint, object);
        env.delete_local(object);
    }
    Some(array)
}

impl StackElement {
    fn to_java_object(
        &self,
        env: JniEnvironment,
        class: jclass,
        constructor: jvmti_bindings::sys::jni::jmethodID,
    ) -> Option<jobject> {
        let (owner, method) = (env.new_string(&self.class)?, env.new_string(&self.method)?);
        let file = match &self.file {
            Some(file) => env.new_string(file)?,
            None => std::ptr::null_mut(),
        };
        let args = [
            jvalue { l: owner },
            jvalue { l: method },
            jvalue { l: file },
            jvalue { i: self.line },
        ];
        let object = env.new_object(class, constructor, &args);
        for text in [owner, method, file] {
            env.delete_local(text);
        }
        object
    }
}

/// `Allocations.unable0`: why allocations of the current thread cannot be counted; null: they can.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_Allocations_unable0(env: *mut JNIEnv, _: jclass) -> jobject {
    guard_callback(std::ptr::null_mut(), |agent| {
        let env = agent.core.jni_env(env);
        let text = match current_state(agent.thread_parts(), env).get() {
            _ if agent.core.is_hookless() => Some(
                "no class has hooks, so not every allocation is counted: it wants events=alloc, or tracking=lazy and \
                 `lucce ctl`",
            ),
            Some(state) => allocation_marks::refusal_reason(agent.counting_parts(), state),
            None => Some("the agent does not know this thread"),
        };
        let text = text.and_then(|text| env.new_string(text));
        text.unwrap_or(std::ptr::null_mut())
    })
}

/// `Allocations.begin0`: begins a measurement and returns its mark; 0: impossible, -1: too many measurements are
/// open. `with_tasks`: whether work that the measured code passes to other threads counts as well.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_Allocations_begin0(
    env: *mut JNIEnv,
    _: jclass,
    with_tasks: jboolean,
) -> jlong {
    guard_callback(0, |agent| {
        let env = agent.core.jni_env(env);
        begin_mark(agent, env, with_tasks != 0)
    })
}

/// Begins a measurement of the current thread. Returns its mark; 0: impossible, -1: too many measurements are open.
fn begin_mark(agent: &'static Agent, env: JniEnvironment, with_tasks: bool) -> jlong {
    let state = current_state(agent.thread_parts(), env);
    let state = state.get();
    let state = state
        .filter(|state| allocation_marks::refusal_reason(agent.counting_parts(), state).is_none());
    let begun = state.map(|state| {
        agent
            .marks
            .begin_mark(agent.counting_parts(), env, (state, with_tasks))
    });
    match begun {
        Some(MarkStart::Mark(mark)) => mark as jlong,
        Some(MarkStart::TooMany) => -1,
        None => 0,
    }
}

/// `Allocations.site0`: the number of the call site from which the measured code must run; -1: any.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_Allocations_site0(
    _: *mut JNIEnv,
    _: jclass,
    mark: jlong,
) -> jint {
    guard_callback(-1, |agent| {
        let site = agent.marks.measurement_of_mark(mark as u64);
        site.and_then(|site| jint::try_from(site).ok())
            .unwrap_or(-1)
    })
}

/// `Allocations.stop0`: the measured code has ended.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_Allocations_stop0(env: *mut JNIEnv, _: jclass, mark: jlong) {
    guard_callback((), |agent| {
        let env = agent.core.jni_env(env);
        if let Some(state) = current_state(agent.thread_parts(), env).get() {
            agent
                .marks
                .stop_mark(agent.counting_parts(), env, (state, mark as u64));
        }
    });
}

/// `Allocations.handed0`: threads and tasks that the measured code has passed to others since the last call. The
/// first element is a text: how many tasks have not ended, among those that do not report their end themselves.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_Allocations_handed0(
    env: *mut JNIEnv,
    _: jclass,
    mark: jlong,
) -> jobject {
    guard_callback(std::ptr::null_mut(), |agent| {
        let env = agent.core.jni_env(env);
        let (handed, plain) = agent
            .marks
            .take_handed(agent.counting_parts(), env, mark as u64);
        let array = || {
            let length = i32::try_from(handed.len() + 1).ok()?;
            let object = env.find_class(c"java/lang/Object")?;
            let array = env.new_objects(object, length)?;
            let count = env.new_string(&plain.to_string())?;
            env.set_element(array, 0, count);
            for (at, object) in (1..).zip(&handed) {
                env.set_element(array, at, *object);
            }
            Some(array)
        };
        let array = array();
        handed.iter().for_each(|object| env.delete_global(*object));
        array.unwrap_or(std::ptr::null_mut())
    })
}

/// `Allocations.hasBegun0`: whether a submitted `ForkJoinTask` has begun to run.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_Allocations_hasBegun0(
    env: *mut JNIEnv,
    _: jclass,
    task: jobject,
) -> jboolean {
    guard_callback(0, |agent| {
        let env = agent.core.jni_env(env);
        let carried = || {
            let class = env.find_class(c"java/util/concurrent/ForkJoinTask")?;
            let field = env.field_id(class, c"$lucceOrigin", c"J")?;
            env.delete_local(class);
            Some(env.get_long(task, field))
        };
        jboolean::from(carried() == Some(0))
    })
}

/// `Allocations.trace0`: the trace of a number, across threads.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_Allocations_trace0(
    env: *mut JNIEnv,
    _: jclass,
    id: jlong,
) -> jobject {
    object_for_number(env, id, trace::decode_across_threads, stack_trace_array)
}

/// `Allocations.end0`: ends a measurement and returns its counts, see `AllocationMarks::end_mark`. Null: the mark is
/// not one of this thread, or counting has ended.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_Allocations_end0(
    env: *mut JNIEnv,
    _: jclass,
    mark: jlong,
    left_running: jboolean,
) -> jobject {
    let ended = EndedMark {
        number: mark as u64,
        left_running: left_running != 0,
    };
    end_measurement(env, |agent, env, state| {
        let counting = agent.counting_parts();
        agent.marks.end_mark(counting, env, state, ended)
    })
}

/// Ends a measurement of the current thread. Returns `end`'s text, or null.
fn end_measurement(
    env: *mut JNIEnv,
    end: impl FnOnce(&'static Agent, JniEnvironment, Option<&ThreadState>) -> Option<String>,
) -> jobject {
    guard_callback(std::ptr::null_mut(), |agent| {
        let env = agent.core.jni_env(env);
        let state = current_state(agent.thread_parts(), env);
        let text = end(agent, env, state.get());
        let text = text.and_then(|text| env.new_string(&text));
        text.unwrap_or(std::ptr::null_mut())
    })
}

/// `ThreadCounts.begin0`: begins a measurement of the current thread and returns its mark; 0: impossible.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_ThreadCounts_begin0(env: *mut JNIEnv, _: jclass) -> jlong {
    guard_callback(0, |agent| {
        let env = agent.core.jni_env(env);
        begin_mark(agent, env, false)
    })
}

/// `ThreadCounts.end0`: ends a measurement and returns its sums as text. Null: the mark is not one of this thread, or counting
/// has ended.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_ThreadCounts_end0(
    env: *mut JNIEnv,
    _: jclass,
    mark: jlong,
) -> jobject {
    let ended = EndedMark {
        number: mark as u64,
        left_running: false,
    };
    end_measurement(env, |agent, env, state| {
        let counting = agent.counting_parts();
        let sums = agent.marks.sum_mark(counting, env, state, ended)?;
        Some(format!(
            "{} {} {} {} {}",
            sums.objects, sums.bytes, sums.waits, sums.wait_ns, sums.lost
        ))
    })
}

/// `AgentStatus.status0`: the agent's state and statistics as JSON. Null: the agent is not recording.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_AgentStatus_status0(env: *mut JNIEnv, _: jclass) -> jobject {
    guard_callback(std::ptr::null_mut(), |agent| {
        let env = agent.core.jni_env(env);
        let status = agent.core.is_live().then(|| status::current_status(agent));
        let text = status.and_then(|status| env.new_string(&status));
        text.unwrap_or(std::ptr::null_mut())
    })
}

/// `AgentStatus.lost0`: the number of dropped events; -1: the agent is not recording.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_AgentStatus_lost0(_: *mut JNIEnv, _: jclass) -> jlong {
    guard_callback(-1, |agent| match agent.core.is_live() {
        true => jlong::try_from(count_dropped_events(agent)).unwrap_or(jlong::MAX),
        false => -1,
    })
}

/// `AgentStatus.open0`: the number of open resources; -1: they are not recorded.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_AgentStatus_open0(_: *mut JNIEnv, _: jclass) -> jlong {
    guard_callback(-1, |agent| {
        let open = agent.counting.open_resources.count_open();
        let open = open.filter(|_| agent.core.is_live());
        open.map_or(-1, |open| open as jlong)
    })
}

/// Longest list of patterns, in UTF-16 units.
const MAX_PATTERNS: usize = 1 << 16;

/// `AgentStatus.lines0`: allocations by line of own code, see [`sum_by_own_line`]. Null: not every allocation is counted. If a
/// pattern is malformed, an exception is pending.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_lucce_AgentStatus_lines0(
    env: *mut JNIEnv,
    _: jclass,
    own_code: jobject,
) -> jobject {
    guard_callback(std::ptr::null_mut(), |agent| {
        if own_code.is_null() || !agent.core.is_live() {
            return std::ptr::null_mut();
        }
        // With brackets, because the constructor of the exception is entered.
        let brackets = JniEnvironment::new(env, std::ptr::null());
        let env = agent.core.jni_env(env);
        let patterns = env.read_string(own_code, MAX_PATTERNS);
        let patterns = match patterns.is_empty() {
            true => Ok(agent.core.options.app.clone()),
            false => PatternList::parse(&patterns),
        };
        let text = match patterns {
            Ok(patterns) => sum_by_own_line(agent.counting_parts(), env, &patterns),
            Err(error) => {
                brackets.throw_new(c"java/lang/IllegalArgumentException", &error.to_string());
                None
            }
        };
        let text = text.and_then(|text| env.new_string(&text));
        text.unwrap_or(std::ptr::null_mut())
    })
}
