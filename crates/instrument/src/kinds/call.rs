//! `events=call`: entries of methods, counted by the hook at the method's entry (`class_analysis`, `insertions`).

use lucce_bytecode::MethodCall;

use crate::instrumentation::HookSiteKind;
use crate::jdk::roles::is_counted;

use super::{AnalyzedMethod, EventHooks};

/// The hooks of the kind.
pub(super) struct EntryCountHooks;

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
