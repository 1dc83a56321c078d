//! Finds out whether the anchor table forgot entries that were needed.
//!
//! A context that is called again after it was forgotten gets a second anchor. The graph and the log keep that anchor
//! for ever, together with the anchors of everything called from there. Contexts of unloaded classes are better
//! forgotten; those of a program that keeps using all of them are not. So the paths of one anchor in [`ONE_IN`] are
//! remembered here, and counted when they recur. The path identifies them, because after a second anchor the number
//! differs.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::ContextFrame;
use crate::anchor_table::AnchorKey;
use crate::raw::MULTIPLIER;

const ONE_IN_LOG: u32 = 6;
const ONE_IN: usize = 1 << ONE_IN_LOG;
/// The table is too small if one of this many forgotten entries is needed again.
const NEEDED: usize = 4;
/// Fewer recurrences in the sample may be chance.
const LEAST: usize = 16;

#[derive(Default)]
pub(crate) struct ForgottenAnchors {
    paths: HashSet<u64>,
    /// How many recurred since the table was last full.
    needed_again: usize,
}

impl ForgottenAnchors {
    /// Whether the paths of such calls are remembered. The answer does not depend on the caller's number.
    pub(crate) fn is_sampled(call: AnchorKey) -> bool {
        call.site_and_callee().wrapping_mul(MULTIPLIER) >> (u64::BITS - ONE_IN_LOG) == 0
    }

    /// Records that a sampled call gets an anchor; `path` leads to its caller.
    pub(crate) fn record_anchor(&mut self, call: AnchorKey, path: &[ContextFrame]) {
        // The hasher always has the same keys.
        let mut hasher = DefaultHasher::new();
        (call.site_and_callee(), path).hash(&mut hasher);
        if !self.paths.insert(hasher.finish()) {
            self.needed_again += 1;
        }
    }

    /// Whether a full table of `budget` entries may forget them; not if it forgot too many needed ones before.
    pub(crate) fn may_forget(&mut self, budget: usize) -> bool {
        let enough = LEAST.max(budget / ONE_IN / NEEDED);
        std::mem::take(&mut self.needed_again) < enough
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.paths.capacity() * (size_of::<u64>() + 1)
    }
}

#[cfg(all(test, not(loom)))]
mod forgotten_anchors_tests {
    use std::ops::Range;

    use super::*;
    use crate::{ContextId, MethodId, SiteId};

    const BUDGET: usize = 1 << 14;

    #[test]
    fn what_comes_again_was_needed_and_what_is_new_was_not() {
        let mut forgotten = ForgottenAnchors::default();
        let mut number = 0;
        let mut may_go = |met: Range<usize>| {
            let site = SiteId(7);
            for context in met {
                number += 1;
                let call = AnchorKey::new(ContextId(number), SiteId(context as u32), MethodId(1));
                let method = MethodId(context as u32);
                if ForgottenAnchors::is_sampled(call) {
                    forgotten.record_anchor(call, &[ContextFrame { site, method }]);
                }
            }
            forgotten.may_forget(BUDGET)
        };
        assert!(may_go(0..BUDGET));
        assert!(may_go(BUDGET..2 * BUDGET));
        assert!(may_go(2 * BUDGET - BUDGET / 8..3 * BUDGET - BUDGET / 8));
        // With other numbers, because all of them are new.
        assert!(!may_go(0..BUDGET));
        assert!(may_go(3 * BUDGET..4 * BUDGET));
        assert!(!may_go(BUDGET / 2..3 * BUDGET / 2));
        assert!(forgotten.memory_bytes() < 4 * BUDGET);
    }
}
