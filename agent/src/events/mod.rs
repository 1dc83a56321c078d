//! Kinds of events, one file for each: what the VM is asked for, what it calls then, and what is done with what a hook tells.
//! [`SOURCES`] is the list. How a kind is asked for, and its hooks, say files of these names in `hooks/src/kinds`.
//!
//! Each is switched on and off as a whole, also while the program runs. Capabilities are asked for only then: some slow the
//! VM down. Those for exceptions the VM gives before it starts and not later.

pub mod allocation_marks;
pub mod exception;
mod exception_origin;
pub mod exception_trace;
pub mod io;
pub mod lock;
pub mod objects;
pub mod ownership;
pub mod samples;
pub mod threads;

use jvmti_bindings::sys::jni::{JNIEnv, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_instrument::EventKindInfo;
use lucce_jvmti::{JniEnvironment, Jvmti};

use crate::counting::AgentCounting;
use crate::options::EventSelection;
use crate::thread::ThreadState;

use exception::ExceptionSource;
use io::IoSource;
use lock::LockSource;
use objects::VmObjectSource;
use threads::ThreadStartSource;

/// A new kind is one more here.
const SOURCES: [&dyn EventSource; 5] = [
    &LockSource,
    &ExceptionSource,
    &VmObjectSource,
    &IoSource,
    &ThreadStartSource,
];

/// Puts what the VM calls for each kind into its place.
pub fn add_callbacks<D: EventCallback>(callbacks: &mut ti::jvmtiEventCallbacks) {
    lock::add_callbacks::<D>(callbacks);
    exception::add_callbacks::<D>(callbacks);
    objects::add_callbacks::<D>(callbacks);
}

/// A kind of events that the VM tells of, or hooks.
pub trait EventSource: Sync {
    fn kind(&self) -> &'static EventKindInfo;

    /// What the VM is asked for, all at once.
    fn vm_events(&self) -> &'static [ti::jvmtiEvent] {
        &[]
    }

    /// What the VM must give before.
    fn add_capabilities(&self, _wanted: &mut ti::jvmtiCapabilities) {}

    /// A hook tells the current thread, whose state this is, of one that has happened (`LucceRtEvents.happened0`).
    fn record_hook_event(
        &self,
        _counting: &AgentCounting,
        _env: JniEnvironment,
        _state: &ThreadState,
        _told: HookEvent,
    ) {
    }
}

/// What a hook tells of an event.
#[derive(Clone, Copy)]
pub struct HookEvent {
    /// The number of its context; 0: the VM is asked where the thread is.
    pub number: ContextId,
    /// Where it happened; below 0: the calling class is out of scope.
    pub site: i32,
    /// What it happened to, or null.
    pub object: jobject,
    pub amount: u64,
    /// Nanoseconds that it took.
    pub passed: u64,
}

/// How what the VM calls comes to the one instance, which only floors above know.
pub trait EventCallback: 'static {
    /// The VM tells the current thread of an event of this kind of the gate, if that is counted.
    fn handle_event(
        kind: u64,
        env: *mut JNIEnv,
        thread: jobject,
        body: impl FnOnce(&AgentCounting, JniEnvironment, &ThreadState),
    );

    /// What the current thread has begun is over, also if nothing is counted any more.
    fn handle_end(
        env: *mut JNIEnv,
        thread: jobject,
        body: impl FnOnce(&AgentCounting, JniEnvironment, &ThreadState),
    );
}

/// The sources that `events` asks the VM for.
pub fn wanted_sources(events: &EventSelection) -> impl Iterator<Item = &'static dyn EventSource> {
    let sources = SOURCES.into_iter();
    sources.filter(|source| !source.vm_events().is_empty() && events.has_kind(source.kind()))
}

/// The source of this kind of the gate.
pub fn find_source(gate: u64) -> Option<&'static dyn EventSource> {
    let mut sources = SOURCES.into_iter();
    sources.find(|source| source.kind().mask_bit == gate)
}

/// Before the VM starts: what it does not give later.
///
/// # Errors
/// This VM does not give it at all.
pub fn add_source_capabilities(jvmti: Jvmti, source: &dyn EventSource) -> Result<(), String> {
    let mut wanted = ti::jvmtiCapabilities::default();
    source.add_capabilities(&mut wanted);
    let given = jvmti.add_capabilities(&wanted);
    given.map_err(|_| format!("this VM does not tell of events={}", source.kind().name))
}

/// Switches a source on; at any time from `VMInit` on, from any thread. What is on stays on.
///
/// # Errors
/// The VM does not do that, or not any more: one line for the user.
pub fn enable_source(jvmti: Jvmti, source: &dyn EventSource) -> Result<(), String> {
    add_source_capabilities(jvmti, source)
        .map_err(|message| message + " unless it was started with them")?;
    for event in source.vm_events() {
        let on = jvmti.enable_event(*event);
        on.map_err(|_| format!("this VM does not tell of events={}", source.kind().name))?;
    }
    Ok(())
}

/// Switches a source off; what waits then is not counted.
pub fn disable_source(jvmti: Jvmti, source: &dyn EventSource) {
    for event in source.vm_events() {
        // Fails only for events that were never on.
        let _ = jvmti.disable_event(*event);
    }
}
