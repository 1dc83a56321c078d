//! Numbers of events so far: counted, dropped, and distinct context numbers.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use lucce_instrument::kinds::{ALLOC, KindDescriptor};
use lucce_tracelog::EventTypeId;

use crate::memory::java_table::MULTIPLIER;
use crate::session::Agent;

/// The number of events that no counter contains.
pub fn count_dropped_events(agent: &Agent) -> u64 {
    agent.core.counts.events_dropped.load(Ordering::Relaxed)
        + agent.counters.counter_pool.dropped_events()
}

/// Numbers of events.
pub struct EventTotals {
    pub allocations: u64,
    /// By kind, without allocations.
    pub others: HashMap<String, u64>,
}

impl EventTotals {
    /// Reads all counters.
    pub fn count_events(agent: &Agent) -> EventTotals {
        let all = agent.counters.lock_counter_blocks();
        let cells = all.iter().flat_map(|counters| counters.iter());
        let untyped: u64 = cells
            .map(|cell| u64::from_le(cell.count.load(Ordering::Relaxed)))
            .sum();
        drop(all);
        let mut others = agent.counting_parts().events_by_kind();
        // They repeat other counts.
        for kind in KindDescriptor::iter_all().filter_map(|kind| kind.longest) {
            others.remove(kind);
        }
        // Objects that the VM creates have counters by type.
        let typed = others.remove(ALLOC.name).unwrap_or_default();
        EventTotals {
            allocations: untyped + typed,
            others,
        }
    }

    /// The number of all events.
    pub fn sum_events(&self) -> u64 {
        self.allocations + self.others.values().sum::<u64>()
    }
}

/// The events whose context numbers are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ContextNumberScope {
    Allocations,
    All,
}

/// The number of distinct context numbers of events. A context may have several numbers: only the decoder detects equal traces.
pub fn count_context_numbers(agent: &Agent, which: ContextNumberScope) -> u64 {
    let kinds = agent.counting.event_types.kinds_by_id();
    let is_meant = |event: EventTypeId| {
        let kind = kinds.get(&event);
        kind.is_some_and(|kind| which == ContextNumberScope::All || kind == ALLOC.name)
    };
    let (cells, event_cells) = (
        agent.counters.lock_counter_blocks(),
        agent.counters.lock_event_counter_blocks(),
    );
    let untyped = || {
        let all = cells.iter().flat_map(|counters| counters.iter());
        let used = all.filter(|cell| cell.count.load(Ordering::Relaxed) != 0);
        used.map(|cell| cell.id().0)
    };
    let typed = || {
        let all = event_cells.iter().flat_map(|counters| counters.iter());
        let used = all.filter(|cell| cell.count.load(Ordering::Relaxed) != 0);
        used.filter(|cell| is_meant(cell.event_type()))
            .map(|cell| cell.id().0)
    };
    let numbers = count_distinct(|| untyped().chain(typed()));
    cells.iter().for_each(|counters| counters.release_pages());
    event_cells
        .iter()
        .for_each(|counters| counters.release_pages());
    numbers
}

/// Counts distinct numbers in little memory: a part of the range at a time.
fn count_distinct<I: Iterator<Item = u64>>(numbers: impl Fn() -> I) -> u64 {
    const AT_A_TIME: usize = 1 << 17;
    const MOST_PARTS: usize = 32;
    let count = numbers().count();
    // Each part needs one pass over all numbers.
    let parts = count.div_ceil(AT_A_TIME.max(count / MOST_PARTS)) as u64;
    let mut contexts = Vec::new();
    let in_part = |part: u64| {
        // Numbers of contexts are consecutive.
        let of = |number: u64| number.wrapping_mul(MULTIPLIER) >> 32;
        numbers().filter(move |number| of(*number) % parts == part)
    };
    let mut different = 0;
    for part in 0..parts {
        contexts.clear();
        contexts.extend(in_part(part));
        contexts.sort_unstable();
        contexts.dedup();
        different += contexts.len() as u64;
    }
    different
}

#[cfg(test)]
mod event_totals_tests {
    use super::*;

    #[test]
    fn different_numbers_are_counted_in_parts() {
        assert_eq!(count_distinct(|| 0..0), 0);
        let numbers = || (0..1_000_000_u64).map(|n| (n % 300_000) << 12 | 7);
        assert_eq!(count_distinct(numbers), 300_000);
    }
}
