//! Sampled allocations: `events=alloc=SIZE`, `events=alloc+heap`, and the allocations of an attached agent.
//!
//! The VM reports a sample in the middle of the thread's `new` (SampledObjectAlloc). Here the thread's shadow stack determines
//! the context; without hooks, `hookless::stack_samples` walks the stack. A sample counts as the objects that it represents.

use jvmti_bindings::sys::jni::{jclass, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::{ContextId, SiteId};
use lucce_instrument::kinds::{BYTES, EventKindInfo, HEAP, HEAP_INTERVAL, SAMPLE_ERRORS};
use lucce_jvmti::{JniEnvironment, JvmError};

use crate::core::{EventLocation, SampleBudget};
use crate::counting::CountingParts;
use crate::counting::counter_lookup::count_dropped_in_scope;
use crate::memory::allocation_weight::sample_variance;
use crate::memory::counter::increment_counter;
use crate::stack::current_location::AllocationPlace;
use crate::stack::frames::MethodKind;
use crate::stack::{contexts, current_location, verify};
use crate::thread::counter_access::{current_counters, event_counter};
use crate::thread::lifecycle::state_of;
use crate::thread::thread_counters::ThreadCounters;
use crate::thread::{OwnState, ThreadState, counter_access};

/// Enables samples of `kind` every `bytes` bytes. The VM must be initialized.
///
/// # Errors
/// The VM's error.
pub fn start_sampling(
    agent: CountingParts<'_>,
    kind: &EventKindInfo,
    bytes: u32,
) -> Result<(), JvmError> {
    // With `heap`, allocations are counted and only their column "on the heap" is sampled.
    let is_beside_counts = kind.mask_bit == HEAP.mask_bit;
    let name = if is_beside_counts {
        HEAP_INTERVAL
    } else {
        "sampled.bytes"
    };
    agent.core.append_meta(name, &bytes.to_string());
    agent.core.jvmti.set_sampling_interval(bytes)?;
    agent
        .core
        .jvmti
        .enable_event(ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC)
}

/// A sample that was counted beside exact counts.
pub struct CountedSample {
    pub number: ContextId,
    /// The type's descriptor.
    pub descriptor: String,
    /// The size of the object in bytes.
    pub size: u64,
    /// The number of objects that it represents.
    pub objects: u64,
}

/// Counts an object of `size` bytes that the current thread has created and that the VM sampled.
pub fn handle_sample(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    thread: jobject,
    class: jclass,
    size: u64,
) -> Option<CountedSample> {
    let own = match env.has_exception() {
        true => OwnState::NONE,
        false => state_of(agent.thread_parts(), env, thread),
    };
    if let Some(state) = own.get() {
        return record_sample(agent, env, state, class, size);
    }
    if agent
        .core
        .jvmti
        .frame_location(0)
        .is_some_and(|(method, _)| {
            agent
                .stack
                .frames
                .resolve_method(agent.stack_parts(), env, method)
                .kind
                != MethodKind::Helper
        })
    {
        increment_counter(&agent.core.counts.events_dropped);
    }
    None
}

fn record_sample(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    class: jclass,
    size: u64,
) -> Option<CountedSample> {
    let here = match current_location::locate_allocation(agent.stack_parts(), env, state) {
        AllocationPlace::Here(here) => here,
        // Objects of the hooks' slow paths and of the VM itself are not the program's.
        AllocationPlace::Ours | AllocationPlace::Nowhere => return None,
        AllocationPlace::Unknown => {
            count_dropped_in_scope(agent, env);
            return None;
        }
    };
    if let Some(interval) = agent.core.options.events.heap_interval() {
        return record_heap_sample(agent, env, state, here, (class, size, interval));
    }
    let line = {
        let registry = agent.core.registry();
        registry
            .site(here.site.0)
            .map(|site| registry.line_of_site(&site))
    };
    let of = agent.core.jvmti.class_signature(class);
    let site = line.zip(of);
    let site =
        site.and_then(|(line, of)| agent.core.find_or_add_allocation(here.method.0, line, &of));
    let number = match (
        contexts::context_number(agent.stack_parts(), state, here.context),
        site,
    ) {
        (ContextId::UNKNOWN, _) | (_, None) => ContextId::UNKNOWN,
        (context, Some(site)) => {
            agent
                .core
                .encoder
                .encode_event(context, SiteId(site), here.method)
        }
    };
    if number == ContextId::UNKNOWN {
        increment_counter(&agent.core.counts.events_dropped);
        return None;
    }
    let bytes = agent.core.sampling_interval().unwrap_or(0);
    add_sample(
        agent,
        &mut current_counters(agent.thread_parts(), env, state),
        number,
        (size, bytes),
    );
    if state.countdown.count_event(agent.core.options.verify) {
        verify::compare_number(agent.stack_parts(), env, number, 0);
    }
    None
}

/// Counts a sample beside exact counts. Its call site differs from that of the hook, its trace does not.
fn record_heap_sample(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    here: EventLocation,
    (class, size, interval): (jclass, u64, u32),
) -> Option<CountedSample> {
    let number = contexts::event_number(agent.stack_parts(), state, here);
    let descriptor = agent.core.jvmti.class_signature(class).unwrap_or_default();
    let event = agent.find_or_add_event_type(HEAP.first_name(), BYTES, &descriptor);
    let mut counters = current_counters(agent.thread_parts(), env, state);
    let objects = counters.weight.count_objects(size, interval);
    let counter =
        event.and_then(|event| event_counter(agent.thread_parts(), &mut counters, number, event));
    match counter {
        Some(counter) => counter.add_events(objects, objects.saturating_mul(size)),
        None => {
            increment_counter(&agent.core.counts.events_dropped);
        }
    }
    drop(counters);
    if number != ContextId::UNKNOWN && state.countdown.count_event(agent.core.options.verify) {
        verify::compare_number(agent.stack_parts(), env, number, 0);
    }
    counter.map(|_| CountedSample {
        number,
        descriptor,
        size,
        objects,
    })
}

/// Adds the variance of a sample of `size` bytes, drawn with `interval`, to that of its context.
pub fn add_variance(
    agent: CountingParts<'_>,
    budget: &SampleBudget,
    counters: &mut ThreadCounters,
    number: ContextId,
    (size, interval): (u64, u32),
) {
    let kind = &SAMPLE_ERRORS;
    let event = budget.error_type(|| agent.find_or_add_event_type(kind.name, kind.unit, ""));
    let counter =
        event.and_then(|event| event_counter(agent.thread_parts(), counters, number, event));
    match counter {
        Some(counter) => counter.add_events(1, sample_variance(size, interval)),
        // Readers assume the largest interval if the context has no variance.
        None => budget.warn_of_missing_variance(agent.core),
    }
}

/// Counts a sample of `size` bytes in a context, taken every `interval` bytes. Interval 0: every allocation.
pub fn add_sample(
    agent: CountingParts<'_>,
    counters: &mut ThreadCounters,
    number: ContextId,
    (size, interval): (u64, u32),
) {
    let objects = counters.weight.count_objects(size, interval);
    let cell = match counters.samples.get(&number) {
        Some(known) => *known,
        None => {
            let Some(cell) = counter_access::new_counter(agent.thread_parts(), counters, number)
            else {
                counters.dropped_counter().add_events(objects, 0);
                return;
            };
            counter_access::sweep_samples(agent.thread_parts(), counters);
            counters.samples.insert(number, cell);
            cell
        }
    };
    cell.add_events(objects, objects.saturating_mul(size));
}
