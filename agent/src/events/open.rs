//! `events=open`: resources that hooks report when they are opened and closed. `counting::open_resources` has the table.

use jvmti_bindings::sys::jni::jobject;
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_instrument::EventKindInfo;
use lucce_instrument::kinds::{COLLECTED_RESOURCES, OPEN, OPEN_RESOURCES, OPENINGS};
use lucce_jvmti::{JniEnvironment, JvmError, Jvmti, VmHandle};
use lucce_tracelog::{EventTypeId, ThreadId};

use crate::counting::CountingParts;
use crate::counting::counter_lookup::{
    count_dropped_in_scope, event_detail, find_counter, find_counter_by_number, verified_location,
};
use crate::counting::open_resources::{ResourceNumber, ResourceOrigin, ResourceTypes};
use crate::events::{EventSource, HookEvent};
use crate::memory::counter::increment_counter;
use crate::thread::ThreadState;
use crate::thread::counter_access::current_counters;
use crate::thread::event_kind::{EventCounterRef, EventKind};
use crate::thread::names::thread_name;

/// The kind of the event.
pub static OPENING: EventKind = EventKind::new(&OPENINGS, "open");

/// The class of the objects by which a program asks a cleaner to do its work.
const CLEANABLE: &str = "Ljdk/internal/ref/CleanerImpl$";
/// The threads of cleaners.
const CLEANER_THREADS: [&str; 2] = ["Common-Cleaner", "Cleaner-"];

/// Openings of resources.
pub struct OpenSource;

impl EventSource for OpenSource {
    fn kind(&self) -> &'static EventKindInfo {
        &OPEN
    }

    /// The current thread has opened the object.
    fn record_hook_event(
        &self,
        agent: CountingParts<'_>,
        env: JniEnvironment,
        state: &ThreadState,
        event: HookEvent,
    ) {
        if !event.object.is_null() {
            let _ = open_resource(agent, env, state, event);
        }
    }
}

/// Starts the recording of resources. `callbacks` has the one for collected objects.
///
/// # Errors
/// The VM does not report collected objects.
pub fn start_recording(
    agent: CountingParts<'_>,
    vm: VmHandle,
    callbacks: &ti::jvmtiEventCallbacks,
) -> Result<(), JvmError> {
    let tags = vm.new_tool_environment()?;
    let mut wanted = ti::jvmtiCapabilities::default();
    wanted.set_can_generate_object_free_events(true);
    tags.add_capabilities(&wanted)?;
    tags.set_callbacks(callbacks)?;
    tags.enable_event(ti::JVMTI_EVENT_OBJECT_FREE)?;
    let clock = agent.find_or_add_event_type(OPEN_RESOURCES.name, OPEN_RESOURCES.unit, "(clock)");
    let clock = clock.ok_or(JvmError(-1))?;
    agent.counting.open_resources.start_recording(tags, clock);
    Ok(())
}

/// `None`: it is open already, or the event is dropped.
fn open_resource(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    event: HookEvent,
) -> Option<()> {
    let resources = &agent.counting.open_resources;
    resources.tags()?;
    if is_open(agent, event.object) {
        return None;
    }
    let what = (&OPENING, event.object);
    let counter = match event.site {
        site if site >= 0 => find_counter_by_number(agent, env, state, event.number, what)?,
        _ => {
            let Some(here) = verified_location(agent, env, state) else {
                count_dropped_in_scope(agent, env);
                return None;
            };
            find_counter(agent, env, state, Some(here), what)?
        }
    };
    let EventCounterRef(cell) = counter;
    let thread = current_counters(agent.thread_parts(), env, state).id;
    let what = (cell.id(), cell.event_type());
    let followed = follow_resource(agent, env, event.object, what, thread.unwrap_or_default());
    if followed.is_none() {
        increment_counter(&agent.core.counts.events_dropped);
        return None;
    }
    counter.count_event(agent, env, state, 0);
    Some(())
}

/// Whether the object is open: a constructor calls another one, a method calls one that opens.
pub fn is_open(agent: CountingParts<'_>, object: jobject) -> bool {
    let resources = &agent.counting.open_resources;
    let number = resources.tags().and_then(|tags| find_number(tags, object));
    number.is_some_and(|number| resources.is_open(number))
}

/// Follows a resource that was opened in this context by this thread. `None`: it cannot be followed.
pub fn follow_resource(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    object: jobject,
    (context, opening): (ContextId, EventTypeId),
    thread: ThreadId,
) -> Option<()> {
    let resources = &agent.counting.open_resources;
    let tags = resources.tags()?;
    let origin = ResourceOrigin {
        context,
        types: find_types(agent, env, object, opening)?,
        thread,
    };
    let number = resources.add_resource(agent.core, origin)?;
    let tagged = tags.set_tag(object, number.0);
    if tagged.is_err() {
        resources.remove_resource(agent.core, number);
    }
    tagged.ok()
}

fn find_number(tags: Jvmti, object: jobject) -> Option<ResourceNumber> {
    let tag = tags.get_tag(object).ok()?;
    (tag != 0).then_some(ResourceNumber(tag))
}

fn find_types(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    object: jobject,
    opening: EventTypeId,
) -> Option<ResourceTypes> {
    let resources = &agent.counting.open_resources;
    if let Some(known) = resources.find_types(opening) {
        return Some(known);
    }
    let class = env.class_of(object);
    let detail = event_detail(agent, class, &OPENING);
    env.delete_local(class);
    let find_type = |kind: &str| agent.find_or_add_event_type(kind, "", &detail);
    let types = ResourceTypes {
        open: find_type(OPEN_RESOURCES.name)?,
        collected: find_type(COLLECTED_RESOURCES.name)?,
        is_cleanable: detail.starts_with(CLEANABLE),
    };
    resources.add_types(opening, types);
    Some(types)
}

/// The current thread closes the object, if it is an open resource.
pub fn close_resource(agent: CountingParts<'_>, env: JniEnvironment, object: jobject) {
    let resources = &agent.counting.open_resources;
    let Some(tags) = resources.tags() else { return };
    let Some(number) = find_number(tags, object) else {
        return;
    };
    let types = resources.types_of(number);
    let by_cleaner = types.is_some_and(|types| types.is_cleanable) && is_cleaner(agent, env);
    match by_cleaner {
        true => resources.collect_resource(agent.core, number),
        false => drop(resources.remove_resource(agent.core, number)),
    }
    let _ = tags.set_tag(object, 0);
}

/// Whether the current thread belongs to a cleaner.
fn is_cleaner(agent: CountingParts<'_>, env: JniEnvironment) -> bool {
    let name = thread_name(agent.thread_parts(), env);
    CLEANER_THREADS.iter().any(|start| name.starts_with(start))
}
