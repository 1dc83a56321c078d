//! The native methods of the helper class: the slow paths.
//!
//! A thread's state comes as Java code has it: see `thread::OwnState`.
//! Every one ends in [`guard`]: a panic here is counted and answered with a neutral value.
#![allow(
    unsafe_code,
    reason = "functions that the JVM calls, with pointers that it was given here"
)]

use std::cell::Cell;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use jvmti_bindings::sys::jni::{JNIEnv, jboolean, jclass, jint, jlong, jobject, jvalue};
use lucce_callgraph::{ContextId, MethodId, SiteId};

use crate::agent::{Agent, Field, ThreadFields, c_string, count};
use crate::book;
use crate::cells::lane_of;
use crate::coverage::ours;
use crate::events::own_event;
use crate::frames::Walk;
use crate::jvm::Env;
use crate::lane::{Lane, address_of};
use crate::memory::stack_size;
use crate::options::Tracking;
use crate::record::{Recorded, Recorder, What};
use crate::shared_layout::SCHEDULING;
use crate::slots::Slot;
use crate::thread::{OwnState, ThreadState};
use crate::tree::Node;
use crate::{acting, cells, hook, locals, tasks, upcall, verify};

thread_local! {
    /// How many of the agent's functions run on this thread, one in the other.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs a callback of the VM: a panic is our bug, not the program's.
pub fn guard<T>(otherwise: T, body: impl FnOnce(&'static Agent) -> T) -> T {
    let Some(agent) = Agent::get() else {
        return otherwise;
    };
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(|| body(agent)));
    DEPTH.set(DEPTH.get() - 1);
    done.unwrap_or_else(|_| {
        count(&agent.counts.panics);
        otherwise
    })
}

/// As [`guard`], of an event that the VM tells while it runs the program, if that kind is counted: not of
/// what the agent itself makes the VM do.
pub fn guard_event(kind: u64, body: impl FnOnce(&'static Agent)) {
    guard((), |agent| {
        if DEPTH.get() == 1 && agent.is_live() && agent.gate.is_open(kind) {
            body(agent);
        }
    });
}

/// The current thread's, if the agent knows it.
pub fn current_state(agent: &Agent, env: Env) -> OwnState {
    let Some(thread) = agent.jvmti.current_thread() else {
        return OwnState::NONE;
    };
    let state = state_of(agent, env, thread);
    env.forget(thread);
    state
}

/// As [`current_state`]: `thread` is the current one.
pub fn state_of(agent: &Agent, env: Env, thread: jobject) -> OwnState {
    acting::holder(agent, env, thread, |thread| held(agent, env, thread))
}

/// `thread`: the current one, or the carrier that it acts as.
fn held(agent: &Agent, env: Env, thread: jobject) -> OwnState {
    let Some(fields) = agent.fields.get() else {
        return OwnState::NONE;
    };
    // SAFETY: as said.
    let known = || unsafe { OwnState::of_field(env.get_long(thread, fields.state.id())) };
    if known().get().is_none() {
        // Threads from before the start get theirs at their first event; those that have ended get none.
        let pointer = Slot::at(env.get_long(thread, fields.pointer.id()) as usize);
        if agent.stacks.of_boot(pointer).is_some() {
            attach(agent, env, thread, pointer);
        }
    }
    known()
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_attach(
    env: *mut JNIEnv,
    _: jclass,
    thread: jobject,
    pointer: jlong,
) {
    guard((), |agent| {
        if !thread.is_null() {
            attach(agent, agent.env(env), thread, Slot::at(pointer as usize));
        }
    });
}

/// A thread that has no frames yet gets its shadow stack.
pub fn begin(agent: &Agent, env: Env, thread: jobject) {
    let Some(fields) = fields(agent, env, thread) else {
        return;
    };
    if env.get_long(thread, fields.state.id()) == 0
        && let Some(first) = attach(agent, env, thread, Slot::at(0))
    {
        env.set_long(thread, fields.pointer.id(), first.pointer() as jlong);
    }
}

/// Begins the current thread, if all of its frames have ended: whatever its pointer was left at.
pub fn begin_anew(agent: &Agent, env: Env) {
    let Some(thread) = agent.jvmti.current_thread() else {
        return;
    };
    if agent.jvmti.frame(0).is_none()
        && let Some(fields) = fields(agent, env, thread)
        && let Some(state) = state_of(agent, env, thread).get()
    {
        let first = state.first_slot().pointer();
        env.set_long(thread, fields.pointer.id(), first as jlong);
    }
    env.forget(thread);
}

/// Begins a thread all of whose frames so far are out of scope.
pub fn begin_now(agent: &Agent, env: Env, thread: jobject) {
    let pointer = fields(agent, env, thread).map(|fields| fields.pointer.id());
    if pointer.is_some_and(|pointer| env.get_long(thread, pointer) == 0) {
        begin(agent, env, thread);
    }
}

/// Gives a thread a record, and a shadow stack unless it has one from before the start; its first
/// slot.
fn attach(agent: &Agent, env: Env, thread: jobject, pointer: Slot) -> Option<Slot> {
    let fields = fields(agent, env, thread)?;
    let boot = agent.stacks.of_boot(pointer);
    let region = boot.or_else(|| agent.stacks.take(stack_size()))?;
    let is_virtual = env.is_virtual_thread(thread);
    let mut state = ThreadState::new(region, is_virtual, agent.options.verify);
    state.ticket = taken_ticket(env, thread, fields);
    let origin = env.get_long(thread, fields.origin.id());
    // A running thread's field says something else, see `LucceRtTasks.schedules`.
    state.origin = ContextId(if origin == SCHEDULING { 0 } else { origin } as u64);
    let first = state.first_slot();
    let own = OwnState::begin(state);
    agent.threads.add(&own);
    env.set_long(thread, fields.state.id(), own.field());
    Some(first)
}

fn fields(agent: &Agent, env: Env, thread: jobject) -> Option<ThreadFields> {
    if let Some(known) = agent.fields.get() {
        return Some(*known);
    }
    let class = env.class_of(thread);
    let field = |name: &CStr| env.field(class, name, c"J").map(Field::new);
    let found = ThreadFields {
        pointer: field(c"$fp")?,
        events: field(c"$ev")?,
        state: field(c"$ts")?,
        ticket: field(c"$rc")?,
        origin: field(c"$cx")?,
        // A class of the program's may have a field of this name, too.
        name: {
            let thread = env.find_class(c"java/lang/Thread")?;
            let name = env.field(thread, c"name", c"Ljava/lang/String;");
            env.forget(thread);
            name.map(Field::new)?
        },
    };
    env.forget(class);
    Some(*agent.fields.get_or_init(|| found))
}

/// The current thread's name; empty while its constructor has not set it.
///
/// Not from the tool interface: JDK 21 waits there until no virtual thread is being mounted or unmounted,
/// and so for ever if that is what this thread does.
pub fn thread_name(agent: &Agent, env: Env) -> String {
    let (Some(fields), Some(thread)) = (agent.fields.get(), agent.jvmti.current_thread()) else {
        return String::new();
    };
    let name = name_of(env, thread, *fields);
    env.forget(thread);
    name
}

fn name_of(env: Env, thread: jobject, fields: ThreadFields) -> String {
    let name = env.get_object(thread, fields.name.id());
    if name.is_null() {
        return String::new();
    }
    let text = env.text(name, jint::MAX as usize);
    env.forget(name);
    text
}

/// A thread has ended: its shadow stack is free again. Its cells stay in the log.
pub fn detach(agent: &Agent, env: Env, thread: jobject) {
    let Some(fields) = agent.fields.get() else {
        return;
    };
    // SAFETY: of the thread that ends, which is the current one.
    let own = unsafe { OwnState::of_field(env.get_long(thread, fields.state.id())) };
    if own.get().is_none() {
        return;
    }
    for field in [
        fields.pointer,
        fields.events,
        fields.state,
        fields.ticket,
        fields.origin,
    ] {
        env.set_long(thread, field.id(), 0);
    }
    agent.threads.remove(&own);
    // SAFETY: the thread's field forgot it just now, and this is the last that the thread does.
    let Some(mut state) = (unsafe { own.end() }) else {
        return;
    };
    if let Some(mut lane) = state.take_lane() {
        lane.place = std::mem::take(&mut state.place);
        cells::give(agent, lane);
    }
    if let (Some(recorder), Some(recorded)) = (&agent.recorder, state.recorded.get()) {
        recorder.left(recorded);
    }
    agent.trees.dropped(state.tree().bytes());
    agent.stacks.give(state.region);
}

/// How many threads have a record.
pub fn threads(agent: &Agent) -> usize {
    agent.threads.len()
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
        let Some(state) = own.get() else {
            return pointer;
        };
        let pointer = Slot::at(pointer as usize);
        let slot = upcall::enter(agent, agent.env(env), state, pointer, 1);
        slot.pointer() as jlong
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
        let callee = MethodId(callee as u32);
        agent
            .encoder
            .step(ContextId(context as u64), site, caller, callee)
            .0 as jlong
    })
}

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
        let (site, callee) = (SiteId(site as u32), MethodId(callee as u32));
        let child = own
            .get()
            .and_then(|state| child(agent, state, node as u64, site, callee));
        child.map_or(0, |node| node as jlong)
    })
}

