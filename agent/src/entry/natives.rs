//! The native methods of the helper classes: the slow paths of hooks.
//!
//! Java code passes a thread's state as [`OwnState`]. Every function runs inside `session::guard`: a panic here is
//! counted, and a neutral value is returned.
#![allow(
    unsafe_code,
    reason = "functions that the JVM calls, with pointers that it was given here"
)]

use std::ptr;
use std::sync::atomic::Ordering;

use jvmti_bindings::sys::jni::{JNIEnv, jboolean, jclass, jint, jlong, jobject, jvalue};
use lucce_callgraph::{ContextId, MethodId, SiteId};
use lucce_instrument::kinds::{ALLOC, LOCK, NAMED_CALL, NAMED_TIME, OPEN, REQUEST};

use lucce_jvmti::JniEnvironment;

use crate::classes::java_agents::TransformRequest;
use crate::classes::rewriting::RewriteOutcome;
use crate::classes::{java_agents, load};
use crate::counting::event_types::count_program_event;
use crate::counting::{method_times, object_types, site_counter, stream};
use crate::entry::java_api::with_switched_counters;
use crate::events;
use crate::events::HookEvent;
use crate::events::exception_trace::{ThrownException, TraceAction};
use crate::events::{class, lock, lock_holders, open, request};
use crate::hookless::{named_calls, open_resources};
use crate::memory::counter::increment_counter;
use crate::memory::event_mask;
use crate::memory::shared_layout::SEVERAL;
use crate::memory::slots::Slot;
use crate::options::StartDelay;
use crate::session::Agent;
use crate::session::guard::{guard_callback, guard_event, guard_hook_event};
use crate::session::{delay, method_hooks};
use crate::stack::caller_frames::EventPlace;
use crate::stack::frames::StackWalk;
use crate::stack::tasks::TaskSubmission;
use crate::stack::{
    StackParts, assembly, context_scopes, continuations, deferred_entries, tasks, verify, vm_entry,
};
use crate::thread::monitor_waits::LockSlot;
use crate::thread::tags::TagSet;
use crate::thread::{OwnState, ThreadState, lifecycle, tag_scope};

/// Gives `thread` a state, and a shadow stack unless it has one.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_addThread(
    env: *mut JNIEnv,
    _: jclass,
    thread: jobject,
    pointer: jlong,
) {
    guard_callback((), |agent| {
        if !thread.is_null() {
            lifecycle::enlist_thread(
                agent.thread_parts(),
                agent.core.jni_env(env),
                thread,
                Slot::from_pointer(pointer as usize),
            );
        }
    });
}

/// Whether Java code has called the method whose hook makes this call.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_hasCaller(env: *mut JNIEnv, _: jclass) -> u8 {
    guard_callback(1, |agent| {
        // Beyond the method itself; frames of helper classes do not count.
        let mut frames = StackWalk::new(agent.stack_parts(), agent.core.jni_env(env), 8);
        u8::from(frames.nth(1).is_some() || frames.has_failed())
    })
}

/// The VM enters a method. `pointer`: the thread's pointer. Returns the slot of the entered frame.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_enterFromVm(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    pointer: jlong,
) -> jlong {
    enter_from_vm(env, own, pointer, |agent, env, state, pointer| {
        vm_entry::enter_frame(agent, env, state, pointer, 1)
    })
}

/// Gives a slot to a frame that the VM enters. `pointer`: the thread's pointer, which stays if the thread has no stack.
fn enter_from_vm(
    env: *mut JNIEnv,
    own: OwnState,
    pointer: jlong,
    enter: impl FnOnce(StackParts<'_>, JniEnvironment, &ThreadState, Slot) -> Slot,
) -> jlong {
    guard_callback(pointer, |agent| {
        own.get().map_or(pointer, |state| {
            let pointer = Slot::from_pointer(pointer as usize);
            let env = agent.core.jni_env(env);
            enter(agent.stack_parts(), env, state, pointer).pointer() as jlong
        })
    })
}

/// The VM enters a method whose caller is asked for later. Returns the slot of the entered frame.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_deferVmEntry(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    pointer: jlong,
) -> jlong {
    enter_from_vm(env, own, pointer, deferred_entries::defer_entry)
}

