//! What hooks depend on besides the class, and what rewriting a class ends with.

use lucce_instrument::HookOptions;
use lucce_instrument::jdk::vm_calls;

use crate::classes::ClassParts;
use crate::core::is_jdk_excluded;
use crate::registry::ClassLoaderId;

/// What rewriting a class ends with.
#[derive(PartialEq, Eq, Debug)]
pub enum RewriteOutcome {
    /// The class gets these bytes, with hooks.
    Hooked(Vec<u8>),
    /// The class needs no hooks, and keeps its bytes.
    NoHooks,
    /// The class cannot be read or rewritten, and keeps its bytes.
    Failed,
}

impl RewriteOutcome {
    /// The new bytes. `None`: the class keeps its bytes.
    pub fn into_bytes(self) -> Option<Vec<u8>> {
        match self {
            RewriteOutcome::Hooked(bytes) => Some(bytes),
            RewriteOutcome::NoHooks | RewriteOutcome::Failed => None,
        }
    }
}

/// What hooks of a loader's classes depend on besides the classes and the kinds of events.
pub fn hooks_for_loader(agent: ClassParts<'_>, loader: ClassLoaderId) -> HookOptions {
    HookOptions {
        exits: agent.counters.tracking.records_calls(),
        at_entry: !agent.counters.tracking.is_lazy(),
        restores: agent.core.options.is_partial(),
        jdk_is_out_of_scope: is_jdk_excluded(&agent.core.options),
        defers_entries: agent.stack_parts().defers_entries(),
        trusted: agent.core.loaders.is_trusted(loader),
        inherits: agent.core.loaders.is_own(loader),
        kinds: agent.core.options.kinds_in_code(),
        native_actions: has_native_actions(agent),
    }
}

/// Whether the VM enters privileged actions.
pub fn has_native_actions(agent: ClassParts<'_>) -> bool {
    let release = agent.core.jvmti.java_version();
    release.is_ok_and(vm_calls::has_native_actions)
}
