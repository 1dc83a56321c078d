//! `events=call`: entries of methods, counted by the hook at the method's entry (`class_analysis`, `insertions`).

use crate::jdk::roles::is_counted;

use super::{AnalyzedMethod, EventHooks};

/// The hooks of the kind.
pub(super) struct EntryCountHooks;

impl EventHooks for EntryCountHooks {
    fn happens_in(&self, at: &AnalyzedMethod<'_>) -> bool {
        is_counted(at.class, at.method)
    }
}
