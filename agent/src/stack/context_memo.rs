//! Contexts that follow from a frame alone: threads look them up often, and compute each once.

use lucce_callgraph::{ContextId, MethodId};
use rustc_hash::FxHashMap;

use crate::memory::locks::WatchedRwLock;

/// Maximum number of contexts that are kept. Beyond it, all are computed again.
const MAX_CONTEXTS: usize = 1 << 16;

/// By the context of a frame, and its method.
#[derive(Default)]
pub struct ContextMemo(WatchedRwLock<FxHashMap<(ContextId, MethodId), ContextId>>);

impl ContextMemo {
    /// Returns the kept context, or computes it. Not kept: `None`.
    pub fn find_or_compute(
        &self,
        key: (ContextId, MethodId),
        compute: impl FnOnce() -> Option<ContextId>,
    ) -> Option<ContextId> {
        let known = self.0.read().get(&key).copied();
        if known.is_some() {
            return known;
        }
        // Two threads may get here at once. Both compute the same context.
        let context = compute()?;
        let mut contexts = self.0.write();
        if contexts.len() >= MAX_CONTEXTS {
            contexts.clear();
        }
        contexts.insert(key, context);
        Some(context)
    }
}

#[cfg(test)]
mod context_memo_tests {
    use super::*;

    #[test]
    fn a_context_is_computed_once() {
        let memo = ContextMemo::default();
        let key = |context| (ContextId(context), MethodId(7));
        let answer = Some(ContextId(9));
        assert_eq!(memo.find_or_compute(key(1), || None), None);
        assert_eq!(memo.find_or_compute(key(1), || answer), answer);
        assert_eq!(memo.find_or_compute(key(1), || panic!("known")), answer);
        // Those that come later are kept as well.
        for context in 2..=MAX_CONTEXTS as u64 + 1 {
            let own = Some(ContextId(context));
            assert_eq!(memo.find_or_compute(key(context), || own), own);
        }
        let last = key(MAX_CONTEXTS as u64 + 1);
        assert_eq!(memo.find_or_compute(last, || panic!("known")), Some(last.0));
        assert!(memo.0.read().len() <= MAX_CONTEXTS);
    }
}
