//! Kinds of events, one file for each: the VM's events that it enables, and the events that hooks report.
//!
//! ```text
//! VM event    ─► entry/event_callbacks ─► functions of the kind ─► counting: counter of (context, type)
//! hook's call ─► record_hook_event ─► functions of the kind, or hook_calls ──┘
//! ```
//!
//! [`SOURCES`] is the list. A kind without a source counts calls that hooks report (`hook_calls`). Files of the same names in `crates/instrument/src/kinds` define the option and the hooks of a kind.
//!
//! Each kind is switched on and off as a whole, also while the program runs. Capabilities are requested only then, because some
//! slow the VM down. The VM grants the capabilities for exceptions only before it starts.
//!
//! Read this file first, then `hook_calls` and `lock` as examples; `samples` and `objects` for allocations; `exception` with
//! `exception_origin` and `exception_trace`; `native_memory`; `allocation_marks` with `ownership` for `io.lucce.Allocations`.

pub mod allocation_marks;
pub mod class;
pub mod exception;
mod exception_origin;
pub mod exception_trace;
mod hook_calls;
pub mod lock;
pub mod lock_holders;
pub mod native_memory;
pub mod objects;
pub mod open;
pub mod ownership;
pub mod request;
pub mod samples;
pub mod threads;

use jvmti_bindings::sys::jni::jobject;
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_instrument::EventKindInfo;
use lucce_instrument::kinds::NATIVE;
use lucce_jvmti::{JniEnvironment, Jvmti};

use crate::counting::CountingParts;
use crate::options::EventSelection;
use crate::thread::ThreadState;

use class::ClassDefinitionSource;
use exception::ExceptionSource;
use lock::LockSource;
use native_memory::NativeMemorySource;
use objects::VmObjectSource;
use open::OpenSource;
use threads::ThreadStartSource;

/// All kinds that the VM reports, or that count hooks' events in their own way.
const SOURCES: [&dyn EventSource; 7] = [
    &ClassDefinitionSource,
    &LockSource,
    &ExceptionSource,
    &NativeMemorySource,
    &VmObjectSource,
    &ThreadStartSource,
    &OpenSource,
];

/// A kind of events that the VM or hooks report.
pub trait EventSource: Sync {
    fn kind(&self) -> &'static EventKindInfo;

    /// The VM's events to enable, all at once.
    fn vm_events(&self) -> &'static [ti::jvmtiEvent] {
        &[]
    }

    /// Adds the capabilities that the events need.
    fn add_capabilities(&self, _wanted: &mut ti::jvmtiCapabilities) {}

    /// Handles an event that a hook reports in the current thread, whose state is passed (`LucceRtNatives.recordHookEvent`).
    fn record_hook_event(
        &self,
        _agent: CountingParts<'_>,
        _env: JniEnvironment,
        _state: &ThreadState,
        _event: HookEvent,
    ) {
    }
}

/// An event as a hook reports it.
#[derive(Clone, Copy)]
pub struct HookEvent {
    /// The context number. 0: the agent asks the VM for the context.
    pub number: ContextId,
    /// The site. Below 0: the calling class is out of scope ([`lucce_instrument::kinds::outside_site`]).
    pub site: i32,
    /// The object of the event, or null.
    pub object: jobject,
    pub amount: u64,
    /// Duration in nanoseconds.
    pub passed: u64,
}

/// The sources of the selected kinds that need events of the VM.
pub fn wanted_sources(events: &EventSelection) -> impl Iterator<Item = &'static dyn EventSource> {
    let sources = SOURCES.into_iter();
    sources.filter(|source| !source.vm_events().is_empty() && events.has_kind(source.kind()))
}

/// Handles an event of a kind that a hook reports in the current thread. `mask_bit`: the kind's bit in the event mask.
pub fn record_hook_event(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    mask_bit: u64,
    event: HookEvent,
) {
    let mut sources = SOURCES.into_iter();
    match sources.find(|source| source.kind().mask_bit == mask_bit) {
        Some(source) => source.record_hook_event(agent, env, state, event),
        None => hook_calls::count_call(agent, env, state, mask_bit, event),
    }
}

/// Switches on the sources that must be on before the VM runs Java code, and prepares what they record.
///
/// # Errors
/// As of [`enable_source`].
pub fn enable_early_sources(agent: CountingParts<'_>) -> Result<(), String> {
    if !agent.core.options.events.has_kind(&NATIVE) {
        return Ok(());
    }
    agent.counting.living_blocks.start_recording(agent);
    enable_source(agent.core.jvmti, &NativeMemorySource)
}

/// Requests the source's capabilities. Some are only granted before the VM starts.
///
/// # Errors
/// This VM does not grant them at all.
pub fn add_source_capabilities(jvmti: Jvmti, source: &dyn EventSource) -> Result<(), String> {
    let mut wanted = ti::jvmtiCapabilities::default();
    source.add_capabilities(&mut wanted);
    let given = jvmti.add_capabilities(&wanted);
    given.map_err(|_| format!("this VM does not tell of events={}", source.kind().name))
}

/// Switches a source on: at any time after `VMInit`, from any thread. Has no effect if the source is on.
///
/// # Errors
/// The VM does not grant the capabilities, or not any more: one line for the user.
pub fn enable_source(jvmti: Jvmti, source: &dyn EventSource) -> Result<(), String> {
    add_source_capabilities(jvmti, source)
        .map_err(|message| message + " unless it was started with them")?;
    for event in source.vm_events() {
        let on = jvmti.enable_event(*event);
        on.map_err(|_| format!("this VM does not tell of events={}", source.kind().name))?;
    }
    Ok(())
}

/// Switches a source off. Waits in progress are not counted.
pub fn disable_source(jvmti: Jvmti, source: &dyn EventSource) {
    for event in source.vm_events() {
        // Fails only for events that were never enabled.
        let _ = jvmti.disable_event(*event);
    }
}