/// Finds the caller of a deferred VM entry. `slot`: the caller's place; `top`, `method`: the place and the method of the
/// event, see [`EventPlace`]. Returns whether `slot` has a site now.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_locateVmEntry(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    slot: jlong,
    top: jlong,
    method: jint,
) -> u8 {
    guard_callback(0, |agent| {
        let [slot, top] = [slot, top].map(|at| Slot::from_pointer(at as usize));
        let event = EventPlace {
            slot: top,
            method: MethodId(method as u32),
        };
        own.get().map_or(0, |state| {
            u8::from(deferred_entries::locate_entry(
                agent.stack_parts(),
                agent.core.jni_env(env),
                state,
                (slot, event),
            ))
        })
    })
}

/// The frame of a VM entry ends. Returns the pointer from before it.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_leaveToVm(
    _: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    slot: jlong,
) -> jlong {
    guard_callback(slot, |_| {
        own.get().map_or(slot, |state| {
            vm_entry::leave_frame(state, Slot::from_pointer(slot as usize)).pointer() as jlong
        })
    })
}

/// Writes sites to slots that have none. Returns whether `slot` has a site now. `top`, `method`: as in
/// [`Java_java_lang_LucceRtNatives_locateVmEntry`].
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_repairSlots(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    slot: jlong,
    top: jlong,
    method: jint,
) -> u8 {
    guard_callback(0, |agent| {
        let [slot, top] = [slot, top].map(|at| Slot::from_pointer(at as usize));
        let event = EventPlace {
            slot: top,
            method: MethodId(method as u32),
        };
        own.get().map_or(0, |state| {
            u8::from(vm_entry::repair_slots(
                agent.stack_parts(),
                agent.core.jni_env(env),
                state,
                slot,
                event,
            ))
        })
    })
}

/// The context of a thread's first frame, of `method`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_rootContext(
    _: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    method: jint,
) -> jlong {
    guard_callback(0, |agent| {
        let method = MethodId(method as u32);
        let first = match own.get() {
            Some(state) => tasks::first_context(agent.stack_parts(), state, method),
            None => agent.core.encoder.root_context(method),
        };
        first.0 as jlong
    })
}

/// The context of a frame of `callee`, called at `site` of a frame with `context`. 0: there is no such site.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_addTransition(
    _: *mut JNIEnv,
    _: jclass,
    context: jlong,
    site: jint,
    callee: jint,
) -> jlong {
    guard_callback(0, |agent| {
        let site = SiteId(site as u32);
        let Some(caller) = agent
            .core
            .registry()
            .site(site.0)
            .map(|info| MethodId(info.method))
        else {
            return 0;
        };
        let (context, callee) = (ContextId(context as u64), MethodId(callee as u32));
        agent
            .core
            .encoder
            .encode_call(context, site, caller, callee)
            .0 as jlong
    })
}

/// The address of the counter for events at `site` of a frame with `context`, added if needed. 0: there is none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_insertCounter(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    context: jlong,
    site: jint,
) -> jlong {
    guard_callback(0, |agent| {
        own.get().map_or(0, |state| {
            let place = (context as u64, SiteId(site as u32));
            let env = agent.core.jni_env(env);
            site_counter::insert_counter(agent.counting_parts(), env, state, place).unwrap_or(0)
                as jlong
        })
    })
}

/// The word of a class; `made` is an object of the class; if it is null, the function makes one. Returns 0 if the
/// class gets no word.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_resolveObjectWord(
    env: *mut JNIEnv,
    _: jclass,
    class: jclass,
    made: jobject,
) -> jlong {
    guard_callback(0, |agent| {
        let env = agent.core.jni_env(env);
        if class.is_null() || env.has_exception() {
            return 0;
        }
        object_types::resolve_object_word(agent.counting_parts(), env, class, made).unwrap_or(0)
    })
}

/// The word of a class that need not have objects. 0: the class gets no word.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_resolveClassWord(
    env: *mut JNIEnv,
    _: jclass,
    class: jclass,
) -> jlong {
    guard_callback(0, |agent| {
        let env = agent.core.jni_env(env);
        if class.is_null() || env.has_exception() {
            return 0;
        }
        object_types::resolve_number_word(agent.counting_parts(), env, class).unwrap_or(0)
    })
}

