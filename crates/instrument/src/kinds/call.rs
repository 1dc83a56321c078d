//! `events=call`: entries of methods, which the hook at a method's entry counts (`view`, `inserts`).

use lucce_bytecode::MethodCall;

use crate::instrumentation::HookSiteKind;
use crate::jdk::roles::is_counted;

use super::{AnalyzedMethod, EventHooks, EventKindInfo, KindConflict, PLAIN, event_mask};

pub static CALL: EventKindInfo = EventKindInfo {
    name: "call",
    mask_bit: event_mask::CALL,
    conflicts: &[
        (
            KindConflict::Attach,
            "events=call counts in hooks, which need the agent from the start (-agentpath)",
        ),
        (
            KindConflict::OtherTracking,
            "events=call needs tracking=lazy",
        ),
        // An entry has no place of its own in an earlier run's log.
        (
            KindConflict::Static,
            "events=call does not go with encoding=static",
        ),
    ],
    hooks: Some(&EntryCountHooks),
    ..PLAIN
};

struct EntryCountHooks;

impl EventHooks for EntryCountHooks {
    /// Nothing: the called method counts.
    fn call_site_kind(
        &self,
        _at: &AnalyzedMethod<'_>,
        _call: &MethodCall<'_>,
    ) -> Option<HookSiteKind> {
        None
    }

    fn happens_in(&self, at: &AnalyzedMethod<'_>) -> bool {
        is_counted(at.class, at.method)
    }
}
