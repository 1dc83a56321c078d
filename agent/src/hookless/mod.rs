//! Hookless mode: in a JVM that ran before the agent came (`lucce attach`), or because all selected events are rare
//! (`tracking=auto`).
//!
//! ```text
//! Agent_OnAttach ─► options ─► agent ─► SampledObjectAlloc on      no class is rewritten
//! Agent_OnLoad   ─► agent, VMInit         ─► SampledObjectAlloc on
//! allocation     ─► stack_samples ─► the VM's own stack ─► callgraph ─► tracelog
//!                └► leaks         ─► the VM's own stack
//! contended lock ─► locks         ─► the VM's own stack                  only if attached
//! exception      ─► exceptions    ─► the VM's own stack                  only if present from the start
//! defined class  ─► classes       ─► the VM's own stack
//! CallContext    ─► call_context  ─► the VM's own stack                  only if present from the start
//! memory         ─► native_memory ─► the VM's own stack                  only if present from the start
//! named method   ─► named_calls   ─► the VM's own stack                  hooks in these methods alone
//! resource       ─► open_resources ─► the VM's own stack                 hooks in these methods alone
//! detach         ─► events off, the log is closed
//! ```
//!
//! No class is changed, so nothing has to be restored, and frames that ran before need no special treatment: each event reads the
//! whole stack from the VM. An event costs more than with a shadow stack. So allocations are sampled by bytes by default, and the
//! user gets a warning if events are too frequent (`walk_cost`).
//!
//! Read `stack_samples` first, then `locks`, `exceptions` and `call_context`; `thread_storage` and `walk_cost` last.

pub mod call_context;
pub mod classes;
pub mod exceptions;
pub mod locks;
pub mod named_calls;
pub mod native_memory;
pub mod open_resources;
pub mod stack_samples;
pub mod thread_storage;
pub mod walk_cost;

use jvmti_bindings::sys::jni::jobject;
use lucce_jvmti::JniEnvironment;
use lucce_tracelog::EventTypeId;

use crate::counting::CountingParts;
use crate::counting::counter_lookup::event_detail;
use crate::thread::event_kind::EventKind;

/// The type of an event of this kind that happened to `object`.
fn find_event_type(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    object: jobject,
    kind: &'static EventKind,
) -> Option<EventTypeId> {
    let class = match object.is_null() {
        true => object,
        false => env.class_of(object),
    };
    let event =
        agent.find_or_add_event_type(kind.name, kind.unit, &event_detail(agent, class, kind));
    env.delete_local(class);
    event
}
