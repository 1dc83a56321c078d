//! Sizes of allocated objects, by powers of two.
//!
//! With `events=alloc=sizes` the log counts the arrays of a context by size. Objects of a class have one size, and so has a
//! single array. Sizes of all other allocations are unknown.

use std::collections::HashMap;

use lucce_options::kinds::{ALLOCATION_SIZES, HUMONGOUS_BYTES};
use lucce_options::units::format_size;
use lucce_tracelog::{EventType, EventTypeId, ThreadId};

use crate::coverage::object_size_in;
use crate::events::{ContextCounter, ContextCounters};
use crate::kinds::{ALLOC, ALLOCATION};
use crate::profile::Profile;

/// Ids of types that the log does not have are above this number.
const FIRST_ADDED_TYPE: u32 = u32::MAX - 2 * u64::BITS;
/// The place of unknown sizes after all powers of two.
const UNKNOWN_SIZE: u32 = u64::BITS;

/// Number and bytes of allocations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AllocationAmount {
    pub count: u64,
    pub bytes: u64,
}

/// Allocations of one size in one context and thread.
struct SizedCounter {
    counter: ContextCounter,
    /// The power of two below the size. `None`: unknown.
    power: Option<u32>,
    /// The bytes of all of them.
    bytes: u64,
}

/// Allocations of one context in one thread.
#[derive(Clone, Copy, Default)]
struct ThreadAllocations {
    /// Those that are counted by size.
    sized: AllocationAmount,
    first_type: Option<EventTypeId>,
    has_several_types: bool,
}

impl ThreadAllocations {
    /// The type of the allocations that are counted by size. If the thread has several, their site says it.
    fn counted_type(self) -> EventTypeId {
        self.first_type
            .filter(|_| !self.has_several_types)
            .unwrap_or(ALLOCATION)
    }
}

/// Whether the run counted arrays by size.
#[must_use]
pub fn has_array_sizes(profile: &Profile) -> bool {
    profile.types.has_kind(ALLOCATION_SIZES.name)
}

/// The size in bytes above which G1 allocates an object in regions of its own. `None`: another collector, or the run did not
/// count arrays by size.
#[must_use]
pub fn read_humongous_bytes(profile: &Profile) -> Option<u64> {
    profile.meta.get(HUMONGOUS_BYTES)?.parse().ok()
}

impl Profile {
    /// Leaves out allocations of less than `least` bytes, a power of two. Returns those whose size is unknown, which are left out
    /// too; their values are bytes.
    pub fn retain_large_allocations(&mut self, least: u64) -> ContextCounters {
        let (sized, mut kept) = self.split_by_size();
        let mut unknown = Vec::new();
        for allocation in sized {
            match allocation.power {
                Some(power) if 1_u64.checked_shl(power).is_some_and(|size| size >= least) => {
                    kept.push(allocation.counter);
                }
                // All of them together are smaller than one large object.
                None if allocation.bytes >= least => unknown.push(ContextCounter {
                    value: allocation.bytes,
                    ..allocation.counter
                }),
                _ => {}
            }
        }
        self.events = ContextCounters::new(kept);
        ContextCounters::new(unknown)
    }

    /// Replaces the types of allocations by their sizes, such as `1m to 2m`.
    pub fn replace_types_by_sizes(&mut self) {
        let (sized, mut kept) = self.split_by_size();
        for place in 0..=UNKNOWN_SIZE {
            self.types.add_type(EventType {
                id: size_type(place),
                kind: ALLOC.name.into(),
                unit: ALLOC.unit.into(),
                detail: format_size_range(place).into(),
            });
        }
        kept.extend(sized.into_iter().map(|allocation| ContextCounter {
            event: size_type(allocation.power.unwrap_or(UNKNOWN_SIZE)),
            value: allocation.bytes,
            ..allocation.counter
        }));
        self.events = ContextCounters::new(kept);
    }

