//! Whether what the table of anchors forgot was needed.
//!
//! A context that is called again after it was forgotten gets a second anchor, which the graph and the log
//! keep for ever. Contexts of classes that are gone are better forgotten; those of a program that goes on
//! with all of them are not. One call in [`ONE_IN`] of those that were forgotten is remembered here,
//! and counted when it comes again.

use std::collections::HashSet;

use crate::anchor_table::Call;
use crate::words::MULTIPLIER;

const ONE_IN_LOG: u32 = 6;
const ONE_IN: usize = 1 << ONE_IN_LOG;
/// The table is too small if it forgets one in so many that are needed.
const NEEDED: usize = 4;
/// Fewer in the sample are chance.
const LEAST: usize = 16;

#[derive(Default)]
pub(crate) struct Forgotten {
    sample: HashSet<Call>,
    /// Of those that came again, since the table was full last.
    needed: usize,
}

impl Forgotten {
    /// A call gets an anchor.
    pub(crate) fn met(&mut self, call: Call) {
        if is_sampled(&call) && self.sample.contains(&call) {
            self.needed += 1;
        }
    }

    /// A table of so many is full: whether to forget these calls. Otherwise too much was forgotten before.
    pub(crate) fn may_go(&mut self, calls: impl Iterator<Item = Call>, budget: usize) -> bool {
        let enough = LEAST.max(budget / ONE_IN / NEEDED);
        let needed = std::mem::take(&mut self.needed) >= enough;
        if !needed {
            self.sample.extend(calls.filter(is_sampled));
        }
        !needed
    }

    pub(crate) fn memory(&self) -> usize {
        self.sample.capacity() * size_of::<Call>()
    }
}

fn is_sampled(call: &Call) -> bool {
    call.hash().wrapping_mul(MULTIPLIER) >> (u64::BITS - ONE_IN_LOG) == 0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::ops::Range;

    use crate::{ContextId, MethodId, SiteId};

    const BUDGET: usize = 1 << 14;

    fn calls(contexts: Range<usize>) -> impl Iterator<Item = Call> {
        contexts.map(|context| Call::new(ContextId(context as u64), SiteId(1), MethodId(1)))
    }

    #[test]
    fn what_comes_again_was_needed_and_what_is_new_was_not() {
        let mut forgotten = Forgotten::default();
        let mut may_go = |met: Range<usize>| {
            calls(met.clone()).for_each(|call| forgotten.met(call));
            forgotten.may_go(calls(met), BUDGET)
        };
        assert!(may_go(0..BUDGET));
        assert!(may_go(BUDGET..2 * BUDGET));
        assert!(may_go(2 * BUDGET - BUDGET / 8..3 * BUDGET - BUDGET / 8));
        assert!(!may_go(0..BUDGET));
        assert!(may_go(3 * BUDGET..4 * BUDGET));
        assert!(!may_go(BUDGET / 2..3 * BUDGET / 2));
        assert!(forgotten.memory() < 4 * BUDGET * size_of::<Call>() / 16);
    }
}
