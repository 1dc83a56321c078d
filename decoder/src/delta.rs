//! What has been taken of the counters of a run that goes on, so that each event is taken once.
//!
//! ```text
//! a reading ─► counters now − counters taken = what is new ─► taken: the larger ones of both
//! ```
//! A reading may see less than the one before: a part of the file that cannot be read just then. What was taken stays taken.
//! Bytes of objects of one size are not in their counters but follow from them, once the log has said the size: so what is compared
//! are sums, not counters.

use lucce_callgraph::{ContextId, MethodId, SiteId};
use lucce_tracelog::{EventTypeId, ThreadId};
use rustc_hash::FxHashMap;

use crate::events::{ContextCounter, ContextCounters};
use crate::profile::Profile;

/// Counters by context, type and thread, as they were taken.
#[derive(Default)]
pub struct DeltaTracker(FxHashMap<(ContextId, EventTypeId, ThreadId), CounterTotals>);

#[derive(Clone, Copy, Default)]
struct CounterTotals {
    count: u64,
    /// With the sizes of objects.
    value: u64,
}

impl DeltaTracker {
    /// What the profile has more than was taken, which is taken from now on. Numbers that its log does not explain (yet) are left for
    /// another time.
    pub fn next_delta(&mut self, profile: &Profile) -> ContextCounters {
        let mut more = Vec::new();
        for shares in profile.events.by_context() {
            let Some(site) = shares
                .first()
                .and_then(|share| event_site(profile, share.id))
            else {
                continue;
            };
            more.extend(shares.iter().filter_map(|share| {
                let each = profile.value_per_event(share.event, site);
                self.counter_delta(share, each)
            }));
        }
        ContextCounters::new(more)
    }

    /// `each`: the size of each object, which is not in the counter.
    fn counter_delta(&mut self, share: &ContextCounter, each: u64) -> Option<ContextCounter> {
        let sized = share.count.saturating_mul(each);
        let value = share.value.saturating_add(sized);
        let key = (share.id, share.event, share.thread);
        let taken = self.0.entry(key).or_default();
        let count = share.count.saturating_sub(taken.count);
        let more = value.saturating_sub(taken.value);
        taken.count = taken.count.max(share.count);
        taken.value = taken.value.max(value);
        // As counters have it: readers add the sizes again.
        let value = more.saturating_sub(count.saturating_mul(each));
        (count > 0 || value > 0).then_some(ContextCounter {
            count,
            value,
            ..*share
        })
    }
}

fn event_site(profile: &Profile, id: ContextId) -> Option<SiteId> {
    let leaf = profile.graph.find_caller(id, MethodId::EVENT).ok()?;
    Some(leaf.map_or(SiteId::NONE, |(_, leaf)| leaf.site))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(count: u64, value: u64) -> ContextCounter {
        ContextCounter {
            id: ContextId(1),
            thread: ThreadId(1),
            event: EventTypeId(0),
            offset: 0,
            count,
            value,
        }
    }

    #[test]
    fn each_event_is_taken_once() {
        let mut taken = DeltaTracker::default();
        assert_eq!(taken.counter_delta(&share(3, 30), 0), Some(share(3, 30)));
        assert_eq!(taken.counter_delta(&share(3, 30), 0), None);
        // A reading that saw less changes nothing.
        assert_eq!(taken.counter_delta(&share(1, 10), 0), None);
        assert_eq!(taken.counter_delta(&share(5, 45), 0), Some(share(2, 15)));
    }

    /// 8 bytes each: of the first 3 objects the log said it later.
    #[test]
    fn sizes_that_are_told_later_are_made_up_for() {
        let mut taken = DeltaTracker::default();
        assert_eq!(taken.counter_delta(&share(3, 0), 0), Some(share(3, 0)));
        assert_eq!(taken.counter_delta(&share(3, 0), 8), Some(share(0, 24)));
        assert_eq!(taken.counter_delta(&share(4, 0), 8), Some(share(1, 0)));
    }
}