    /// Splits all counters into allocations by size, and counters of other kinds.
    fn split_by_size(&self) -> (Vec<SizedCounter>, Vec<ContextCounter>) {
        let (mut sized, mut others) = (Vec::new(), Vec::new());
        let mut last = None;
        for counters in self.events.by_context() {
            let threads = self.sum_threads(counters);
            for counter in counters {
                let thread = threads.get(&counter.thread).copied().unwrap_or_default();
                if self.types.is_of_kind(counter.event, ALLOCATION_SIZES.name) {
                    let event = thread.counted_type();
                    sized.push(SizedCounter {
                        counter: ContextCounter { event, ..*counter },
                        power: self.size_power(counter.event),
                        bytes: counter.value,
                    });
                } else if self.types.is_of_kind(counter.event, ALLOC.name) {
                    let fixed = match counter.event {
                        ALLOCATION => object_size_in(self, counter.id, &mut last),
                        _ => 0,
                    };
                    let rest = ContextCounter {
                        count: counter.count.saturating_sub(thread.sized.count),
                        value: counter.value.saturating_sub(thread.sized.bytes),
                        ..*counter
                    };
                    let rest = Some(rest).filter(|rest| rest.count > 0);
                    sized.extend(rest.map(|rest| measure_counter(rest, fixed)));
                } else {
                    others.push(*counter);
                }
            }
        }
        (sized, others)
    }

    /// The allocations of one context by thread.
    fn sum_threads(&self, counters: &[ContextCounter]) -> HashMap<ThreadId, ThreadAllocations> {
        let mut threads: HashMap<ThreadId, ThreadAllocations> = HashMap::new();
        for counter in counters {
            if self.types.is_of_kind(counter.event, ALLOCATION_SIZES.name) {
                let sized = &mut threads.entry(counter.thread).or_default().sized;
                sized.count = sized.count.saturating_add(counter.count);
                sized.bytes = sized.bytes.saturating_add(counter.value);
            } else if self.types.is_of_kind(counter.event, ALLOC.name) {
                let thread = threads.entry(counter.thread).or_default();
                thread.has_several_types |= thread.first_type.is_some();
                thread.first_type.get_or_insert(counter.event);
            }
        }
        threads
    }

    /// The power of two below the sizes that an event type stands for. `None`: unknown.
    fn size_power(&self, event: EventTypeId) -> Option<u32> {
        let detail = self.types.get(event)?.detail.as_deref()?;
        let power = detail.strip_prefix("2^")?.parse().ok()?;
        (power < u64::BITS).then_some(power)
    }
}

/// `fixed`: the size of each object, 0 if sizes vary.
fn measure_counter(counter: ContextCounter, fixed: u64) -> SizedCounter {
    let (size, bytes) = match (fixed, counter.count) {
        (0, 1) => (counter.value, counter.value),
        (0, _) => (0, counter.value),
        (size, count) => (size, count.saturating_mul(size)),
    };
    SizedCounter {
        counter,
        power: size.checked_ilog2(),
        bytes,
    }
}

fn size_type(place: u32) -> EventTypeId {
    EventTypeId(FIRST_ADDED_TYPE + place)
}

/// `1m to 2m`
fn format_size_range(place: u32) -> String {
    let size = |power| 1_u64.checked_shl(power).map(format_size);
    match (size(place), size(place + 1)) {
        (Some(from), Some(to)) => format!("{from} to {to}"),
        (Some(from), None) => format!("from {from}"),
        (None, _) => "unknown size".to_owned(),
    }
}

#[cfg(test)]
mod object_sizes_tests {
    use super::*;

    #[test]
    fn ranges_are_powers_of_two() {
        assert_eq!(format_size_range(4), "16 to 32");
        assert_eq!(format_size_range(9), "512 to 1k");
        assert_eq!(format_size_range(20), "1m to 2m");
        assert_eq!(format_size_range(UNKNOWN_SIZE), "unknown size");
        assert!(format_size_range(63).starts_with("from "));
    }

    #[test]
    fn sizes_are_derived_from_counts() {
        let counter = |count, value| ContextCounter {
            id: lucce_callgraph::ContextId(1),
            thread: lucce_tracelog::ThreadId(1),
            event: ALLOCATION,
            offset: 0,
            count,
            value,
        };
        let derived = |count, value, fixed| {
            let of = measure_counter(counter(count, value), fixed);
            (of.power, of.bytes)
        };
        assert_eq!(derived(3, 0, 24), (Some(4), 72));
        assert_eq!(derived(1, 1_040, 0), (Some(10), 1_040));
        assert_eq!(derived(2, 1_040, 0), (None, 1_040));
        assert_eq!(derived(1, 0, 0), (None, 0));
    }
}
