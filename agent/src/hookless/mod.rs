//! Without hooks: in a JVM that ran before the agent came (`lucce attach`), or because all that is asked for is rare
//! (`tracking=auto`).
//!
//! ```text
//! Agent_OnAttach ─► options ─► agent ─► SampledObjectAlloc on       nothing is rewritten
//! Agent_OnLoad   ─► agent, VMInit   ─► SampledObjectAlloc on
//! allocation     ─► sampled ─► the VM's own stack ─► callgraph ─► tracelog
//!                └► leaks   ─► the VM's own stack
//! contended lock ─► locks   ─► the VM's own stack                   only where it was attached
//! exception      ─► thrown  ─► the VM's own stack                   only where it was there from the start
//! CallContext    ─► asked   ─► the VM's own stack                   only where it was there from the start
//! detach         ─► events off, the log's end
//! ```
//!
//! No class is changed, so there is nothing to put back, and frames that ran already are as good as new
//! ones: each event asks the VM for the whole stack. That costs more per event than a shadow stack, so
//! by default allocations are sampled by bytes, and the user is told when events are too many (`walk_cost`).

pub mod attach_options;
pub mod call_context;
pub mod exceptions;
pub mod locks;
pub mod stack_samples;
pub mod thread_storage;
pub mod walk_cost;

use jvmti_bindings::sys::jni::jobject;
use lucce_jvmti::JniEnvironment;
use lucce_tracelog::EventTypeId;

use crate::counting::AgentCounting;
use crate::counting::counter_lookup::event_detail;
use crate::thread::event_kind::EventKind;

/// The type of such an event that happened to `object`.
fn find_event_type(
    counting: &AgentCounting,
    env: JniEnvironment,
    object: jobject,
    kind: &'static EventKind,
) -> Option<EventTypeId> {
    let class = match object.is_null() {
        true => object,
        false => env.class_of(object),
    };
    let event =
        counting.find_or_add_event_type(kind.name, kind.unit, &event_detail(counting, class, kind));
    env.delete_local(class);
    event
}