/// The site for objects of a type that are made at `site`. 0: no ids are left.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_resolveTypedSite(
    _: *mut JNIEnv,
    _: jclass,
    site: jint,
    of: jint,
) -> jlong {
    guard_callback(0, |agent| {
        let typed = match site {
            0 => None,
            site => agent
                .core
                .registry_mut()
                .resolve_typed_site(site as u32, of as u32),
        };
        typed.map_or(0, jlong::from)
    })
}

/// With `verify=N`: compares a number with the current thread's stack. `returned`: innermost frames that have returned.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_compareContext(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    number: jlong,
    returned: jint,
) {
    guard_callback((), |agent| {
        // Without a thread's state, the call only binds the native method.
        if let Some(state) = own.get() {
            state.countdown.restart(agent.core.options.verify);
            let number = ContextId(number as u64);
            verify::compare_number(
                agent.stack_parts(),
                agent.core.jni_env(env),
                number,
                returned as usize,
            );
        }
    });
}

/// Counts dropped events.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_dropEvents(
    _: *mut JNIEnv,
    _: jclass,
    events: jint,
) {
    guard_callback((), |agent| {
        let lost = &agent.core.counts.events_dropped;
        lost.fetch_add(events as u64, Ordering::Relaxed);
    });
}

/// Counts a call from code without hooks. With `really` 0, the call only binds the native method.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_countUntracked(
    _: *mut JNIEnv,
    _: jclass,
    really: jboolean,
) {
    if really != 0 {
        guard_callback((), |agent| {
            increment_counter(&agent.core.counts.untracked_calls);
        });
    }
}

/// Code of classes was replaced.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_forgetCode(_: *mut JNIEnv, _: jclass) {
    guard_callback((), |agent| agent.stack.forget_code());
}

/// The current virtual thread is about to be unmounted, or stays mounted after all.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_setUnmounting(
    env: *mut JNIEnv,
    _: jclass,
    thread: jobject,
    really: jboolean,
) {
    guard_callback((), |agent| {
        let env = agent.core.jni_env(env);
        if thread.is_null() || env.has_exception() {
            return;
        }
        // Like `VirtualThread` itself: `true` before it is unmounted, `false` when it is mounted again.
        let name = match really {
            0 => c"notifyJvmtiMount",
            _ => c"notifyJvmtiUnmount",
        };
        let class = env.class_of(thread);
        if let Some(method) = env.method_id(class, name, c"(Z)V") {
            env.call_void_on(thread, method, &[jvalue { z: really }]);
        }
        env.delete_local(class);
    });
}

/// `CallContext.event`: an event of the program, of a kind that Java code does not know, or the first in its context.
/// From now on Java code has the kind, at `place` in `kinds`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtProgramEvents_countNewEvent(
    env: *mut JNIEnv,
    class: jclass,
    own: OwnState,
    number: jlong,
    kind: jobject,
    value: jlong,
    kinds: jobject,
    place: jint,
) {
    guard_callback((), |agent| {
        let (Some(state), false) = (own.get(), kind.is_null()) else {
            return;
        };
        let env = agent.core.jni_env(env);
        let number = ContextId(number as u64);
        let event = count_program_event(agent.counting_parts(), env, state, number, kind, value);
        if kinds.is_null() {
            agent
                .counting
                .program_kinds
                .create_array((&agent.counters.coverage, env), class, kind);
        } else if let Some(event) = event {
            agent
                .counting
                .program_kinds
                .add_kind(env, (kinds, place), kind, event);
        }
    });
}

/// With `stream=on`: makes room for an event that Java code writes.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_makeStreamRoom(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    now: jlong,
) {
    guard_callback((), |agent| {
        if let Some(state) = own.get() {
            stream::make_room(
                agent.counting_parts(),
                agent.core.jni_env(env),
                state,
                now.cast_unsigned(),
            );
        }
    });
}

