//! `events=native`: memory outside of the heap.
//!
//! ```text
//! JDK: Unsafe, mapped files ─► NativeMethodBind ─► entry/native_methods ─┐
//! libraries: malloc, mmap   ─► their symbol tables ─► entry/library_calls ┴► record_block ─► counter of the context
//!                                                                                        └► counting::living_blocks
//! ```
//! The VM reports each native method before it binds it, and binds the function that the agent names instead.

use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_instrument::EventKindInfo;
use lucce_instrument::kinds::{NATIVE, NATIVE_MEMORY};
use lucce_jvmti::JniEnvironment;

use crate::counting::CountingParts;
use crate::counting::counter_lookup::find_counter_here;
use crate::events::EventSource;
use crate::thread::ThreadState;
use crate::thread::event_kind::EventKind;

/// Memory of `Unsafe`, that is also of direct buffers and memory segments.
pub static UNSAFE: EventKind = EventKind::new(&NATIVE_MEMORY, "Unsafe");
pub static MAPPED_FILE: EventKind = EventKind::new(&NATIVE_MEMORY, "mapped file");
/// Memory that native libraries allocate.
pub static MALLOC: EventKind = EventKind::new(&NATIVE_MEMORY, "malloc");
pub static MMAP: EventKind = EventKind::new(&NATIVE_MEMORY, "mmap");

/// The VM's event that reports native methods. It must be enabled before the VM runs Java code.
pub struct NativeMemorySource;

impl EventSource for NativeMemorySource {
    fn kind(&self) -> &'static EventKindInfo {
        &NATIVE
    }

    fn vm_events(&self) -> &'static [ti::jvmtiEvent] {
        &[ti::JVMTI_EVENT_NATIVE_METHOD_BIND]
    }

    fn add_capabilities(&self, wanted: &mut ti::jvmtiCapabilities) {
        wanted.set_can_generate_native_method_bind_events(true);
        // Else the VM answers no question about a method that it binds so early.
        wanted.set_can_generate_early_vmstart(true);
    }
}

/// Counts memory that the current thread, whose state is passed, has allocated. `None`: the context is unknown.
pub fn count_allocation(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (kind, bytes): (&'static EventKind, u64),
) -> Option<ContextId> {
    let counter = find_counter_here(agent, env, state, (kind, std::ptr::null_mut()))?;
    counter.count_event(agent, env, state, bytes);
    Some(counter.0.id())
}
