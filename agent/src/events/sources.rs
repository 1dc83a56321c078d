//! Kinds of events that the VM tells of, each in its own file; here is the list.
//!
//! Each is switched on and off as a whole, also while the program runs. Capabilities are asked for only
//! then: some slow the VM down. Those for exceptions the VM gives before it starts and not later.

use jvmti_bindings::sys::jvmti as ti;
use lucce_vm::Jvmti;

use crate::events::exception::Exceptions;
use crate::events::lock::Locks;
use crate::events::objects::Objects;
use crate::options::Events;

/// A kind of events that the VM tells of.
pub trait EventSource: Sync {
    /// As `events=` has it.
    fn name(&self) -> &'static str;

    fn is_wanted(&self, events: &Events) -> bool;

    /// What the VM is asked for, all at once.
    fn events(&self) -> &'static [ti::jvmtiEvent];

    /// What the VM must give before.
    fn capabilities(&self, wanted: &mut ti::jvmtiCapabilities);
}

/// A new kind is one more here.
const SOURCES: [&dyn EventSource; 3] = [&Locks, &Exceptions, &Objects];

/// The sources that `events` asks for.
pub fn wanted(events: &Events) -> impl Iterator<Item = &'static dyn EventSource> {
    let sources = SOURCES.into_iter();
    sources.filter(|source| source.is_wanted(events))
}

/// Before the VM starts: what it does not give later.
///
/// # Errors
/// This VM does not give it at all.
pub fn prepare(jvmti: Jvmti, source: &dyn EventSource) -> Result<(), String> {
    let mut wanted = ti::jvmtiCapabilities::default();
    source.capabilities(&mut wanted);
    let given = jvmti.add_capabilities(&wanted);
    given.map_err(|_| format!("this VM does not tell of events={}", source.name()))
}

/// Switches a source on; at any time from `VMInit` on, from any thread. What is on stays on.
///
/// # Errors
/// The VM does not do that, or not any more: one line for the user.
pub fn start(jvmti: Jvmti, source: &dyn EventSource) -> Result<(), String> {
    prepare(jvmti, source).map_err(|message| message + " unless it was started with them")?;
    for event in source.events() {
        let on = jvmti.enable(*event);
        on.map_err(|_| format!("this VM does not tell of events={}", source.name()))?;
    }
    Ok(())
}

/// Switches a source off; what waits then is not counted.
pub fn stop(jvmti: Jvmti, source: &dyn EventSource) {
    for event in source.events() {
        // Fails only for events that were never on.
        let _ = jvmti.disable(*event);
    }
}