/// The bytes of a hidden class with the agent's changes. Null: the class stays as it is.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_hookHiddenClass(
    env: *mut JNIEnv,
    _: jclass,
    loader: jobject,
    bytes: jobject,
    offset: jint,
    length: jint,
) -> jobject {
    guard_callback(ptr::null_mut(), |agent| {
        if bytes.is_null() {
            return ptr::null_mut();
        }
        let env = agent.core.jni_env(env);
        let class_bytes = usize::try_from(length).unwrap_or(0);
        class::note_class_bytes(agent.counting_parts(), env, None, class_bytes);
        let loader = agent.core.loaders.loader_id(agent.core.jvmti, env, loader);
        let repaired = env
            .read_bytes(bytes, offset, length)
            .map(|bytes| load::transform_hidden_class(agent.class_parts(), loader, &bytes))
            .and_then(RewriteOutcome::into_bytes)
            .and_then(|bytes| {
                agent
                    .counters
                    .coverage
                    .exclude_allocations(env, || env.new_byte_array(&bytes))
            });
        repaired.unwrap_or(ptr::null_mut())
    })
}

/// In place of `TransformerManager.transform`. Null: no Java agent changes the class, or an exception is pending.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtClasses_transform(
    env: *mut JNIEnv,
    _: jclass,
    manager: jobject,
    module: jobject,
    loader: jobject,
    name: jobject,
    changed: jobject,
    domain: jobject,
    bytes: jobject,
) -> jobject {
    let Some(agent) = Agent::get_permanent().filter(|_| !manager.is_null()) else {
        return ptr::null_mut();
    };
    let env = agent.core.jni_env(env);
    let class = TransformRequest {
        loader,
        name,
        is_loaded: !changed.is_null(),
    };
    let plain = guard_callback(None, |agent| {
        class.find_plain_bytes(agent.class_parts(), env, bytes)
    });
    // Outside of a guard: exceptions of transformers belong to the program.
    let given = plain.unwrap_or(bytes);
    let arguments = [module, loader, name, changed, domain, given];
    let transformed = java_agents::call_transformers(env, manager, &arguments);
    if env.has_exception() || transformed.is_null() {
        return transformed;
    }
    let hooked = guard_callback(None, |agent| {
        class.hook_answer(agent.class_parts(), env, (manager, transformed))
    });
    hooked.unwrap_or(transformed)
}

/// The context by which a frame continues behind another one, as `find` says; 0: there is none.
fn continued_context(
    context: jlong,
    method: jint,
    find: impl FnOnce(StackParts<'_>, ContextId, MethodId) -> Option<ContextId>,
) -> jlong {
    guard_callback(0, |agent| {
        let (context, method) = (ContextId(context as u64), MethodId(method as u32));
        find(agent.stack_parts(), context, method).map_or(0, |context| context.0 as jlong)
    })
}

/// The context of a frame of `method` that continues where `number` was captured; 0: there is none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_scopeContext(
    _: *mut JNIEnv,
    _: jclass,
    number: jlong,
    method: jint,
) -> jlong {
    continued_context(number, method, context_scopes::scope_context)
}

/// The context of the frame between an object's code and what made it; 0: it is not known. `context`: that of the frame
/// of its constructor.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_assemblyContext(
    _: *mut JNIEnv,
    _: jclass,
    context: jlong,
    constructor: jint,
) -> jlong {
    continued_context(context, constructor, assembly::assembly_context)
}

/// The site of that frame; 0: no ids are left.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_assemblySite(
    _: *mut JNIEnv,
    _: jclass,
) -> jint {
    guard_callback(0, |agent| {
        assembly::assembled_frame(agent.stack_parts()).map_or(0, |frame| frame.site.0 as jint)
    })
}

/// The context of a frame of `method` that runs a continuation, which keeps `number`; 0: it is that of its caller.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_resumedContext(
    _: *mut JNIEnv,
    _: jclass,
    number: jlong,
    method: jint,
) -> jlong {
    continued_context(number, method, continuations::resumed_context)
}

/// A task without the agent's field is submitted.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_submitTask(
    _: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    task: jobject,
    number: jlong,
) {
    guard_callback((), |agent| {
        if let Some(state) = own.get().filter(|_| !task.is_null()) {
            let submission = tasks::SubmissionPlace {
                number: ContextId(number as u64),
                tags: state.tags.borrow().current_set(),
            };
            tasks::submit_task(agent.stack_parts(), task, submission);
        }
    });
}