/// The node below `node`, which must be the thread's own.
pub fn child(
    agent: &Agent,
    state: &ThreadState,
    node: u64,
    site: SiteId,
    callee: MethodId,
) -> Option<u64> {
    let node = Node(u32::try_from(node).ok()?);
    let before = state.tree().bytes();
    let child = state.child(node, site, callee);
    agent.trees.grown(state.tree().bytes() - before);
    child.map(|child| child.0.into())
}

/// The context's number: with `tracking=cct`, `context` is a node of the thread's tree.
pub fn context_id(agent: &Agent, state: &ThreadState, context: u64) -> ContextId {
    match (agent.options.tracking, u32::try_from(context)) {
        (Tracking::Lazy | Tracking::Paper, _) => ContextId(context),
        (Tracking::Cct, Ok(node)) => {
            let method = |site: SiteId| MethodId(agent.method_of_site.get(site.0));
            state.tree().context(Node(node), &agent.encoder, method)
        }
        (Tracking::Cct, Err(_)) => ContextId::UNKNOWN,
    }
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
        if let (Some(paper), true) = (&agent.paper, slot != 0) {
            let (site, callee) = (SiteId(site as u32), MethodId(callee as u32));
            locals::enter(agent, paper, Slot::at(slot as usize), site, callee);
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
    guard(0, |agent| match &agent.paper {
        Some(paper) if slot != 0 => {
            let slot = Slot::at(slot as usize);
            locals::number(agent, paper, slot, MethodId(method as u32)).0 as jlong
        }
        _ => 0,
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
        let env = agent.env(env);
        insert(
            agent,
            env,
            state,
            context as u64,
            SiteId(site as u32),
            &info,
        )
        .unwrap_or(0) as jlong
    })
}

/// The cell for events at `site` of a frame with this context.
fn insert(
    agent: &Agent,
    env: Env,
    state: &ThreadState,
    context: u64,
    site: SiteId,
    info: &book::SiteInfo,
) -> Option<usize> {
    // A lane of an earlier thread may have it.
    if let Some(known) = lane_of(agent, env, state).find(context, site.0) {
        return Some(known);
    }
    let frame = context_id(agent, state, context);
    let number = match frame {
        ContextId::UNKNOWN => frame,
        _ => {
            if let book::What::New(_) = info.what {
                size_once(agent, env, site.0);
            }
            agent.encoder.event(frame, site, MethodId(info.method))
        }
    };
    if number == ContextId::UNKNOWN {
        count(&agent.counts.events_lost);
        return None;
    }
    let lane = &mut *lane_of(agent, env, state);
    cells::sweep(agent, lane);
    let cell = match info.what {
        book::What::Entry => typed_cell(agent, lane, number, "call"),
        book::What::Start => typed_cell(agent, lane, number, "thread"),
        book::What::Submit => typed_cell(agent, lane, number, tasks::KIND),
        _ => match cells::new_cell(agent, lane, number) {
            Some(cell) => address_of(cell),
            None => address_of(lane.lost_cell()),
        },
    };
    lane.insert(context, site.0, cell);
    state.indexed(lane);
    Some(cell)
}

/// The address of a cell by type, at a site that has events of one type only.
fn typed_cell(agent: &Agent, lane: &mut Lane, number: ContextId, kind: &str) -> usize {
    let event = agent.event_type(kind, "", "");
    let cell = event.and_then(|event| cells::event_cell(agent, lane, number, event));
    address_of(cell.unwrap_or_else(|| lane.lost_event_cell()))
}

/// How large an instance is: asked once per site, of an instance made for that.
fn size_once(agent: &Agent, env: Env, site: u32) {
    let found = {
        let mut book = agent.book_mut();
        book.ask_size(site)
    };
    if let Some(found) = found
        && let Some(bytes) = size_of_site(agent, env, site, &found)
    {
        let book = agent.book();
        // On failure the log is full, which is told at the end.
        let _ = agent.log.site_size(&book, site, bytes);
    }
}

/// What the log says of the site: how large each of its objects is. `None`: its cells have the bytes.
pub fn size_at(agent: &Agent, env: Env, site: u32) -> Option<u64> {
    let found = agent.book().sized_at(site)?;
    size_of_site(agent, env, site, &found)
}

/// `loader`: of the class that names `class`.
fn size_of_site(
    agent: &Agent,
    env: Env,
    site: u32,
    (loader, class): &(crate::book::Loader, String),
) -> Option<u64> {
    if env.has_exception() {
        return None;
    }
    let of = |loader| instance_size(agent, env, loader, class);
    // A loader that is gone has left the class to others.
    let others = || {
        let loaders = agent.book().loaders_of(site);
        loaders.into_iter().find_map(of)
    };
    of(*loader).or_else(others)
}

fn instance_size(agent: &Agent, env: Env, loader: crate::book::Loader, class: &str) -> Option<u64> {
    let class = find_loaded(agent, env, loader, class)?;
    let size = size_of_new(agent, env, class);
    env.forget(class);
    size
}

/// Of an instance that is made for that.
pub fn size_of_new(agent: &Agent, env: Env, class: jclass) -> Option<u64> {
    let object = ours(env, || env.allocate(class))?;
    let size = agent.jvmti.object_size(object);
    env.forget(object);
    size
}

/// A class that `loader` has loaded or found elsewhere; runs no Java code.
fn find_loaded(
    agent: &Agent,
    env: Env,
    loader: crate::book::Loader,
    class: &str,
) -> Option<jobject> {
    let loader = agent.loaders.object(env, loader)?;
    if loader.is_null() {
        return env.find_class(&c_string(class));
    }
    let base = env.find_class(c"java/lang/ClassLoader")?;
    let method = env.method(
        base,
        c"findLoadedClass0",
        c"(Ljava/lang/String;)Ljava/lang/Class;",
    );
    env.forget(base);
    let name = ours(env, || env.string(&class.replace('/', ".")))?;
    let found = env.call_object(loader, method?, &[jvalue { l: name }]);
    env.forget(name);
    env.forget(loader);
    found
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
        let Some(state) = own.get() else {
            return 0;
        };
        let env = agent.env(env);
        u8::from(upcall::repair(
            agent,
            env,
            state,
            Slot::at(slot as usize),
            Slot::at(top as usize),
        ))
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
        if let Some(state) = own.get() {
            state.verify_again_after(agent.options.verify);
        }
        if number != 0 {
            let number = ContextId(number as u64);
            verify::compare(agent, agent.env(env), number, returned as usize);
        }
    });
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRt_lost(_: *mut JNIEnv, _: jclass, events: jint) {
    guard((), |agent| {
        agent
            .counts
            .events_lost
            .fetch_add(events as u64, Ordering::Relaxed);
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
    guard((), |agent| {
        agent.frames.forget_all();
        agent.alike.forget_all();
    });
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
            agent.own_kinds.begin(env, class, kind);
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
        let (Some(recorder), Some(state)) = (&agent.recorder, own.get()) else {
            return;
        };
        let (env, slot, site) = (agent.env(env), Slot::at(slot as usize), site as u32);
        let recorded = recorded(agent, recorder, env, state);
        if recorder.meets_bare(&recorded, (state.first_slot(), slot)) {
            upcall::repair(agent, env, state, slot, slot);
        }
        match What::of(what) {
            Some(What::Entered) => {
                let place = (state.first_slot(), slot, site);
                recorder.entered(&recorded, &agent.method_of_site, place);
            }
            Some(what @ (What::Call | What::Event)) => {
                let place = (state.first_slot(), slot, site);
                let methods = &agent.method_of_site;
                recorder.at(&recorded, methods, place, what == What::Event);
                if recorder.starts(methods.get(site)) {
                    give_ticket(agent, recorder, env, &recorded);
                }
            }
            Some(What::Returned) => recorder.returned(&recorded, slot),
            Some(What::Thrown) => recorder.ended(&recorded, slot),
            None => {}
        }
    });
}

