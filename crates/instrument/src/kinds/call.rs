//! `events=call`: entries of methods, counted by the hook at the method's entry (`class_analysis`, `insertions`).

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
        // An earlier run's log has no site for an entry.
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
    /// Returns `None`: the callee counts its entry.
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