/// The executor rejects a task without the agent's field that was just submitted: this run will not happen.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_rejectTask(
    env: *mut JNIEnv,
    _: jclass,
    task: jobject,
) {
    guard_callback((), |agent| {
        if !task.is_null() {
            tasks::reject_task(agent.stack_parts(), task);
            if agent.core.event_mask.is_enabled(event_mask::FOLLOW) {
                agent.marks.take_back_task(agent.core.jni_env(env), task);
            }
        }
    });
}

/// While allocations are measured: a thread is started, or a task submitted, in the context `number`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_handTask(
    env: *mut JNIEnv,
    _: jclass,
    task: jobject,
    number: jlong,
    is_plain: jint,
) {
    guard_callback((), |agent| {
        if !task.is_null() {
            let handed = (task, ContextId(number as u64));
            agent.marks.hand_task(
                agent.counting_parts(),
                agent.core.jni_env(env),
                handed,
                is_plain != 0,
            );
        }
    });
}

/// While allocations are measured: the executor rejects a task that can report whether it has run.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_takeBackTask(
    env: *mut JNIEnv,
    _: jclass,
    task: jobject,
) {
    guard_callback((), |agent| {
        if !task.is_null() {
            agent.marks.take_back_task(agent.core.jni_env(env), task);
        }
    });
}

/// While allocations are measured: the frame with slot `slot` begins to run a task. `number`: the value of its field,
/// 0 if it has none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_beginTask(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    task: jobject,
    number: jlong,
    slot: jlong,
) {
    guard_callback((), |agent| {
        if let Some(state) = own.get().filter(|_| !task.is_null()) {
            let task = (task, ContextId(number as u64));
            agent.marks.begin_task(
                agent.counting_parts(),
                agent.core.jni_env(env),
                (state, slot as usize),
                task,
            );
        }
    });
}

/// While allocations are measured: the frame has finished its task.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_endTask(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    slot: jlong,
) {
    guard_callback((), |agent| {
        if let Some(state) = own.get() {
            agent
                .marks
                .end_task(agent.core.jni_env(env), state, slot as usize);
        }
    });
}

/// The context of the frame of `method` with slot `slot`, which runs a task. `number`: the value of the task's field,
/// 0 if it has none. Returns 0 if traces of the frame do not continue elsewhere.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_taskContext(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    task: jobject,
    number: jlong,
    slot: jlong,
    method: jint,
) -> jlong {
    guard_callback(0, |agent| {
        let frame = (Slot::from_pointer(slot as usize), MethodId(method as u32));
        let Some(state) = own.get() else { return 0 };
        let number = match number {
            0 => begin_plain_task(agent, env, state, (task, slot as u64)),
            SEVERAL => ContextId::UNKNOWN,
            number => ContextId(number as u64),
        };
        let context = match number {
            ContextId::UNKNOWN if !agent.core.event_mask.is_enabled(event_mask::ORIGINS) => None,
            ContextId::UNKNOWN => tasks::unknown_task_context(agent.stack_parts(), state, frame),
            number => tasks::task_context(agent.stack_parts(), state, number, frame)
                .or_else(|| tasks::unknown_task_context(agent.stack_parts(), state, frame)),
        };
        context.map_or(0, |context| context.0 as jlong)
    })
}

/// The current thread begins to run a task without the agent's field, in the frame with this slot. Returns the context
/// of its submission; unknown: it has none.
fn begin_plain_task(
    agent: &Agent,
    env: *mut JNIEnv,
    state: &ThreadState,
    (task, slot): (jobject, u64),
) -> ContextId {
    let (number, tags) = match tasks::take_submission(agent.stack_parts(), task) {
        TaskSubmission::Unknown => return ContextId::UNKNOWN,
        TaskSubmission::Several => (ContextId::UNKNOWN, TagSet::NONE),
        TaskSubmission::At(place) => (place.number, place.tags),
    };
    let is_tagged = agent.core.event_mask.is_enabled(event_mask::TAGS);
    if is_tagged && state.tags.borrow().current_set() != tags {
        let env = agent.core.jni_env(env);
        with_switched_counters(agent, env, |state| {
            tag_scope::begin_tagged_task(agent.thread_parts(), env, state, (tags, slot));
        });
    }
    number
}

