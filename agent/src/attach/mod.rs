//! In a JVM that ran before the agent came: `lucce attach`.
//!
//! ```text
//! Agent_OnAttach ─► options ─► agent ─► SampledObjectAlloc on       nothing is rewritten
//! allocation     ─► sampled ─► the VM's own stack ─► callgraph ─► tracelog
//!                └► leaks   ─► the same
//! contended lock ─► locks   ─► the same
//! detach         ─► events off, the log's end
//! ```
//!
//! No class is changed, so there is nothing to put back, and frames that ran already are as good as new
//! ones: each event asks the VM for the whole stack. That costs more per event than a shadow stack, so
//! by default allocations are sampled by bytes.

pub mod locks;
pub mod options;
pub mod sampled;

use lucce_callgraph::ContextId;
use lucce_vm::Env;

use crate::counting::Counting;

/// Of an event that happens where the current thread is. `None`: nobody knows, or no frame is shown.
pub fn number(counting: &'static Counting, env: Env) -> Option<ContextId> {
    sampled::with_local(counting, |local| local.number(env, None))
        .flatten()
        .flatten()
}
