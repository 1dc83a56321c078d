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
//! by default allocations are sampled by bytes, and the user is told when events are too many (`often`).

pub mod asked;
pub mod kept;
pub mod locks;
pub mod often;
pub mod options;
pub mod sampled;
pub mod thrown;

use jvmti_bindings::sys::jni::jobject;
use lucce_tracelog::EventTypeId;
use lucce_vm::Env;

use crate::counting::Counting;
use crate::counting::found::detail;
use crate::thread::found::EventKind;

/// The type of such an event that happened to `object`.
fn event(
    counting: &Counting,
    env: Env,
    object: jobject,
    kind: &'static EventKind,
) -> Option<EventTypeId> {
    let class = match object.is_null() {
        true => object,
        false => env.class_of(object),
    };
    let event = counting.event_type(kind.name, kind.unit, &detail(counting, class, kind));
    env.forget(class);
    event
}
