//! Sizes of allocated objects, by powers of two.
//!
//! With `events=alloc=sizes` the log counts the arrays of a context by size. Objects of a class have one size, and so has a
//! single array. Sizes of all other allocations are unknown.

use lucce_options::kinds::{ALLOCATION_SIZES, HUMONGOUS_BYTES};
use lucce_options::units::format_size;
use lucce_tracelog::{EventType, EventTypeId};

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
    /// too.
    pub fn retain_large_allocations(&mut self, least: u64) -> AllocationAmount {
        let mut unknown = AllocationAmount::default();
        let (sized, mut kept) = self.split_by_size();
        for of in sized {
            match of.power {
                Some(power) if 1_u64.checked_shl(power).is_some_and(|size| size >= least) => {
                    kept.push(of.counter);
                }
                // All of them together are smaller than one large object.
                None if of.bytes >= least => {
                    unknown.count = unknown.count.saturating_add(of.counter.count);
                    unknown.bytes = unknown.bytes.saturating_add(of.bytes);
                }
                _ => {}
            }
        }
        self.events = ContextCounters::new(kept);
        unknown
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
        kept.extend(sized.into_iter().map(|of| ContextCounter {
            event: size_type(of.power.unwrap_or(UNKNOWN_SIZE)),
            value: of.bytes,
            ..of.counter
        }));
        self.events = ContextCounters::new(kept);
    }

    /// Splits all counters into allocations by size, and counters of other kinds.
    fn split_by_size(&self) -> (Vec<SizedCounter>, Vec<ContextCounter>) {
        let (mut sized, mut others) = (Vec::new(), Vec::new());
        let mut last = None;
        for counters in self.events.by_context() {
            for counter in counters {
                if self.types.is_of_kind(counter.event, ALLOCATION_SIZES.name) {
                    let detail = self.types.get(counter.event);
                    let detail = detail.and_then(|info| info.detail.as_deref());
                    let power = detail.and_then(|text| text.strip_prefix("2^")?.parse().ok());
                    let event = self.find_counted_type(counters, counter);
                    sized.push(SizedCounter {
                        counter: ContextCounter { event, ..*counter },
                        power,
                        bytes: counter.value,
                    });
                } else if self.types.is_of_kind(counter.event, ALLOC.name) {
                    let fixed = match counter.event {
                        ALLOCATION => object_size_in(self, counter.id, &mut last),
                        _ => 0,
                    };
                    let rest = self.subtract_sized(counters, *counter);
                    sized.extend(rest.map(|rest| measure_counter(rest, fixed)));
                } else {
                    others.push(*counter);
                }
            }
        }
        (sized, others)
    }

    /// The type of the allocations that a counter by size belongs to.
    fn find_counted_type(
        &self,
        counters: &[ContextCounter],
        sized: &ContextCounter,
    ) -> EventTypeId {
        let mut all = counters.iter();
        let counted = all.find(|other| {
            other.thread == sized.thread && self.types.is_of_kind(other.event, ALLOC.name)
        });
        counted.map_or(ALLOCATION, |counter| counter.event)
    }

    /// What of a counter is not counted by size in its thread. `None`: nothing.
    fn subtract_sized(
        &self,
        counters: &[ContextCounter],
        mut counter: ContextCounter,
    ) -> Option<ContextCounter> {
        for sized in counters {
            let is_sized = self.types.is_of_kind(sized.event, ALLOCATION_SIZES.name);
            if is_sized && sized.thread == counter.thread {
                counter.count = counter.count.saturating_sub(sized.count);
                counter.value = counter.value.saturating_sub(sized.value);
            }
        }
        (counter.count > 0).then_some(counter)
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