/// The thread's part of the recording.
fn recorded(
    agent: &Agent,
    recorder: &Recorder,
    env: Env,
    state: &ThreadState,
) -> Arc<Mutex<Recorded>> {
    let recorded = state.recorded.get_or_init(|| {
        let started = recorder.claim(state.ticket);
        started.unwrap_or_else(|| recorder.thread(&thread_name(agent, env)))
    });
    Arc::clone(recorded)
}

/// The innermost `this` is a thread that is about to start. Until it runs, its field for the recording
/// holds the ticket, negative.
fn give_ticket(agent: &Agent, recorder: &Recorder, env: Env, parent: &Mutex<Recorded>) {
    let (Some(fields), Some(thread)) = (agent.fields.get(), agent.jvmti.innermost_this()) else {
        return;
    };
    let is_new = env.get_long(thread, fields.ticket.id()) == 0
        && env.get_long(thread, fields.state.id()) == 0;
    if is_new {
        let name = name_of(env, thread, *fields);
        let ticket = recorder.start(&name, parent);
        env.set_long(thread, fields.ticket.id(), -(ticket as jlong));
    }
    env.forget(thread);
}

fn taken_ticket(env: Env, thread: jobject, fields: ThreadFields) -> usize {
    let held = env.get_long(thread, fields.ticket.id());
    if held >= 0 {
        return 0;
    }
    env.set_long(thread, fields.ticket.id(), 0);
    usize::try_from(-held).unwrap_or(0)
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
    guard(std::ptr::null_mut(), |agent| {
        if bytes.is_null() {
            return std::ptr::null_mut();
        }
        let env = agent.env(env);
        let loader = agent.loaders.id(agent.jvmti, env, loader);
        let repaired = env
            .bytes(bytes, offset, length)
            .and_then(|bytes| hook::hidden(agent, loader, &bytes))
            .and_then(|bytes| ours(env, || env.byte_array(&bytes)));
        repaired.unwrap_or(std::ptr::null_mut())
    })
}