/// Runs `switch`, which may change the tags of the current thread, if the thread is recorded.
fn guard_tag_switch(
    env: *mut JNIEnv,
    own: OwnState,
    switch: impl FnOnce(&Agent, JniEnvironment, &ThreadState),
) {
    guard_callback((), |agent| {
        if own.get().is_some() {
            let env = agent.core.jni_env(env);
            with_switched_counters(agent, env, |state| switch(agent, env, state));
        }
    });
}

/// The frame with slot `slot` starts to run a task that was submitted under the tags with this number.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_beginTaggedTask(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    tags: jint,
    slot: jlong,
) {
    guard_tag_switch(env, own, |agent, env, state| {
        let task = (TagSet::from_number(tags.cast_unsigned()), slot as u64);
        tag_scope::begin_tagged_task(agent.thread_parts(), env, state, task);
    });
}

/// The frame with slot `slot` has finished its task.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_endTaggedTask(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    slot: jlong,
) {
    guard_tag_switch(env, own, |agent, env, state| {
        tag_scope::end_tagged_tasks(agent.thread_parts(), env, state, slot as u64);
    });
}

/// A hook reports an event of one kind of the event mask in the current thread: see [`HookEvent`].
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_recordHookEvent(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    kind: jint,
    number: jlong,
    site: jint,
    object: jobject,
    amount: jlong,
    passed: jlong,
) {
    let kind = u64::from(kind.cast_unsigned());
    guard_event(kind, |agent| {
        let [amount, passed] = [amount, passed].map(|value| u64::try_from(value).unwrap_or(0));
        if let Some(state) = own.get() {
            let event = HookEvent {
                number: ContextId(number as u64),
                site,
                object,
                amount,
                passed,
            };
            let env = agent.core.jni_env(env);
            events::record_hook_event(agent.counting_parts(), env, state, kind, event);
        }
    });
}

/// The current thread parks until a lock has no owner: see [`lock::begin_owned_wait`]. Returns the wait's slot plus 1.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_beginOwnedWait(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    lock: jobject,
    number: jlong,
) -> jint {
    let mut begun = 0;
    guard_hook_event(LOCK.mask_bit, env, (own, lock), |agent, env, state| {
        let number = ContextId(number as u64);
        let slot = lock::begin_owned_wait(agent.counting_parts(), env, state, lock, number);
        begun = slot.map_or(0, |LockSlot(slot)| slot as jint + 1);
    });
    begun
}

/// The wait with the slot `wait` - 1 ends.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_endOwnedWait(
    env: *mut JNIEnv,
    _: jclass,
    wait: jint,
) {
    guard_callback((), |agent| {
        if let Ok(slot) = usize::try_from(i64::from(wait) - 1) {
            lock_holders::end_wait(agent.core.jni_env(env), LockSlot(slot));
        }
    });
}

/// The current thread acquires the lock for which another one waits: see [`lock_holders::note_acquired`].
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_noteAcquired(
    _: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    slot: jint,
    turn: jlong,
) {
    guard_event(LOCK.mask_bit, |_| {
        if let Some(state) = own.get() {
            lock_holders::note_acquired(state, slot as usize, turn as u64);
        }
    });
}

/// The current thread releases that lock: see [`lock_holders::note_released`].
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_noteReleased(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    slot: jint,
    turn: jlong,
    number: jlong,
) {
    guard_event(LOCK.mask_bit, |agent| {
        if let Some(state) = own.get() {
            let (parts, env) = (agent.counting_parts(), agent.core.jni_env(env));
            let wait = (slot as usize, turn as u64);
            lock_holders::note_released(parts, env, state, wait, ContextId(number as u64));
        }
    });
}

/// The current thread closes an object: see [`open::close_resource`].
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_closeResource(
    env: *mut JNIEnv,
    _: jclass,
    resource: jobject,
) {
    guard_callback((), |agent| {
        if agent.core.is_live() && !resource.is_null() {
            let env = agent.core.jni_env(env);
            open::close_resource(agent.counting_parts(), env, resource);
        }
    });
}

