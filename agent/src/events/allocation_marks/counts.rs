//! Readings of counters and the differences between two readings.

use std::sync::atomic::{AtomicU64, Ordering};

use lucce_callgraph::ContextId;
use lucce_tracelog::{EventTypeId, ThreadId};
use rustc_hash::FxHashMap;

use crate::counting::CountingParts;
use crate::thread::thread_counters::ThreadCounters;

use super::KIND;

/// The reading of a counter: context, event type (of a counter by type), number of events, and sum of values. Sizes that
/// sites determine are not in the sum.
#[derive(Clone, Copy)]
pub(super) struct CounterReading {
    pub(super) number: ContextId,
    pub(super) event: EventTypeId,
    pub(super) count: u64,
    pub(super) value: u64,
}

#[derive(Default)]
pub(super) struct CounterReadings {
    /// By the counter's address.
    pub(super) cells: FxHashMap<usize, CounterReading>,
    /// Counters of the VM's own objects, with `alloc=all`.
    pub(super) by_type: FxHashMap<usize, CounterReading>,
}

impl CounterReadings {
    pub(super) fn read_counters(counters: &ThreadCounters) -> CounterReadings {
        let mut counted = CounterReadings::default();
        counters.for_each_counter(|cell, [number, count, value]| {
            let (number, event) = (ContextId(number), EventTypeId::default());
            let counts = CounterReading {
                number,
                event,
                count,
                value,
            };
            counted.cells.insert(cell, counts);
        });
        counters.for_each_event_counter(|cell, [number, event, count, value]| {
            let counts = CounterReading {
                number: ContextId(number),
                // The upper half is zero.
                event: EventTypeId(event as u32),
                count,
                value,
            };
            counted.by_type.insert(cell, counts);
        });
        counted
    }
}

/// Differences between two readings.
pub(super) fn subtract_readings<'a>(
    now: &'a FxHashMap<usize, CounterReading>,
    before: &'a FxHashMap<usize, CounterReading>,
) -> impl Iterator<Item = CounterReading> + 'a {
    now.iter().filter_map(|(cell, counts)| {
        let old = before.get(cell);
        let count = counts.count.wrapping_sub(old.map_or(0, |old| old.count));
        let value = counts.value.wrapping_sub(old.map_or(0, |old| old.value));
        (count != 0 || value != 0).then_some(CounterReading {
            count,
            value,
            ..*counts
        })
    })
}

/// Counted events, and the number of dropped events.
#[derive(Default)]
pub(super) struct MarkCounts {
    pub(super) allocations: Vec<CounterReading>,
    pub(super) by_type: Vec<CounterReading>,
    pub(super) dropped: u64,
}

/// Sums up readings of one context and type.
pub(super) fn sum_readings(parts: &[CounterReading]) -> impl Iterator<Item = CounterReading> {
    let mut sums: FxHashMap<(ContextId, EventTypeId), CounterReading> = FxHashMap::default();
    for counts in parts {
        let key = (counts.number, counts.event);
        let sum = sums.entry(key).or_insert(CounterReading {
            count: 0,
            value: 0,
            ..*counts
        });
        sum.count = sum.count.wrapping_add(counts.count);
        sum.value = sum.value.wrapping_add(counts.value);
    }
    sums.into_values()
}

/// The position of a counter: a block of all threads' blocks, and an index.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CounterLocation {
    pub(super) is_by_type: bool,
    pub(super) block: usize,
    pub(super) at: usize,
}

impl CounterLocation {
    pub(super) fn read_count(self, agent: CountingParts<'_>) -> u64 {
        let CounterLocation { block, at, .. } = self;
        // Relaxed: the number stands for itself.
        let load = |word: &AtomicU64| u64::from_le(word.load(Ordering::Relaxed));
        let count = match self.is_by_type {
            true => {
                let blocks = agent.counters.lock_event_counter_blocks();
                let counter = blocks.get(block).and_then(|block| block.get(at));
                counter.map(|counter| load(&counter.count))
            }
            false => {
                let blocks = agent.counters.lock_counter_blocks();
                let counter = blocks.get(block).and_then(|block| block.get(at));
                counter.map(|counter| load(&counter.count))
            }
        };
        count.unwrap_or(0)
    }
}

