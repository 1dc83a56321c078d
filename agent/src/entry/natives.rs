//! The native methods of the helper class: the slow paths.
//!
//! A thread's state comes as Java code has it: see `thread::OwnState`. Every function ends in `session::guard`: a panic
//! here is counted and answered with a neutral value.
#![allow(
    unsafe_code,
    reason = "functions that the JVM calls, with pointers that it was given here"
)]

use std::ptr;
use std::sync::atomic::Ordering;

use jvmti_bindings::sys::jni::{JNIEnv, jboolean, jclass, jint, jlong, jobject, jvalue};
use lucce_callgraph::{ContextId, MethodId, SiteId};

use crate::classes::java_agents::Asked;
use crate::classes::{java_agents, load};
use crate::counting::event_types::own_event;
use crate::counting::{insert, stream, types};
use crate::events;
use crate::events::Told;
use crate::events::thrown::{Answer, Thrown};
use crate::memory::counter::count;
use crate::memory::gate;
use crate::memory::slots::Slot;
use crate::session::Agent;
use crate::session::guard::{guard, guard_event, told_by_hook};
use crate::stack::frames::Walk;
use crate::stack::{calls, scopes, tasks, upcall, verify};
use crate::thread::{OwnState, life};

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_enlist(
    env: *mut JNIEnv,
    _: jclass,
    thread: jobject,
    pointer: jlong,
) {
    guard((), |agent| {
        if !thread.is_null() {
            life::enlist(agent, agent.env(env), thread, Slot::at(pointer as usize));
        }
    });
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_hasCaller(env: *mut JNIEnv, _: jclass) -> u8 {
    guard(1, |agent| {
        // Behind the method that it is asked for; frames of the helper class do not count.
        let mut frames = Walk::new(agent, agent.env(env), 8);
        u8::from(frames.nth(1).is_some() || frames.has_failed())
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_upcall(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    pointer: jlong,
) -> jlong {
    guard(pointer, |agent| {
        own.get().map_or(pointer, |state| {
            let pointer = Slot::at(pointer as usize);
            upcall::enter(agent, agent.env(env), state, pointer, 1).pointer() as jlong
        })
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_upcallEnd(
    _: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    slot: jlong,
) -> jlong {
    guard(slot, |_| {
        own.get().map_or(slot, |state| {
            upcall::leave(state, Slot::at(slot as usize)).pointer() as jlong
        })
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_repair(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    slot: jlong,
    top: jlong,
) -> u8 {
    guard(0, |agent| {
        let [slot, top] = [slot, top].map(|at| Slot::at(at as usize));
        own.get().map_or(0, |state| {
            u8::from(upcall::repair(agent, agent.env(env), state, slot, top))
        })
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_root(
    _: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    method: jint,
) -> jlong {
    guard(0, |agent| {
        let method = MethodId(method as u32);
        let first = match own.get() {
            Some(state) => tasks::first(agent, state, method),
            None => agent.encoder.root(method),
        };
        first.0 as jlong
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_step0(
    _: *mut JNIEnv,
    _: jclass,
    context: jlong,
    site: jint,
    callee: jint,
) -> jlong {
    guard(0, |agent| {
        let site = SiteId(site as u32);
        let Some(caller) = agent.book().site(site.0).map(|info| MethodId(info.method)) else {
            return 0;
        };
        let (context, callee) = (ContextId(context as u64), MethodId(callee as u32));
        agent.encoder.step(context, site, caller, callee).0 as jlong
    })
}

/// With `tracking=cct`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtComparison_child0(
    _: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    node: jlong,
    site: jint,
    callee: jint,
) -> jlong {
    guard(0, |agent| {
        let place = (node as u64, SiteId(site as u32));
        let callee = MethodId(callee as u32);
        let child = own.get().and_then(|state| {
            let compared = || state.compared();
            agent.comparison.step(compared, place, callee).flatten()
        });
        child.map_or(0, |node| node as jlong)
    })
}

/// With `tracking=paper`: a method with slot `slot` was called at `site`, and the graph may change.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtComparison_update0(
    _: *mut JNIEnv,
    _: jclass,
    slot: jlong,
    site: jint,
    callee: jint,
) {
    guard((), |agent| {
        if slot != 0 {
            let (slot, site) = (Slot::at(slot as usize), SiteId(site as u32));
            agent
                .comparison
                .entered(agent, slot, site, MethodId(callee as u32));
        }
    });
}

/// With `tracking=paper`: the number of the frame of `method` with slot `slot`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtComparison_number0(
    _: *mut JNIEnv,
    _: jclass,
    slot: jlong,
    method: jint,
) -> jlong {
    guard(0, |agent| match slot {
        0 => 0,
        _ => {
            let slot = Slot::at(slot as usize);
            let method = MethodId(method as u32);
            agent.comparison.number_of(agent, slot, method).0 as jlong
        }
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_insert0(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    context: jlong,
    site: jint,
) -> jlong {
    guard(0, |agent| {
        let (Some(state), Some(info)) = (own.get(), agent.book().site(site as u32)) else {
            return 0;
        };
        let place = (context as u64, SiteId(site as u32));
        insert::insert(agent, agent.env(env), state, place, &info).unwrap_or(0) as jlong
    })
}

/// The word of a class of which `made` is an object; null: make one. 0: it gets none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtEvents_learn0(
    env: *mut JNIEnv,
    _: jclass,
    class: jclass,
    made: jobject,
) -> jlong {
    guard(0, |agent| {
        let env = agent.env(env);
        if class.is_null() || env.has_exception() {
            return 0;
        }
        types::word(agent, env, class, made).unwrap_or(0)
    })
}

/// The word of a class, which need not be one of objects; 0: it gets none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtEvents_named0(
    env: *mut JNIEnv,
    _: jclass,
    class: jclass,
) -> jlong {
    guard(0, |agent| {
        let env = agent.env(env);
        if class.is_null() || env.has_exception() {
            return 0;
        }
        types::number(agent, env, class).unwrap_or(0)
    })
}

/// The site that stands for objects of a type that are made at `site`; 0: no ids are left.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtEvents_typed0(
    _: *mut JNIEnv,
    _: jclass,
    site: jint,
    of: jint,
) -> jlong {
    guard(0, |agent| {
        let typed = match site {
            0 => None,
            site => agent.book_mut().typed(site as u32, of as u32),
        };
        typed.map_or(0, jlong::from)
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtEvents_verify(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    number: jlong,
    returned: jint,
) {
    guard((), |agent| {
        // Without a thread's state it is bound, not called.
        if let Some(state) = own.get() {
            state.countdown.restart(agent.options.verify);
            let number = ContextId(number as u64);
            verify::compare(agent, agent.env(env), number, returned as usize);
        }
    });
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_lost(_: *mut JNIEnv, _: jclass, events: jint) {
    guard((), |agent| {
        let lost = &agent.counts.events_lost;
        lost.fetch_add(events as u64, Ordering::Relaxed);
    });
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_unsaid(_: *mut JNIEnv, _: jclass, really: jboolean) {
    if really != 0 {
        guard((), |agent| {
            count(&agent.counts.unsaid);
        });
    }
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_changed0(_: *mut JNIEnv, _: jclass) {
    guard((), |agent| agent.forget_code());
}

/// A virtual thread, the current one, is about to be unmounted, or stays mounted after all.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_unmounting(
    env: *mut JNIEnv,
    _: jclass,
    thread: jobject,
    really: jboolean,
) {
    guard((), |agent| {
        let env = agent.env(env);
        if thread.is_null() || env.has_exception() {
            return;
        }
        // As `VirtualThread` itself does: `true` before it is unmounted, `false` when it is mounted again.
        let name = match really {
            0 => c"notifyJvmtiMount",
            _ => c"notifyJvmtiUnmount",
        };
        let class = env.class_of(thread);
        if let Some(method) = env.method(class, name, c"(Z)V") {
            env.call_on(thread, method, &[jvalue { z: really }]);
        }
        env.forget(class);
    });
}

/// `CallContext.event`: an event of the program's own, of a kind that Java code does not know, or the first one
/// in its context. From now on it knows it, at `place` in `kinds`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtEvents_event0(
    env: *mut JNIEnv,
    class: jclass,
    own: OwnState,
    number: jlong,
    kind: jobject,
    value: jlong,
    kinds: jobject,
    place: jint,
) {
    guard((), |agent| {
        let (Some(state), false) = (own.get(), kind.is_null()) else {
            return;
        };
        let env = agent.env(env);
        let number = ContextId(number as u64);
        let event = own_event(agent, env, state, number, kind, value);
        if kinds.is_null() {
            agent.own_kinds.begin((&agent.coverage, env), class, kind);
        } else if let Some(event) = event {
            agent.own_kinds.learn(env, (kinds, place), kind, event);
        }
    });
}

/// With `record=calls`: what a frame tells, by its slot.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_record(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    what: jint,
    slot: jlong,
    site: jint,
) {
    guard((), |agent| {
        if let Some(state) = own.get() {
            let told = (what, Slot::at(slot as usize), site as u32);
            calls::told(agent, agent.env(env), state, told);
        }
    });
}

/// With `record=stream`: room for an event that Java code writes.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtEvents_room0(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    now: jlong,
) {
    guard((), |agent| {
        if let Some(state) = own.get() {
            stream::make_room(agent, agent.env(env), state, now.cast_unsigned());
        }
    });
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_hidden(
    env: *mut JNIEnv,
    _: jclass,
    loader: jobject,
    bytes: jobject,
    offset: jint,
    length: jint,
) -> jobject {
    guard(ptr::null_mut(), |agent| {
        if bytes.is_null() {
            return ptr::null_mut();
        }
        let env = agent.env(env);
        let loader = agent.loaders.id(agent.jvmti, env, loader);
        let repaired = env
            .bytes(bytes, offset, length)
            .and_then(|bytes| load::hidden(agent, loader, &bytes))
            .and_then(|bytes| agent.coverage.ours(env, || env.byte_array(&bytes)));
        repaired.unwrap_or(ptr::null_mut())
    })
}

/// In place of `TransformerManager.transform`. Null: no Java agent changes the class, or an exception is on its way.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_transform(
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
    let Some(agent) = Agent::that_stays().filter(|_| !manager.is_null()) else {
        return ptr::null_mut();
    };
    let env = agent.env(env);
    let class = Asked {
        loader,
        name,
        is_loaded: !changed.is_null(),
    };
    let plain = guard(None, |agent| class.without_hooks(agent, env, bytes));
    // Not within a guard: what they do is the program's.
    let given = plain.unwrap_or(bytes);
    let arguments = [module, loader, name, changed, domain, given];
    let made = java_agents::ask(env, manager, &arguments);
    if env.has_exception() || made.is_null() {
        return made;
    }
    let hooked = guard(None, |agent| class.hooked(agent, env, (manager, made)));
    hooked.unwrap_or(made)
}

/// The context of a frame of `method` that goes on from where `number` was taken; 0: there is none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtTasks_scope0(
    _: *mut JNIEnv,
    _: jclass,
    number: jlong,
    method: jint,
) -> jlong {
    guard(0, |agent| {
        let (number, method) = (ContextId(number as u64), MethodId(method as u32));
        scopes::going_on(agent, number, method).map_or(0, |context| context.0 as jlong)
    })
}

/// A task without a field is submitted.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtTasks_submitted0(
    _: *mut JNIEnv,
    _: jclass,
    task: jobject,
    number: jlong,
) {
    guard((), |agent| {
        if !task.is_null() {
            tasks::submitted(agent, task, ContextId(number as u64));
        }
    });
}

/// A task without a field that was submitted just now is rejected: that run will not come.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtTasks_rejected0(
    env: *mut JNIEnv,
    _: jclass,
    task: jobject,
) {
    guard((), |agent| {
        if !task.is_null() {
            tasks::rejected(agent, task);
            if agent.gate.is_open(gate::FOLLOW) {
                agent.marks.takes_back(agent.env(env), task);
            }
        }
    });
}

/// While allocations are measured: a thread is started, or a task submitted, in the context `number`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtTasks_hands0(
    env: *mut JNIEnv,
    _: jclass,
    task: jobject,
    number: jlong,
    is_plain: jint,
) {
    guard((), |agent| {
        if !task.is_null() {
            let handed = (task, ContextId(number as u64));
            agent
                .marks
                .hands(agent, agent.env(env), handed, is_plain != 0);
        }
    });
}

/// While allocations are measured: a task that tells whether it has run is refused.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtTasks_takesBack0(
    env: *mut JNIEnv,
    _: jclass,
    task: jobject,
) {
    guard((), |agent| {
        if !task.is_null() {
            agent.marks.takes_back(agent.env(env), task);
        }
    });
}

/// While allocations are measured: the frame with slot `slot` begins to run a task; `number`: what it carries, 0 if it has no
/// field.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtTasks_begins0(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    task: jobject,
    number: jlong,
    slot: jlong,
) {
    guard((), |agent| {
        if let Some(state) = own.get().filter(|_| !task.is_null()) {
            let task = (task, ContextId(number as u64));
            agent
                .marks
                .begins(agent, agent.env(env), (state, slot as usize), task);
        }
    });
}

/// While allocations are measured: the frame has done with its task.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtTasks_ran0(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    slot: jlong,
) {
    guard((), |agent| {
        if let Some(state) = own.get() {
            agent.marks.ran(agent.env(env), state, slot as usize);
        }
    });
}

/// The context of the frame of `method` with slot `slot`, which runs a task; `number`: what the task
/// carries, 0 if it has no field. 0: it goes on nowhere.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtTasks_handed0(
    _: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    task: jobject,
    number: jlong,
    slot: jlong,
    method: jint,
) -> jlong {
    guard(0, |agent| {
        let frame = (Slot::at(slot as usize), MethodId(method as u32));
        let carried = ContextId(number as u64);
        let context = own.get().and_then(|state| {
            let number = tasks::number_of(agent, task, carried)?;
            tasks::handed(agent, state, number, frame)
        });
        context.map_or(0, |context| context.0 as jlong)
    })
}

/// An event of this kind of the gate has happened in the current thread: see `Told`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtEvents_happened0(
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
        if let (Some(state), Some(source)) = (own.get(), events::source(kind)) {
            let told = Told {
                number: ContextId(number as u64),
                site,
                object,
                amount,
                passed,
            };
            source.told(agent, agent.env(env), state, told);
        }
    });
}

/// The VM has noted the trace of an exception.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtEvents_traced0(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    exception: jobject,
    trace: jobject,
    bytes: jlong,
    text: jlong,
) -> jint {
    let mut answer = Answer::Nothing;
    told_by_hook(gate::ALLOC, env, (own, trace), |agent, env, state| {
        let thrown = Thrown {
            exception,
            trace,
            trace_bytes: u64::try_from(bytes).unwrap_or(0),
            text_bytes: u64::try_from(text).unwrap_or(0),
        };
        answer = thrown.traced(agent, env, state);
    });
    answer as jint
}
