//! Reads each event of a running JVM once: the difference between two readings of its counters.
//!
//! ```text
//! counters read now − counters reported = delta ─► reported: the larger of both
//! ```
//! A reading may lack counters of an earlier one, if a part of the file cannot be read at that moment; reported counters
//! stay reported. Bytes of objects of a fixed size are not in the counters, but follow from the size once the log has it.
//! So sums are compared, not counters.

use lucce_callgraph::{ContextId, MethodId, SiteId};
use lucce_tracelog::{EventTypeId, ThreadId};
use rustc_hash::FxHashMap;

use crate::events::{ContextCounter, ContextCounters};
use crate::profile::Profile;

/// The reported counters by context, type and thread.
#[derive(Default)]
pub struct DeltaTracker(FxHashMap<(ContextId, EventTypeId, ThreadId), CounterTotals>);

#[derive(Clone, Copy, Default)]
struct CounterTotals {
    count: u64,
    /// Includes the sizes of objects.
    value: u64,
}

impl DeltaTracker {
    /// Returns what the profile has counted since the last call, and marks it as reported. Context ids that the log does
    /// not explain (yet) are left for a later call.
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

    /// The difference of one counter. `each`: the size of an object if the counter has no bytes, else 0.
    fn counter_delta(&mut self, share: &ContextCounter, each: u64) -> Option<ContextCounter> {
        let sized = share.count.saturating_mul(each);
        let value = share.value.saturating_add(sized);
        let key = (share.id, share.event, share.thread);
        let taken = self.0.entry(key).or_default();
        let count = share.count.saturating_sub(taken.count);
        let more = value.saturating_sub(taken.value);
        taken.count = taken.count.max(share.count);
        taken.value = taken.value.max(value);
        // Like a counter's value: readers add the sizes of objects.
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
mod delta_tests {
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
        // A reading with fewer events changes nothing.
        assert_eq!(taken.counter_delta(&share(1, 10), 0), None);
        assert_eq!(taken.counter_delta(&share(5, 45), 0), Some(share(2, 15)));
    }

    /// 8 bytes each; for the first 3 objects the log had the size only later.
    #[test]
    fn sizes_that_are_reported_later_are_corrected() {
        let mut taken = DeltaTracker::default();
        assert_eq!(taken.counter_delta(&share(3, 0), 0), Some(share(3, 0)));
        assert_eq!(taken.counter_delta(&share(3, 0), 8), Some(share(0, 24)));
        assert_eq!(taken.counter_delta(&share(4, 0), 8), Some(share(1, 0)));
    }
}
