//! Counters of events, by context, type and thread.

use lucce_callgraph::ContextId;
use lucce_tracelog::{EventTypeId, ThreadId};

/// The events of one context and type in one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContextCounter {
    pub id: ContextId,
    pub thread: ThreadId,
    pub event: EventTypeId,
    /// Offset of the (first) counter in the log.
    pub offset: u64,
    pub count: u64,
    /// In the type's unit. Objects of a fixed size add nothing to an allocation's bytes; see `CodeSymbols::object_size`.
    pub value: u64,
}

/// Counters sorted by context, type and thread, one entry for each.
#[derive(Clone, Default, Debug)]
pub struct ContextCounters(Vec<ContextCounter>);

impl ContextCounters {
    /// Sorts and sums counters. A context may have several counters in a thread, because its table may have grown.
    pub(crate) fn new(mut shares: Vec<ContextCounter>) -> Self {
        let key = |share: &ContextCounter| (share.id, share.event, share.thread);
        shares.sort_unstable_by_key(|share| (key(share), share.offset));
        shares.dedup_by(|next, sum| {
            let same = key(next) == key(sum);
            if same {
                sum.count = sum.count.saturating_add(next.count);
                sum.value = sum.value.saturating_add(next.value);
            }
            same
        });
        ContextCounters(shares)
    }

    #[must_use]
    pub fn as_slice(&self) -> &[ContextCounter] {
        &self.0
    }

    /// The counters for which `is_wanted` is true.
    #[must_use]
    pub fn filter_counters(&self, is_wanted: impl Fn(&ContextCounter) -> bool) -> ContextCounters {
        let wanted = self.0.iter().filter(|share| is_wanted(share));
        ContextCounters(wanted.copied().collect())
    }

    /// These counters and others.
    #[must_use]
    pub fn join_counters(self, others: &ContextCounters) -> ContextCounters {
        ContextCounters::new(self.0.into_iter().chain(others.0.iter().copied()).collect())
    }

    /// Splits the counters by `is_wanted`: wanted ones, and the others.
    #[must_use]
    pub fn partition_counters(
        self,
        is_wanted: impl Fn(&ContextCounter) -> bool,
    ) -> (ContextCounters, ContextCounters) {
        let (wanted, others) = self.0.into_iter().partition(is_wanted);
        (ContextCounters(wanted), ContextCounters(others))
    }

    /// The difference to `before`, an earlier reading of the same counters. Counters without a difference are left out.
    #[must_use]
    pub fn subtract_earlier(&self, before: &ContextCounters) -> ContextCounters {
        let key = |share: &ContextCounter| (share.id, share.event, share.thread);
        let mut before = before.0.iter().peekable();
        let more = self.0.iter().filter_map(|share| {
            while before.next_if(|old| key(old) < key(share)).is_some() {}
            let old = before.next_if(|old| key(old) == key(share));
            let (count, value) = old.map_or((0, 0), |old| (old.count, old.value));
            let count = share.count.saturating_sub(count);
            let value = share.value.saturating_sub(value);
            (count > 0 || value > 0).then_some(ContextCounter {
                count,
                value,
                ..*share
            })
        });
        ContextCounters(more.collect())
    }

    /// These counters, each with at most what it had counted at `earlier`. Counters that came later are left out.
    #[must_use]
    pub fn limit_to(&self, earlier: &ContextCounters) -> ContextCounters {
        let key = |share: &ContextCounter| (share.id, share.event, share.thread);
        let mut earlier = earlier.0.iter().peekable();
        let limited = self.0.iter().filter_map(|share| {
            while earlier.next_if(|old| key(old) < key(share)).is_some() {}
            let old = earlier.next_if(|old| key(old) == key(share))?;
            Some(ContextCounter {
                count: share.count.min(old.count),
                value: share.value.min(old.value),
                ..*share
            })
        });
        ContextCounters(limited.collect())
    }

    /// The counters of a context: one entry for each type and thread.
    #[must_use]
    pub fn counters_of_context(&self, id: ContextId) -> &[ContextCounter] {
        let from = self.0.partition_point(|share| share.id < id);
        let to = self.0.partition_point(|share| share.id <= id);
        self.0.get(from..to).unwrap_or_default()
    }

    /// The counters in slices of one context each.
    pub fn by_context(&self) -> impl Iterator<Item = &[ContextCounter]> {
        self.0.chunk_by(|a, b| a.id == b.id)
    }

    /// All contexts, in ascending order.
    #[must_use]
    pub fn context_ids(&self) -> Vec<ContextId> {
        self.by_context()
            .filter_map(|shares| shares.first())
            .map(|share| share.id)
            .collect()
    }

    #[must_use]
    pub fn event_count(&self) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, share| sum.saturating_add(share.count))
    }

    /// Number of threads with events.
    #[must_use]
    pub fn thread_count(&self) -> usize {
        let mut threads: Vec<_> = self.0.iter().map(|share| share.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        threads.len()
    }
}

#[cfg(test)]
mod events_tests {
    use super::*;

    #[test]
    fn cells_of_one_context_and_thread_are_added_up() {
        let share = |id, thread, count, value| ContextCounter {
            id: ContextId(id),
            thread: ThreadId(thread),
            event: EventTypeId(0),
            offset: 0,
            count,
            value,
        };
        let cells = [
            share(2, 1, 1, 8),
            share(1, 1, 5, 0),
            share(2, 1, 2, 8),
            share(2, 0, 9, 1),
        ];
        let events = ContextCounters::new(cells.to_vec());
        assert_eq!(
            events.counters_of_context(ContextId(2)),
            [share(2, 0, 9, 1), share(2, 1, 3, 16)]
        );
        assert_eq!(events.context_ids(), [ContextId(1), ContextId(2)]);
        assert_eq!((events.event_count(), events.thread_count()), (17, 2));
        assert!(events.counters_of_context(ContextId(3)).is_empty());
        let other = ContextCounter {
            event: EventTypeId(4),
            ..share(2, 1, 1, 0)
        };
        let events = ContextCounters::new([cells.as_slice(), &[other, other]].concat());
        assert_eq!(events.counters_of_context(ContextId(2))[2].count, 2);
        assert_eq!(events.context_ids().len(), 2);
        let more = ContextCounters::new([cells.as_slice(), &[other, share(7, 1, 3, 3)]].concat());
        let before = ContextCounters::new(cells.to_vec());
        let since = more.subtract_earlier(&before);
        assert_eq!(since.as_slice(), [other, share(7, 1, 3, 3)]);
        assert!(before.subtract_earlier(&more).as_slice().is_empty());
        assert_eq!(
            more.subtract_earlier(&ContextCounters::default())
                .as_slice(),
            more.as_slice()
        );
        let limited = more.limit_to(&before);
        assert_eq!(limited.as_slice(), before.as_slice());
        assert_eq!(before.limit_to(&more).as_slice(), before.as_slice());
        let filtered = events.filter_counters(|share| share.event == EventTypeId(4));
        assert_eq!(filtered.as_slice(), [ContextCounter { count: 2, ..other }]);
    }
}
