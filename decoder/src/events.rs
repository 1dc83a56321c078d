//! What was counted: events per context, type and thread.

use lucce_callgraph::ContextId;
use lucce_tracelog::{EventTypeId, ThreadId};

/// The events of one context and type in one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    pub id: ContextId,
    pub thread: ThreadId,
    pub event: EventTypeId,
    /// Where the log has the (first) counter.
    pub offset: u64,
    pub count: u64,
    /// In the type's unit. What `new` took is not among an allocation's bytes, see `Code::size`.
    pub value: u64,
}

/// Events, sorted by context, type and thread, one entry for each.
#[derive(Clone, Default, Debug)]
pub struct Events(Vec<Share>);

impl Events {
    /// A context may have several cells in a thread: its table may have grown.
    pub(crate) fn new(mut shares: Vec<Share>) -> Self {
        let key = |share: &Share| (share.id, share.event, share.thread);
        shares.sort_unstable_by_key(|share| (key(share), share.offset));
        shares.dedup_by(|next, sum| {
            let same = key(next) == key(sum);
            if same {
                sum.count = sum.count.saturating_add(next.count);
                sum.value = sum.value.saturating_add(next.value);
            }
            same
        });
        Events(shares)
    }

    #[must_use]
    pub fn all(&self) -> &[Share] {
        &self.0
    }

    /// Those that are wanted.
    #[must_use]
    pub fn filtered(&self, is_wanted: impl Fn(&Share) -> bool) -> Events {
        let wanted = self.0.iter().filter(|share| is_wanted(share));
        Events(wanted.copied().collect())
    }

    /// Those that are wanted, and the others.
    #[must_use]
    pub fn partition(self, is_wanted: impl Fn(&Share) -> bool) -> (Events, Events) {
        let (wanted, others) = self.0.into_iter().partition(is_wanted);
        (Events(wanted), Events(others))
    }

    /// What was counted since `before`, an earlier reading of the same counters.
    #[must_use]
    pub fn since(&self, before: &Events) -> Events {
        let key = |share: &Share| (share.id, share.event, share.thread);
        let mut before = before.0.iter().peekable();
        let more = self.0.iter().filter_map(|share| {
            while before.next_if(|old| key(old) < key(share)).is_some() {}
            let old = before.next_if(|old| key(old) == key(share));
            let (count, value) = old.map_or((0, 0), |old| (old.count, old.value));
            let count = share.count.saturating_sub(count);
            let value = share.value.saturating_sub(value);
            (count > 0 || value > 0).then_some(Share {
                count,
                value,
                ..*share
            })
        });
        Events(more.collect())
    }

    /// One entry per type and thread.
    #[must_use]
    pub fn of(&self, id: ContextId) -> &[Share] {
        let from = self.0.partition_point(|share| share.id < id);
        let to = self.0.partition_point(|share| share.id <= id);
        self.0.get(from..to).unwrap_or_default()
    }

    /// By context: each slice is of one.
    pub fn by_context(&self) -> impl Iterator<Item = &[Share]> {
        self.0.chunk_by(|a, b| a.id == b.id)
    }

    /// The contexts, in order.
    #[must_use]
    pub fn ids(&self) -> Vec<ContextId> {
        self.by_context()
            .filter_map(|shares| shares.first())
            .map(|share| share.id)
            .collect()
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, share| sum.saturating_add(share.count))
    }

    /// Threads with events.
    #[must_use]
    pub fn threads(&self) -> usize {
        let mut threads: Vec<_> = self.0.iter().map(|share| share.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        threads.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_one_context_and_thread_are_added_up() {
        let share = |id, thread, count, value| Share {
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
        let events = Events::new(cells.to_vec());
        assert_eq!(
            events.of(ContextId(2)),
            [share(2, 0, 9, 1), share(2, 1, 3, 16)]
        );
        assert_eq!(events.ids(), [ContextId(1), ContextId(2)]);
        assert_eq!((events.count(), events.threads()), (17, 2));
        assert!(events.of(ContextId(3)).is_empty());
        let other = Share {
            event: EventTypeId(4),
            ..share(2, 1, 1, 0)
        };
        let events = Events::new([cells.as_slice(), &[other, other]].concat());
        assert_eq!(events.of(ContextId(2))[2].count, 2);
        assert_eq!(events.ids().len(), 2);
        let more = Events::new([cells.as_slice(), &[other, share(7, 1, 3, 3)]].concat());
        let before = Events::new(cells.to_vec());
        let since = more.since(&before);
        assert_eq!(since.all(), [other, share(7, 1, 3, 3)]);
        assert!(before.since(&more).all().is_empty());
        assert_eq!(more.since(&Events::default()).all(), more.all());
        let filtered = events.filtered(|share| share.event == EventTypeId(4));
        assert_eq!(filtered.all(), [Share { count: 2, ..other }]);
    }
}