/// A changed counter of another thread.
pub(super) struct CounterChange {
    pub(super) thread: ThreadId,
    pub(super) place: CounterLocation,
    /// Its total number of events.
    pub(super) all: u64,
    /// Its events since the mark began.
    pub(super) counts: CounterReading,
}

/// Readings of all threads' counters, block by block: count and value.
pub(super) struct OtherThreadCounts {
    pub(super) cells: Vec<Vec<[u64; 2]>>,
    pub(super) by_type: Vec<Vec<[u64; 2]>>,
}

impl OtherThreadCounts {
    /// Readings of all counters.
    pub(super) fn read_all(agent: CountingParts<'_>) -> OtherThreadCounts {
        // Relaxed: each number stands for itself.
        let load = |word: &AtomicU64| u64::from_le(word.load(Ordering::Relaxed));
        let cells = agent.counters.lock_counter_blocks();
        let cells = cells.iter().map(|block| {
            let counts = block
                .iter()
                .map(|cell| [load(&cell.count), load(&cell.bytes)]);
            counts.collect()
        });
        let cells = cells.collect();
        let by_type = agent.counters.lock_event_counter_blocks();
        let by_type = by_type.iter().map(|block| {
            let counts = block
                .iter()
                .map(|cell| [load(&cell.count), load(&cell.value)]);
            counts.collect()
        });
        OtherThreadCounts {
            cells,
            by_type: by_type.collect(),
        }
    }

    /// The reading of one counter. `None`: the counter is newer.
    fn reading_at(&self, place: CounterLocation) -> Option<[u64; 2]> {
        let blocks = match place.is_by_type {
            true => &self.by_type,
            false => &self.cells,
        };
        blocks.get(place.block)?.get(place.at).copied()
    }

    /// Counters of other threads that have changed. Counters by type: only of allocations.
    pub(super) fn find_changes(
        &self,
        agent: CountingParts<'_>,
        own: &[ThreadId],
    ) -> Vec<CounterChange> {
        let now = OtherThreadCounts::read_all(agent);
        let mut changes = Vec::new();
        let blocks = agent.counters.lock_counter_blocks();
        for (block, counters) in blocks.iter().enumerate() {
            let thread = counters.thread();
            for (at, counter) in counters.iter().enumerate() {
                let place = CounterLocation {
                    is_by_type: false,
                    block,
                    at,
                };
                let untyped = (counter.id(), EventTypeId::default());
                if !own.contains(&thread) {
                    changes.extend(self.find_change(&now, place, thread, untyped));
                }
            }
        }
        drop(blocks);
        let allocations = agent.counting.event_types.details_of_kind(KIND);
        let blocks = agent.counters.lock_event_counter_blocks();
        for (block, counters) in blocks.iter().enumerate() {
            let thread = counters.thread();
            for (at, counter) in counters.iter().enumerate() {
                let place = CounterLocation {
                    is_by_type: true,
                    block,
                    at,
                };
                let typed = (counter.id(), counter.event_type());
                if !own.contains(&thread) && allocations.contains_key(&typed.1) {
                    changes.extend(self.find_change(&now, place, thread, typed));
                }
            }
        }
        changes
    }

    /// The change of one counter since this reading. `None`: it has not changed, or is newer than the reading `now`.
    fn find_change(
        &self,
        now: &OtherThreadCounts,
        place: CounterLocation,
        thread: ThreadId,
        (number, event): (ContextId, EventTypeId),
    ) -> Option<CounterChange> {
        let [all, value] = now.reading_at(place)?;
        let [count_before, value_before] = self.reading_at(place).unwrap_or_default();
        let counts = CounterReading {
            number,
            event,
            count: all.wrapping_sub(count_before),
            value: value.wrapping_sub(value_before),
        };
        (counts.count != 0 || counts.value != 0).then_some(CounterChange {
            thread,
            place,
            all,
            counts,
        })
    }
}