/// A method that receives requests begins: see [`request::open_request`].
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_openRequest(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    number: jlong,
    site: jint,
    argument: jobject,
    slot: jlong,
) {
    guard_event(REQUEST.mask_bit, |agent| {
        if own.get().is_none() {
            return;
        }
        if agent.core.options.delay == Some(StartDelay::Ready) {
            delay::begin_counting(agent);
        }
        // With brackets, which restore the thread's pointer after each method of the program.
        let bracketed = JniEnvironment::new(env, ptr::null());
        let env = agent.core.jni_env(env);
        let begin = request::RequestBegin {
            number: ContextId(number as u64),
            site: site as u32,
            slot: slot as u64,
        };
        // The program's methods run here, before the thread's counters are taken.
        let name = request::name_request(agent.counting_parts(), bracketed, begin.site, argument);
        if let Some(name) = name {
            with_switched_counters(agent, env, |state| {
                request::open_request(agent.counting_parts(), env, state, begin, &name);
            });
        }
    });
}

/// The method with the thread's open request ends.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_closeRequest(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
) {
    guard_tag_switch(env, own, |agent, env, state| {
        request::close_request(agent.counting_parts(), env, state);
    });
}

/// Makes room for one more method in progress whose time is recorded. Returns the block's address.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_growTimes(
    _: *mut JNIEnv,
    _: jclass,
    own: OwnState,
) -> jlong {
    guard_callback(0, |_| {
        let block = own.get().map(ThreadState::grow_times);
        block.unwrap_or(0).cast_signed()
    })
}

/// The address of the counter for times with this index in a context, added if needed. 0: there is none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_addTimeCounter(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    number: jlong,
    index: jint,
) -> jlong {
    guard_callback(0, |agent| {
        let Some(state) = own.get() else {
            return 0;
        };
        let time = (ContextId(number as u64), index.cast_unsigned());
        let env = agent.core.jni_env(env);
        let counter = method_times::insert_time_counter(agent.counting_parts(), env, state, time);
        counter.unwrap_or(0) as jlong
    })
}

/// A named method of a JVM without other hooks begins. Number 0 only binds the native method.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNamed_begin(
    env: *mut JNIEnv,
    _: jclass,
    number: jint,
) -> jlong {
    let mut open = 0;
    guard_event(NAMED_CALL.mask_bit | NAMED_TIME.mask_bit, |agent| {
        if let Some(call) = method_hooks::find_call(number.cast_unsigned()) {
            let env = agent.core.jni_env(env);
            open = named_calls::begin_call(agent.counting_parts(), env, call);
        }
    });
    open.into()
}

/// The method ends, by a return.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNamed_end(env: *mut JNIEnv, _: jclass, open: jlong) {
    end_named_call(env, open, false);
}

/// The method has opened a resource.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNamed_openResource(
    env: *mut JNIEnv,
    _: jclass,
    resource: jobject,
    _: jlong,
    _: jint,
) {
    guard_event(OPEN.mask_bit, |agent| {
        if !resource.is_null() {
            let env = agent.core.jni_env(env);
            open_resources::open_resource(agent.counting_parts(), env, resource);
        }
    });
}

/// The method closes an object, which may be a resource.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNamed_closeResource(
    env: *mut JNIEnv,
    class: jclass,
    resource: jobject,
    _: jlong,
    _: jint,
) {
    Java_java_lang_LucceRtNatives_closeResource(env, class, resource);
}

/// The method ends, by an exception.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNamed_endThrown(
    env: *mut JNIEnv,
    _: jclass,
    open: jlong,
) {
    end_named_call(env, open, true);
}

fn end_named_call(env: *mut JNIEnv, open: jlong, is_thrown: bool) {
    if let Ok(open @ 1..) = u32::try_from(open) {
        guard_callback((), |agent| {
            let env = agent.core.jni_env(env);
            named_calls::end_call(agent.counting_parts(), env, open, is_thrown);
        });
    }
}

/// The VM has filled in the trace of an exception.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtNatives_resolveTrace(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    exception: jobject,
    trace: jobject,
    bytes: jlong,
    text: jlong,
) -> jint {
    let mut answer = TraceAction::Nothing;
    guard_hook_event(ALLOC.mask_bit, env, (own, trace), |agent, env, state| {
        let thrown = ThrownException {
            exception,
            trace,
            trace_bytes: u64::try_from(bytes).unwrap_or(0),
            text_bytes: u64::try_from(text).unwrap_or(0),
        };
        answer = thrown.record_trace(agent.counting_parts(), env, state);
    });
    answer as jint
}
